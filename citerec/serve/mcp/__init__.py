"""`citerec mcp`: the papers of an index as tools for assistants, by the Model Context Protocol.

| module | what it does |
|---|---|
| `outputs` | what the tools return |
| `views` | papers and recommendations as outputs of bounded length |
| `worker` | opens the recommender, and runs calls one after the other |
| `tools` | the tools, as methods with typed arguments |
| `server` | the server of the SDK: tools, resources, errors |
| `run` | stdio and streamable HTTP |

Only `server` and `run` import the SDK.
"""
