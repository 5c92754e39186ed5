"""`citerec serve`: an HTTP API over open indexes, for the page and for programs; `citerec mcp`: tools for assistants.

| module | what it does |
|---|---|
| `service` | limits; open indexes by name, and the threads in which requests use them |
| `requests` | requests for recommendations and their answers as JSON |
| `answers` | problems, and waiting for an answer |
| `app` | the web application: `create_app`, the routes under /v1, errors |
| `scholar`, `page`, `mcp` | Semantic Scholar's routes; the page at `/`, for authors; tools for assistants |
| `guard`, `metrics` | what every request passes; metrics for Prometheus |
| `run` | the process: socket, signals |

It calls `citerec.Recommender`; nothing below imports this package, which can be deleted with no change below it. It
needs `pip install 'citerec[serve]'`.
"""
