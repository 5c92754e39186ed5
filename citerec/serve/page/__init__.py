"""The page at `/`, for authors: HTML, its style and scripts, and the routes that only it uses.

| module | what it does |
|---|---|
| `routes` | `page_router`: the page, its files, uploads, export, and recommendations as server-sent events |
| `search` | what the page requests, and the list of the first stage, which is shown before the models are done |
| `view` | recommendations as the page shows them: marked words, papers named in reasons, citations within the list |
| `uploads` | drafts and lists of references from uploaded files |

`templates/page.html` is rendered by Jinja2. `static/` holds plain JavaScript modules: no build step, nothing from
elsewhere. Texts of a corpus reach the page as text nodes only.
"""
