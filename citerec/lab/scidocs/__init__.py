"""SciDocs: evaluates vectors of papers on tasks that never train the encoder (SPECTER, Cohan et al. 2020, section 3).

    layout ─ papers ─ encode ─┬ classify         MAG, MeSH: linear SVM, macro F1
    (published folder)        ├ ranking          co-view, co-read, cite, co-cite: L2 distance; MAP, nDCG
                              └ recommendation   clicks: a small ranker over ten features; nDCG, P@1

`suite` runs the published data, `from_index` tasks of the same kinds built from an index, `topics` draws the map of
figure 2 of the paper. No module here opens an encoder: callers pass a function that encodes.
"""
