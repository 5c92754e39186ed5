"""Runs long work on a Ray cluster: `citerec encode|index|recommend|evaluate --ray ADDRESS|local`.

| module | what it does |
|---|---|
| `cluster` | connects to a cluster or starts one on this machine; the only module that imports ray |
| `pool` | actors that hold what they have opened, and work on items; lost ones are replaced |
| `embedding` | the vectors of an index, shard by shard |
| `recommending` | recommendations for blocks of queries |
| `scoring` | the cross-encoders of an evaluation, batch by batch |
| `serving` | the application of `citerec serve` by Ray Serve |

Results equal those of one process, bit by bit, on machines of one kind. The process of the command writes vectors and
results; actors get papers or queries and return results, so that a lost actor or a killed command leaves nothing
half-written.

Nothing below imports this package; it can be deleted with no change below it. It needs `pip install 'citerec[ray]'`.
"""
