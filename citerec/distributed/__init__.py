"""Runs long work on a Ray cluster: `citerec encode|index|recommend|evaluate --ray ADDRESS|local`.

| module | what it does |
|---|---|
| `cluster` | connects to a cluster or starts one on this machine; the only module that imports ray |
| `pool` | actors that hold what they have opened, and work on items; lost ones are replaced |
| `embedding` | the vectors of an index, shard by shard |
| `recommending` | recommendations for blocks of queries |
| `scoring` | the cross-encoders of an evaluation, batch by batch |
| `shards` | the postings of an index in shards, written in parallel |
| `sharded` | BM25 over shards: a retriever |
| `vectors` | the vectors of an index in shards: written in parallel, searched for the dense retriever |
| `records` | what is recorded of shards, and which of them can be searched |
| `holders` | actors that each hold an open shard |
| `serving` | the application of `citerec serve` by Ray Serve |

Results equal those of one process, bit by bit, on machines of one kind. The process of the command writes vectors and
results; actors get papers or queries and return results, so that a lost actor or a killed command leaves nothing
half-written. Only `shards` and `vectors` let actors write, each a folder that appears complete or not at all.

Nothing below imports this package; it can be deleted with no change below it. It needs `pip install 'citerec[ray]'`.
"""
