"""The rules of recommendation, evaluation and training, each in one place.

| rule | module |
|---|---|
| which papers may be recommended to a query | `eligible` |
| which citations are known for a query | `known` |
| which papers are train papers, which are held out | `held_out` |
| which model was trained on what, and which models are an index's own | `trained_on` |
"""
