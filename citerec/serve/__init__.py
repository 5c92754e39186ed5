"""`citerec serve`: an HTTP API over open indexes, for the page, for programs and for the command line; `citerec mcp`.

| module | what it does |
|---|---|
| `local` | the Unix socket of the local server; needs no other package |
| `settings`, `schema`, `problems` | limits; requests and answers as JSON; errors |
| `options`, `prepare` | the settings of the pipeline for a request; its drafts and lists |
| `version`, `indexes` | one open version of an index; indexes by name, and the change to a new version |
| `batching`, `service` | the queue and its workers; `Service` answers requests without any web framework |
| `lookup`, `exports` | search, papers with their citations; answers in the formats of reference managers |
| `api`, `scholar`, `command` | the routes under /v1; Semantic Scholar's; that of the command line |
| `guard`, `answers`, `metrics`, `app` | what every request passes; errors; metrics; the web application: `create_app` |
| `run` | the process: sockets, signals |
| `page` | the page at `/`, for authors |
| `mcp` | `citerec mcp`: tools for assistants |

Nothing below imports this package; it can be deleted with no change below it. It needs `pip install 'citerec[serve]'`.
"""
