"""Measure what papers of a walk would add to the candidates; `python experiments/evidence.py --page` shows it.

python experiments/evidence_walk.py indexes/vis indexes/biomed indexes/ecology indexes/labour
"""

import sys
from pathlib import Path

import numpy as np
import orjson
from evidence import ADDED, RESULTS

from citerec.config import RANKING_DEPTH, RecommendConfig
from citerec.folder import IndexFolder, open_index
from citerec.java import start_jvm
from citerec.pipeline import Pipeline
from citerec.rank.expansion import CandidateExpander
from citerec.rank.ltr import expanded
from citerec.rank.walk import walk
from citerec.retrieve.hybrid import open_hybrid
from citerec.rules.eligible import within
from citerec.rules.known import CitationScope, TemporalGraph
from citerec.train.ranker.config import RankerTraining
from citerec.train.ranker.gather import EXPAND
from citerec.train.ranker.queries import dev_queries


def main() -> None:
    """Measure each index and write the recalls."""
    start_jvm(None)
    recalls = {Path(path).name: recall(open_index(Path(path))) for path in sys.argv[1:]}
    (RESULTS / "walk.json").write_bytes(orjson.dumps(recalls, option=orjson.OPT_INDENT_2))


def recall(index: IndexFolder) -> list[float]:
    """Return the recall of all candidates of 150 dev queries, then that with the first `ADDED` of the walk as well."""
    queries = dev_queries(index, RankerTraining(dev_queries=150))
    if queries is None:
        raise SystemExit(f"{index.path} has no dev queries")
    graph = TemporalGraph(index, CitationScope.TRAIN)
    stages = (CandidateExpander(graph, EXPAND),)
    pipeline = Pipeline(open_hybrid(index, RecommendConfig()), stages, RANKING_DEPTH)
    found = np.zeros(1 + len(ADDED))
    for i, candidates in enumerate(pipeline.all(queries)):
        one = expanded(candidates)
        visits = walk(graph, one.snapshot, one.rows)
        rows = visits.indices.astype(np.int32)
        is_new = within(queries.eligible[i], index.papers.years, rows) & ~np.isin(rows, one.rows)
        best = rows[is_new][np.lexsort((rows[is_new], -visits.data[is_new]))]
        known = np.isin(queries.gold[i], one.rows).sum()
        found += [known, *(known + np.isin(queries.gold[i], best[:n]).sum() for n in ADDED)]
    return (found / sum(map(len, queries.gold))).tolist()


if __name__ == "__main__":
    main()
