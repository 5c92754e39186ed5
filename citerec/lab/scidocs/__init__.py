"""SciDocs: how good the vectors of papers are, by tasks that never train the encoder (SPECTER, Cohan et al. 2020, §3).

    layout ─ papers ─ encode ─┬ classify         MAG, MeSH: linear SVM, macro F1
    (published folder)        ├ ranking          co-view, co-read, cite, co-cite: L2 distance; MAP, nDCG
                              └ recommendation   clicks: a small ranker over ten features; nDCG, P@1

`suite` runs the published folder, `from_index` the same kinds of tasks built from any index, `topics` draws the
map of the paper's figure 2. Nothing here opens an encoder: what encodes comes in as a function.
"""
