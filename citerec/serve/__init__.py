"""`citerec serve`: an HTTP API over open indexes, for the page, for programs and for the command line.

| module | what it does |
|---|---|
| `local` | the Unix socket of the local server; needs no other package |
| `settings` | `ServeConfig`: limits and addresses |
| `schema` | requests and answers as JSON |
| `service` | `Service`: the open indexes; recommends without any web framework |
| `app` | `create_app`: the routes |
| `run` | the process: sockets, signals |

Nothing below imports this package; it can be deleted with no change below it. It needs `pip install 'citerec[serve]'`.
"""
