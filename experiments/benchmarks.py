"""Write BENCHMARKS.md: citerec beside published rankings of the same pools.

    citerec experiment run experiments/benchmarks/doris-mae.toml experiments/benchmarks/csfcube.toml
    python experiments/benchmarks.py

The first command measures; each row names the folder of its benchmark, which the project does not contain: papers and
queries, graded judgements, and published rankings as TREC runs.
"""

from pathlib import Path

import orjson

from citerec.lab.experiment.pools import DEFAULT
from citerec.lab.experiment.row import read_experiment

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "benchmarks"
NAMES = ("doris-mae", "csfcube")
ABOUT = """# Published benchmarks

The same pools of judged papers, ranked by citerec and by others, all evaluated by the same code; 100 is best. Made by
`citerec experiment run experiments/benchmarks/*.toml` (without `table.toml`), then `python experiments/benchmarks.py`.
Nothing was trained on them. Behind nDCG its 95 % interval, and that of its difference to the default list (bootstrap
over queries, paired).

Cautions: the pools of DORIS-MAE are those of BIRCO, which are smaller than the published ones, so figures differ from
the paper's; its grades are by a language model; 40 queries are few, and differences of two points are within chance.
CSFCube's papers have one ranking for all facets. Both corpora have no citations, authors or venues.
"""


def main() -> None:
    """Write the results as a page."""
    lines = [ABOUT]
    for name in NAMES:
        row = read_experiment(HERE / "benchmarks" / f"{name}.toml")
        assert row.pools
        lines += [
            f"## {row.title}",
            "",
            f"| system | {row.pools.name} | 95 % | less the default list's, 95 % | MAP |",
            "|---|--:|---|---|--:|",
        ]
        for of in orjson.loads((RESULTS / f"{name}.json").read_bytes())["rows"]:
            low, high = (100 * end for end in of["ci95"])
            less, more = (100 * end for end in of["less_default"])
            apart = "" if of["system"] == DEFAULT else f"{less:+.1f} to {more:+.1f}"
            values = f"{100 * of['ndcg']:.1f} | {low:.1f} to {high:.1f} | {apart} | {100 * of['map']:.1f}"
            lines.append(f"| {of['system']} | {values} |")
        lines.append("")
    (HERE / "BENCHMARKS.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
