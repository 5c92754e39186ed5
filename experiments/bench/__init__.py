"""What `experiments/bench.py` measures, a module per group of rows.

measure.py   rows, medians, ratios; a process's time and memory
work.py      the folder that the measurements work in: the index, the same corpus for the peers
systems.py   the search systems, each as a function that answers all queries
worker.py    a process that holds one of them
search.py    queries per second and memory of each, and whether hits are identical
indexing.py  citerec's indexer and Anserini's
starting.py  cold start, a batch of drafts, import, what is installed
report.py    results/bench.json and BENCH.md
"""
