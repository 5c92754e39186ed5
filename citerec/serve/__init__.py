"""`citerec serve`: an HTTP API over open indexes, for the page and for programs; `citerec mcp`.

| module | what it does |
|---|---|
| `settings`, `schema`, `problems` | limits; requests and answers as JSON; errors |
| `options`, `prepare` | the settings of the pipeline for a request; its drafts and lists |
| `version`, `indexes` | one open index; indexes by name |
| `batching`, `service` | the queue and its workers; `Service` answers requests without any web framework |
| `lookup`, `exports` | search, papers with their citations; answers in the formats of reference managers |
| `api`, `scholar` | the routes under /v1; Semantic Scholar's |
| `guard`, `answers`, `metrics`, `app` | what every request passes; errors; metrics; the web application: `create_app` |
| `run` | the process: sockets, signals |
| `page` | the page at `/`, for authors |
| `mcp` | `citerec mcp`: tools for assistants |

Nothing below imports this package; it can be deleted with no change below it. It needs `pip install 'citerec[serve]'`.
"""
