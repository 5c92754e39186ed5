"""Train cross-encoders by settings files; write their loss curves and dev measures, and one table of them all.

    python experiments/curves.py --index indexes/vis.minilm experiments/reranker/trainings/plateau_*.toml

A training takes minutes to an hour; a model that lies in the index and was trained so is taken as it is. The models
of the others are thrown away: what is kept is `results/curves/<settings>.json` and CURVES.md.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import orjson

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "curves"
PAGE = HERE / "CURVES.md"
COLUMNS = "| training | begins with | loss | teacher | updates | first loss | last loss | dev MRR | dev F1@20 | mixed |"


def main() -> None:
    """Train what is asked for, then write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", type=Path, nargs="*", help="settings of citerec train-reranker")
    parser.add_argument("--index", type=Path, help="an index that holds the corpus")
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for file in options.files:
        told = _trained(file, options.index)
        kept = {"settings_file": str(file), "index": options.index.name} | {
            name: told[name]
            for name in ("base", "counts", "history", "loss_curve", "best_step", "provenance")
            if name in told
        }
        path = RESULTS / f"{file.stem}.json"
        path.write_bytes(orjson.dumps(kept, option=orjson.OPT_INDENT_2) + b"\n")
        print(f"curves: {path}", file=sys.stderr)
    PAGE.write_text(_page(), encoding="utf-8")


def _trained(file: Path, index: Path) -> dict[str, Any]:
    """Return what training.json tells of a model that was trained by a file."""
    from citerec.folder import open_index
    from citerec.java import start_jvm
    from citerec.train.reranker.config import RerankerTraining
    from citerec.train.reranker.train import train_reranker, was_trained_so

    start_jvm(None)
    folder, config = open_index(index), RerankerTraining.read(file, {})
    for model in (folder.models / "reranker", folder.models / f"reranker-{file.stem}"):
        if was_trained_so(model, folder, config):
            return orjson.loads((model / "training.json").read_bytes())
    with tempfile.TemporaryDirectory(prefix="citerec-curve-") as temporary:
        model = Path(temporary) / "reranker"
        train_reranker(folder, model, config, log=lambda line: print(line, file=sys.stderr))
        return orjson.loads((model / "training.json").read_bytes())


def _page() -> str:
    lines = [
        "# How cross-encoders learn",
        "",
        "Made by `python experiments/curves.py` from `results/curves/`; do not edit. Losses are means over a tenth of "
        "the updates; those of different kinds are not comparable. The dev measures are of reranking the best "
        "candidates of some dev queries: as found → as the model alone orders them; `mixed` is F1@20 of the best "
        "mixture of both.",
        "",
        COLUMNS,
        "|---|---|---|---|--:|--:|--:|--:|--:|--:|",
        *(_line(file) for file in sorted(RESULTS.glob("*.json"))),
    ]
    return "\n".join(lines) + "\n"


def _line(file: Path) -> str:
    told: dict[str, Any] = orjson.loads(file.read_bytes())
    settings, losses = told["provenance"]["settings"], [loss for _, loss in told["loss_curve"]]
    part = max(len(losses) // 10, 1)
    first, last = sum(losses[:part]) / part, sum(losses[-part:]) / part
    found, *points = told["history"]
    after = max(points, key=lambda point: point["dev_mixed"])
    cells = [
        f"[{file.stem}]({Path(told['settings_file']).relative_to('experiments')})",
        told["base"],
        settings["loss"] + (f" + {settings['distill']:g} KL" if settings["distill"] else ""),
        settings["teacher"],
        str(points[-1]["step"]),
        f"{first:.3f}",
        f"{last:.3f}",
        *(f"{found[name]:.3f} → {after[name]:.3f}" for name in ("dev_mrr", "dev_f1", "dev_mixed")),
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
