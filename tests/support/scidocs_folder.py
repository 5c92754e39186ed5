"""A small folder of the published SciDocs layout: 60 papers of two topics."""

import json
import random
from pathlib import Path

PAPERS = [f"p{n:02}" for n in range(60)]
TOPICS = ("neural language model", "citation graph index")
PROPENSITY = [4.0, 2.0, 1.0, 1.0]


def topic(paper: str) -> int:
    """0 for papers of an even number, 1 for others."""
    return int(paper[1:]) % 2


def metadata(paper: str) -> dict[str, object]:
    """What the folder tells of a paper: it cites the two before it of its topic, and its authors are its topic's."""
    number = int(paper[1:])
    near = {step: f"p{number + step:02}" for step in (-4, -2, 2, 4)}
    return {
        "paper_id": paper,
        "title": f"{TOPICS[topic(paper)]} {paper}",
        "abstract": None if number % 7 == 0 else f"text on {TOPICS[topic(paper)]}",
        "year": 1990 + number // 2 if number % 9 else None,
        "authors": [f"a{topic(paper)}{number % 4}"],
        "references": [p for step, p in near.items() if step < 0 and p in PAPERS],
        "cited_by": [p for step, p in near.items() if step > 0 and p in PAPERS],
    }


def write_published(folder: Path) -> Path:
    """Write the folder; positives are of the query's topic, negatives of the other, and so are clicks."""
    rng = random.Random(0)
    records = json.dumps({paper: metadata(paper) for paper in PAPERS})
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("mag_mesh", "view_cite_read", "recomm"):
        (folder / f"paper_metadata_{name}.json").write_text(records)
    for task in ("mag", "mesh"):
        for split, papers in zip(
            ("train", "val", "test"),
            (PAPERS[:36], PAPERS[36:48], PAPERS[48:]),
            strict=True,
        ):
            lines = [f"{paper},class {topic(paper)}" for paper in papers]
            _write(folder / task / f"{split}.csv", ["pid,class_label", *lines])
    for task in ("coview", "coread", "cite", "cocite"):
        for split in ("val", "test"):
            _write(folder / task / f"{split}.qrel", _qrels(rng))
    for split, clicks in (("train", 80), ("val", 20), ("test", 20)):
        lines = ["query,clicked,shown", *(_click(rng) for _ in range(clicks))]
        _write(folder / "recomm" / f"{split}.csv", lines)
    (folder / "recomm" / "propensity_scores.json").write_text(
        json.dumps({"scores": PROPENSITY})
    )
    return folder


def _write(file: Path, lines: list[str]) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"{line}\n" for line in lines))


def _qrels(rng: random.Random) -> list[str]:
    lines: list[str] = []
    for query in rng.sample(PAPERS, 8):
        alike = [p for p in PAPERS if topic(p) == topic(query) and p != query]
        other = [p for p in PAPERS if topic(p) != topic(query)]
        lines += [f"{query} 0 {paper} 1" for paper in rng.sample(alike, 5)]
        lines += [f"{query} 0 {paper} 0" for paper in rng.sample(other, 25)]
    return lines


def _click(rng: random.Random) -> str:
    query = rng.choice(PAPERS)
    clicked = rng.choice([p for p in PAPERS if topic(p) == topic(query) and p != query])
    shown = [*rng.sample([p for p in PAPERS if topic(p) != topic(query)], 3), clicked]
    rng.shuffle(shown)
    return f'{query},{clicked},"{",".join(shown)}"'
