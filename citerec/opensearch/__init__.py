"""Searches papers in OpenSearch, for collections too large for one machine: BM25, vectors and filters in one engine.

| module | what it does |
|---|---|
| `server` | talks to an OpenSearch index; the only module that imports opensearchpy |
| `bodies` | the settings of such an index, its documents and its queries |
| `load` | copies the papers and vectors of an index folder into it |
| `retrieve` | the first-stage retrievers over it |

The index folder stays: papers, citations and vectors are read from its mapped files where candidates are ranked.
Nothing below imports this package; it can be deleted with no change below it. It needs
`pip install 'citerec[opensearch]'`. It has not been run against a server of OpenSearch itself: the tests use a small
server that follows its documentation.
"""

from citerec.opensearch.load import load
from citerec.opensearch.retrieve import OpenSearchBm25, OpenSearchVectors, open_retrievers
from citerec.opensearch.server import OpenSearchIndex

__all__ = ["OpenSearchBm25", "OpenSearchIndex", "OpenSearchVectors", "load", "open_retrievers"]
