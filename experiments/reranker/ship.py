"""Write the cross-encoder of the package as a difference to MiniLM, and measure what that costs.

    python experiments/reranker/ship.py trained/reranker --rank 64 --trained-on indexes/vis
    python experiments/reranker/ship.py trained/reranker --tokens 128 64 --candidates 20 --calibrate indexes/vis
    python experiments/reranker/ship.py trained/reranker --rank 16 32 64 --measure indexes/vis indexes/biomed

The model is a folder of `citerec train-reranker`. `--trained-on` names the indexes of earlier trainings of the same
weights; the index of the last one is in the folder. `--tokens` and `--candidates` are what it reads by default;
`--calibrate` fits its probabilities and its weight on dev queries, as it is stored and reads then (`weight.py` finds
the weight on corpora that it has not seen). With `--measure` nothing is shipped: the whole model and the stored form at
each rank are measured on dev queries, both in float32.
"""

import argparse
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from citerec.encode.difference.folder import read_difference
from citerec.encode.difference.write import write_difference
from citerec.encode.source import DEFAULT_RERANKER, SHIPPED
from citerec.folder import IndexFolder, open_index
from citerec.java import start_jvm
from citerec.manifest import CARD, seal_model
from citerec.rerank.model import load_reranker
from citerec.rerank.spec import read_reranker_spec, write_reranker_spec
from citerec.train.joined import join
from citerec.train.record import corpus_facts, model_card, read_training, table
from citerec.train.reranker.batch import Texts
from citerec.train.reranker.config import RerankerTraining
from citerec.train.reranker.dev import draw_dev, first_stage_measures, load_dev

PLACE = SHIPPED[DEFAULT_RERANKER]
MOST = 30_000_000  # bytes that it may add to the wheel
LOSS = 0.001  # of f1@20 that storing may cost
ABOUT = (
    "It reads a draft and a paper together; its score is high if the draft should cite the paper."
)
USE = "`citerec recommend --reranker {model}`; train it further by `citerec train-reranker --model {model}`."


def main() -> None:
    """Ship the model, or measure its stored forms."""
    options = _options()
    if options.card:
        write_card(options.output, options.notes)
        return
    if options.measure:
        start_jvm(None)
        indexes = [open_index(folder) for folder in options.measure]
        header = ("index", "form", "MB", "dev f1@20", "dev MRR", "loss of f1@20", "bound")
        print(table(header, compare(options.model, indexes, options)))
        return
    [rank] = options.rank
    earlier = [open_index(folder) for folder in options.trained_on]
    ship(options.model, options.output, rank, options.share, earlier=earlier, notes=options.notes)
    configure(options.output, options)
    size = _bytes(options.output)
    bound = "within" if size <= MOST else "ABOVE"
    print(f"{options.output}: {size / 1e6:.1f} MB, {bound} {MOST / 1e6:g} MB")


def ship(
    trained: Path,
    output: Path,
    rank: int,
    share: float,
    *,
    earlier: list[IndexFolder],
    notes: Path | None = None,
) -> None:
    """Write the model as a difference, with its record and card."""
    record = training_of(trained, earlier)
    card = _card(trained, record, output, rank=rank, share=share, notes=notes)
    write_difference(trained, output, rank=rank, share=share, training=record, card=card)


def configure(folder: Path, options: argparse.Namespace) -> None:
    """Set what a stored cross-encoder reads and how deep, and calibrate it."""
    query, candidate = options.tokens
    spec = read_reranker_spec(folder).with_tokens(query, candidate)
    spec = replace(spec, depth=options.candidates or spec.depth)
    write_reranker_spec(folder, spec)
    seal_model(folder)
    if not options.calibrate:
        return
    start_jvm(None)
    index = join([open_index(path) for path in options.calibrate])
    config = reranker_config(options, options.queries * len(options.calibrate))
    dev = load_dev(draw_dev(index, config), config, print)
    if dev is None:
        raise SystemExit("there are no dev queries to calibrate on")
    parts = load_reranker(folder)
    scores = dev.scores(parts, Texts(parts, index.papers), config.running)
    adds = bool(read_training(folder)["provenance"]["settings"].get("first_stage_weight"))
    spec = dev.calibrated(spec, scores, adds=adds)
    print(f"calibrated on {len(dev.gold):,} dev queries: {spec}")
    print(f"first stage {first_stage_measures(dev)}, reranked {dev.measures(scores)}")
    write_reranker_spec(folder, spec)
    seal_model(folder)


def training_of(trained: Path, earlier: list[IndexFolder]) -> dict[str, Any]:
    """Return the record of a training with all indexes that the weights were trained on, under `indexes`."""
    record = read_training(trained)
    data = ("corpus_sha256", "splits_sha256")
    indexes = record.get("indexes") or [
        {"name": record["index"], **{key: record[key] for key in data}}
    ]
    indexes += [{"name": index.manifest.name, **corpus_facts(index)} for index in earlier]
    return {**record, "indexes": [*{tuple(o[key] for key in data): o for o in indexes}.values()]}


def compare(
    trained: Path, indexes: list[IndexFolder], options: argparse.Namespace
) -> list[tuple[str | float | None, ...]]:
    """Return one row of measures per index and form of the model: whole, then stored at each rank."""
    rows: list[tuple[str | float | None, ...]] = []
    measures = {index.manifest.name: reranker_measure(index, options) for index in indexes}
    whole = {index: measured(trained) for index, measured in measures.items()}
    for index, found in whole.items():
        size = f"{(trained / 'model.safetensors').stat().st_size / 1e6:.1f}"
        rows.append((index, "whole, float32", size, found["f1"], found["mrr"], None, ""))
    for rank in options.rank:
        with tempfile.TemporaryDirectory(prefix="citerec-ship-") as temporary:
            folder = Path(temporary, "stored")
            ship(trained, folder, rank, options.share, earlier=[])
            size = f"{_bytes(folder) / 1e6:.1f}"
            for index, measured in measures.items():
                found = measured(folder)
                loss = whole[index]["f1"] - found["f1"]
                bound = "within" if loss <= LOSS else "ABOVE"
                form = f"rank {rank}, share {options.share:g}"
                rows.append((index, form, size, found["f1"], found["mrr"], loss, bound))
    return rows


def reranker_measure(
    index: IndexFolder, options: argparse.Namespace
) -> Callable[[Path], Mapping[str, float]]:
    """Return what measures a cross-encoder on dev queries: the order of their first-stage candidates."""
    config = reranker_config(options, options.queries)
    dev = load_dev(draw_dev(index, config), config, print)
    if dev is None:
        raise SystemExit(f"{index.path} has no dev queries")

    def measured(folder: Path) -> Mapping[str, float]:
        parts = load_reranker(folder)
        return dev.measures(dev.scores(parts, Texts(parts, index.papers), config.running))

    return measured


def reranker_config(options: argparse.Namespace, queries: int) -> RerankerTraining:
    """Return the settings of a measurement on so many dev queries."""
    return RerankerTraining.of(
        {
            "dtype": "auto" if options.calibrate else "float32",
            "candidates": "fused",
            "dev_queries": queries,
            "dev_depth": options.depth,
            "threads": options.threads,
        }
    )


def _card(
    trained: Path,
    record: Mapping[str, Any],
    output: Path,
    *,
    rank: int,
    share: float,
    notes: Path | None,
) -> str:
    names = ", ".join(one["name"] for one in record["indexes"])
    model = DEFAULT_RERANKER if output == PLACE else output.as_posix()
    stored = f"factors of rank {rank}" if rank else "all numbers"
    rows = [(o["name"], o["corpus_sha256"], o["splits_sha256"]) for o in record["indexes"]]
    sections = {
        "Use": USE.format(model=model),
        "Storage": f"The difference to all-MiniLM-L6-v2, {stored} in float16, of which a share of {share:g} is added.",
        "Data": "The train papers of these splits alone.\n\n"
        + table(("index", "sha256 of the corpus", "sha256 of the splits"), rows),
    }
    settings = record["provenance"]["settings"]
    if settings.get("dev_queries") and (measures := _section(trained / CARD, "Measures")):
        sections["Measures"] = measures
    for section in notes.read_text(encoding="utf-8").split("\n## ")[1:] if notes else ():
        heading, _, text = section.partition("\n")
        sections[heading] = text.strip()
    title = f"A cross-encoder for citations, trained on {names}"
    return model_card(title, ABOUT, sections, settings, "all-MiniLM-L6-v2")


def write_card(folder: Path, notes: Path | None) -> None:
    """Write the card of a stored model anew."""
    record, stored = read_training(folder), read_difference(folder)
    card = _card(folder, record, folder, rank=stored.rank, share=stored.share, notes=notes)
    (folder / CARD).write_text(card, encoding="utf-8")
    seal_model(folder)


def _section(card: Path, heading: str) -> str:
    """Return a section of the model card of a training; empty if there is none."""
    text = card.read_text(encoding="utf-8") if card.is_file() else ""
    return text.partition(f"## {heading}\n\n")[2].partition("\n\n## ")[0]


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("model", type=Path, nargs="?", help="the folder of the trained cross-encoder")
    add("--rank", type=int, nargs="+", default=[64], help="rank of the factors; 0 for none")
    add("--share", type=float, default=1.0, help="share of the difference, in [0, 1]")
    add("--trained-on", type=Path, nargs="*", default=[], help="indexes of earlier trainings")
    add("--output", type=Path, default=PLACE, help="the folder; that of the package by default")
    add("--notes", type=Path, help="Markdown whose sections are added to the card")
    add("--card", action="store_true", help="only write the card in the folder of --output anew")
    add("--measure", type=Path, nargs="*", default=[], help="indexes to measure on")
    add("--queries", type=int, default=200, help="dev queries of each index, drawn at random")
    add(
        "--depth",
        type=int,
        default=50,
        help="candidates of a dev query that a cross-encoder orders",
    )
    add("--tokens", type=int, nargs=2, default=[0, 0], help="of query and candidate, by default")
    add("--candidates", type=int, default=0, help="candidates that it orders by default")
    add("--calibrate", type=Path, nargs="*", default=[], help="indexes whose dev queries calibrate")
    add("--threads", type=int, default=0, help="0 for one per processor")
    options = parser.parse_args()
    if not (options.model or options.card):
        parser.error("name the folder of a trained cross-encoder")
    if len(options.rank) > 1 and not options.measure:
        parser.error("several ranks are compared by --measure INDEX; a model is shipped at one")
    return options


if __name__ == "__main__":
    main()
