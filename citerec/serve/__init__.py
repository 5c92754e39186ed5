"""`citerec serve`: an HTTP API over open indexes, for the page and for programs; `citerec mcp`: tools for assistants.

| module | what it does |
|---|---|
| `guard` | what a server accepts; what every request passes: token, Host header, size; problems, and the log |
| `service` | open indexes by name, and the threads in which requests use them |
| `requests` | requests for recommendations and their answers as JSON |
| `app` | the web application: `create_app`, the routes under /v1, metrics, errors; the process |
| `scholar`, `page`, `mcp` | Semantic Scholar's routes; the page at `/`, for authors; tools for assistants |

It calls `citerec.Recommender`; nothing below imports this package, which can be deleted with no change below it. It
needs `pip install 'citerec[serve]'`.
"""
