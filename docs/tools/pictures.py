"""Draws the pictures of the documentation: `python docs/tools/pictures.py`.

Each picture is a function that returns a title, a height and shapes; `main` writes them to docs/pictures/ as SVG that
follows the light or dark setting of the reader. The pipeline is also written as two files, one for each setting: the
README chooses between them.
"""

from collections.abc import Callable
from pathlib import Path

from later_pictures import READ, evaluation, expansion, graph, ranking, reranking
from shapes import DARK, LIGHT, Picture, arrow, box, curve, dot, line, style, svg, text

FOLDER = Path(__file__).parent.parent / "pictures"


def pipeline() -> Picture:
    """From a draft to a list."""
    title = (
        "A draft goes to BM25 and vectors; fusion, expansion and LambdaMART make one list, "
        "which a cross-encoder that you train may rerank"
    )
    boxes = [
        box(16, 76, 104, 76, ["draft", "title,", "abstract"]),
        box(156, 34, 132, 62, ["BM25", "lexical · Lucene"]),
        box(156, 132, 132, 62, ["vectors", "semantic · faiss"]),
        box(322, 76, 98, 76, ["fusion", "RRF or", "weighted sum"], "b-main"),
        box(452, 34, 138, 62, ["expansion", "citation graph"]),
        box(452, 132, 138, 62, ["LambdaMART", f"{READ} features"], "b-main"),
        box(
            624,
            24,
            120,
            76,
            ["cross-encoder", "optional: trained", "on your corpus"],
            dashed=True,
        ),
    ]
    ends = [
        ((120, 100), (154, 72)),
        ((120, 128), (154, 156)),
        ((288, 66), (320, 96)),
        ((288, 162), (320, 132)),
        ((420, 96), (450, 72)),
        ((521, 96), (521, 130)),
        ((590, 163), (630, 163)),
    ]
    optional = [((590, 138), (622, 96)), ((684, 100), (684, 142))]
    result = ["ranked list with", "probabilities", "and reasons"]
    rule = "in every stage: nothing of a later year, not the draft itself, nothing excluded"
    return (
        title,
        252,
        [
            *boxes,
            *(arrow(*start, *end) for start, end in ends),
            *(arrow(*start, *end, dashed=True) for start, end in optional),
            *(
                text(688, 159 + 17 * n, words, "f-main", 13)
                for n, words in enumerate(result)
            ),
            line(156, 214, 590, 214, "warm"),
            line(156, 208, 156, 214, "warm"),
            line(590, 208, 590, 214, "warm"),
            text(373, 234, rule, "f-soft", 12),
        ],
    )


def bm25() -> Picture:
    """How a repeated term stops counting: tf / (tf + k1 (1 - b + b len / mean))."""
    left, bottom, step, high = 76, 232, 60, 190
    label = "what one term adds, as a share of its idf (k1 = 1.2, b = 0.75)"
    shapes = [
        line(left, bottom, left + 620, bottom),
        line(left, bottom, left, 30),
        line(left, bottom - high, left + 620, bottom - high, "edge", dashed=True),
        text(left - 8, bottom - high + 5, "1", "f-soft", 12, "end"),
        text(left - 8, bottom + 5, "0", "f-soft", 12, "end"),
        text(
            left + 310,
            bottom + 38,
            "how often the term occurs in the paper",
            "f-soft",
            13,
        ),
        text(left + 8, 24, label, "f-soft", 13, "start"),
    ]
    shapes += [
        text(left + step * tf, bottom + 18, str(tf), "f-soft", 12) for tf in range(11)
    ]
    papers = ((0.5, "main", "half as long as the mean"), (1, "ink", "of mean length"))
    for number, (ratio, cls, words) in enumerate(
        (*papers, (2, "warm", "twice as long"))
    ):
        norm = 1.2 * (1 - 0.75 + 0.75 * ratio)
        shares = [t / 10 / (t / 10 + norm) for t in range(101)]
        points = [
            (left + step * t / 10, bottom - high * y) for t, y in enumerate(shares)
        ]
        y = 150 + 22 * number
        shapes += [
            curve(points, cls),
            line(440, y - 5, 470, y - 5, cls),
            text(480, y, f"a paper {words}", "f-ink", 13, "start"),
        ]
    return (
        "BM25: each further occurrence of a term adds less, and less still in long papers",
        286,
        shapes,
    )


def dense() -> Picture:
    """Papers as points; those nearest to the draft, which are not of a later year."""
    near = [(330, 108), (398, 82), (420, 150), (352, 176), (300, 148)]
    later = [(366, 72), (430, 112)]
    left = [(90, 60), (130, 180), (170, 96), (210, 200), (236, 52), (120, 120)]
    right = [
        (520, 60),
        (560, 186),
        (610, 110),
        (660, 60),
        (676, 180),
        (486, 206),
        (590, 40),
    ]
    shapes = [
        '<circle class="l-main" cx="368" cy="126" r="86" stroke-dasharray="5 4"/>'
    ]
    shapes += [dot(x, y, 6, "edge") for x, y in left + right]
    shapes += [line(368, 126, x, y, "main") + dot(x, y, 7, "main") for x, y in near]
    shapes += [f'<circle class="l-warm" cx="{x}" cy="{y}" r="6"/>' for x, y in later]
    legend = (
        ("ink", "draft"),
        ("main", "nearest papers"),
        ("warm", "papers of a later year, left out"),
    )
    for (cls, words), x in zip(legend, (170, 250, 400), strict=True):
        shapes += [
            dot(x, 243, 6, cls)
            if cls != "warm"
            else f'<circle class="l-warm" cx="{x}" cy="243" r="6"/>'
        ]
        shapes += [text(x + 12, 248, words, "f-soft", 13, "start")]
    return (
        "Dense retrieval: the eligible papers whose vectors are nearest",
        264,
        [*shapes, dot(368, 126, 9, "ink")],
    )


def fusion() -> Picture:
    """Two lists into one by reciprocal ranks, with the arithmetic."""
    lists = {"BM25": ["A", "B", "C", "D"], "vectors": ["C", "A", "E", "B"]}
    ranks = {
        paper: [papers.index(paper) + 1 for papers in lists.values() if paper in papers]
        for paper in "ABCDE"
    }
    points = {
        paper: sum(1 / (60 + rank) for rank in found) for paper, found in ranks.items()
    }
    shapes: list[str] = []
    for x, (name, papers) in zip((90, 240), lists.items(), strict=True):
        shapes.append(text(x, 34, name, "f-main"))
        for rank, paper in enumerate(papers, 1):
            shapes.append(box(x - 50, 9 + 38 * rank, 100, 30, [f"{rank}.  {paper}"]))
    shapes += [
        text(430, 34, "sum of 1 / (60 + rank)", "f-soft", 13),
        text(650, 34, "fused", "f-main"),
    ]
    for rank, paper in enumerate(sorted(points, key=lambda paper: -points[paper]), 1):
        y = 24 + 38 * rank
        total = " + ".join(f"1/{60 + r}" for r in ranks[paper])
        shapes += [
            text(430, y + 5, f"{paper}:  {total} = {points[paper]:.4f}", "f-ink", 13),
            arrow(540, y, 596, y),
            box(600, y - 15, 100, 30, [f"{rank}.  {paper}"], "b-main"),
        ]
    return (
        "Reciprocal rank fusion: a paper scores the sum of 1 / (60 + rank)",
        246,
        shapes,
    )


PICTURES: tuple[Callable[[], Picture], ...] = (
    pipeline,
    bm25,
    dense,
    fusion,
    expansion,
    reranking,
    ranking,
    graph,
    evaluation,
)


def main() -> None:
    """Write every picture."""
    FOLDER.mkdir(exist_ok=True)
    both = style(LIGHT) + "@media (prefers-color-scheme: dark){" + style(DARK) + "}"
    for picture in PICTURES:
        title, height, shapes = picture()
        (FOLDER / f"{picture.__name__}.svg").write_text(
            svg(title, height, shapes, both), encoding="utf-8"
        )
    title, height, shapes = pipeline()
    for name, colours in (("light", LIGHT), ("dark", DARK)):
        path = FOLDER / f"pipeline-{name}.svg"
        path.write_text(svg(title, height, shapes, style(colours)), encoding="utf-8")


if __name__ == "__main__":
    main()
