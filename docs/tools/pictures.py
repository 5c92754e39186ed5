"""Draws the pictures of the documentation: `python docs/tools/pictures.py`.

Each picture is a function that returns a title, a height and shapes; `main` writes them to docs/pictures/ as SVG that
follows the light or dark setting of the reader. The pipeline is also written as two files, one for each setting: the
README chooses between them.
"""

from collections.abc import Callable
from math import exp
from pathlib import Path

from shapes import DARK, LIGHT, arrow, box, curve, dot, line, style, svg, text

FOLDER = Path(__file__).parent.parent / "pictures"

Picture = tuple[str, int, list[str]]  # title, height, shapes


def pipeline() -> Picture:
    """From a draft to a list."""
    title = "A draft goes to BM25 and vectors; fusion, expansion, reranking and LambdaMART make one list"
    boxes = [
        box(16, 76, 104, 76, ["draft", "title,", "abstract"]),
        box(156, 34, 132, 62, ["BM25", "words · Lucene"]),
        box(156, 132, 132, 62, ["vectors", "meaning · faiss"]),
        box(322, 76, 98, 76, ["fusion", "RRF or", "tuned weights"], "b-main"),
        box(452, 34, 138, 62, ["expansion", "citation graph"]),
        box(452, 132, 138, 62, ["cross-encoder", "if there is one"]),
        box(624, 76, 120, 76, ["LambdaMART", "21 features"], "b-main"),
    ]
    ends = [
        ((120, 100), (154, 72)),
        ((120, 128), (154, 156)),
        ((288, 66), (320, 96)),
        ((288, 162), (320, 132)),
        ((420, 96), (450, 72)),
        ((521, 96), (521, 130)),
        ((590, 152), (622, 128)),
        ((590, 72), (622, 100)),
        ((684, 152), (684, 186)),
    ]
    result = ["ranked list with", "probabilities", "and reasons"]
    rule = "in every stage: nothing of a later year, not the draft itself, nothing excluded"
    return (
        title,
        252,
        [
            *boxes,
            *(arrow(*start, *end) for start, end in ends),
            *(text(684, 204 + 17 * n, words, "f-main", 13) for n, words in enumerate(result)),
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
        text(left + 310, bottom + 38, "how often the term occurs in the paper", "f-soft", 13),
        text(left + 8, 24, label, "f-soft", 13, "start"),
    ]
    shapes += [text(left + step * tf, bottom + 18, str(tf), "f-soft", 12) for tf in range(11)]
    papers = ((0.5, "main", "half as long as the mean"), (1, "ink", "of mean length"))
    for number, (ratio, cls, words) in enumerate((*papers, (2, "warm", "twice as long"))):
        norm = 1.2 * (1 - 0.75 + 0.75 * ratio)
        shares = [t / 10 / (t / 10 + norm) for t in range(101)]
        points = [(left + step * t / 10, bottom - high * y) for t, y in enumerate(shares)]
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
    right = [(520, 60), (560, 186), (610, 110), (660, 60), (676, 180), (486, 206), (590, 40)]
    shapes = ['<circle class="l-main" cx="368" cy="126" r="86" stroke-dasharray="5 4"/>']
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
    points = {paper: sum(1 / (60 + rank) for rank in found) for paper, found in ranks.items()}
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
    return "Reciprocal rank fusion: a paper scores the sum of 1 / (60 + rank)", 246, shapes


def expansion() -> Picture:
    """Neighbours of the draft and the papers that they cite."""
    neighbours = [(300, 56, "1/61"), (300, 126, "1/62"), (300, 196, "1/63")]
    cited = [(560, 56, "cited by 1"), (560, 126, "cited by 3"), (560, 196, "cited by 1")]
    shapes = [box(36, 96, 110, 60, ["draft"])]
    for number, (x, y, weight) in enumerate(neighbours, 1):
        shapes += [
            arrow(146, 126, x - 66, y, dashed=True),
            box(x - 64, y - 24, 128, 48, [f"neighbour {number}", f"weight {weight}"]),
        ]
    for i, j in ((0, 0), (0, 1), (1, 1), (2, 1), (2, 2)):
        shapes.append(arrow(366, neighbours[i][1], 494, cited[j][1], "main" if j == 1 else "edge"))
    shapes += [
        box(x - 64, y - 24, 128, 48, ["candidate", share], "b-main" if n == 1 else "b-box")
        for n, (x, y, share) in enumerate(cited)
    ]
    shapes += [
        text(190, 240, "similar", "f-soft", 13),
        text(430, 240, "cites", "f-soft", 13),
        text(700, 122, "joins the", "f-main", 13),
        text(700, 140, "candidates", "f-main", 13),
        arrow(624, 126, 660, 126, "main"),
    ]
    return (
        "Expansion: papers that the draft's nearest neighbours cite join the candidates",
        258,
        shapes,
    )


def reranking() -> Picture:
    """What a cross-encoder reads, and how its probability joins the first stages' score."""
    parts = [
        (24, 62, "[CLS]", "b-main"),
        (86, 250, "draft: at most 254 tokens", "b-box"),
        (336, 62, "[SEP]", "b-main"),
        (398, 276, "candidate: at most 255 tokens", "b-box"),
        (674, 62, "[SEP]", "b-main"),
    ]
    shapes = [
        f'<rect class="{cls}" x="{x}" y="34" width="{w}" height="42"/>'
        + text(x + w / 2, 60, words, "f-ink", 13)
        for x, w, words, cls in parts
    ]
    shapes += [
        text(211, 26, "256 tokens, segment 0", "f-soft", 12),
        text(567, 26, "256 tokens, segment 1", "f-soft", 12),
        arrow(380, 76, 380, 108),
        box(290, 110, 180, 44, ["cross-encoder"]),
        arrow(380, 154, 380, 184),
        box(262, 186, 236, 50, ["p", "calibrated probability of a citation"], "b-main"),
        box(24, 186, 200, 50, ["f", "first stages' score, in [0, 1]"]),
        box(538, 186, 198, 50, ["w · p + (1 − w) · f", "orders the list"], "b-main"),
        arrow(498, 211, 536, 211),
        '<path class="l-edge" d="M124,236 V258 H637 V246"/>',
        '<polygon class="f-edge" points="637,237 633,246 641,246"/>',
    ]
    return (
        "Reranking: a cross-encoder reads draft and candidate as one input and gives a probability",
        274,
        shapes,
    )


def ranking() -> Picture:
    """Feature groups, trees, score, probability."""
    groups = [
        "words (BM25)",
        "meaning (vectors)",
        "cross-encoder",
        "citation graph",
        "popularity and age",
        "authors",
        "venue",
        "text",
    ]
    shapes: list[str] = []
    for n, name in enumerate(groups):
        y = 20 + 29 * n
        shapes += [
            f'<rect class="b-box" x="24" y="{y}" width="170" height="24" rx="6"/>',
            text(109, y + 17, name, "f-ink", 13),
            line(194, y + 12, 240, 136),
        ]
    shapes += [
        arrow(232, 136, 262, 136),
        box(264, 96, 168, 80, ["LambdaMART", "boosted trees over", "21 features"], "b-main"),
        arrow(432, 136, 466, 136),
        box(468, 106, 92, 60, ["score", "orders the list"]),
        arrow(560, 136, 590, 136),
    ]
    shapes.append('<rect class="b-box" x="592" y="76" width="144" height="120" rx="8"/>')
    points = [(606 + 116 * t / 40, 180 - 76 / (1 + exp(-(t - 20) / 3.2))) for t in range(41)]
    shapes += [
        curve(points, "main"),
        text(664, 94, "probability", "f-bold", 13),
        text(664, 216, "sigmoid, fitted on dev", "f-soft", 12),
    ]
    return (
        "Learning to rank: features of eight groups, LambdaMART, a score, a calibrated probability",
        268,
        shapes,
    )


def graph() -> Picture:
    """Which citations a query of 2019 knows."""
    known = [((2018, 70), (2015, 110)), ((2017, 150), (2014, 120)), ((2018, 70), (2016, 172))]
    unknown = [((2020, 96), (2016, 172)), ((2021, 150), (2018, 70)), ((2019, 184), (2017, 150))]
    at = {year: 80 + 88 * (year - 2014) for year in range(2014, 2022)}
    shapes = [
        line(50, 208, 720, 208),
        '<rect class="f-tint" x="50" y="30" width="426" height="178" opacity="0.5"/>',
        *(text(x, 228, str(year), "f-soft", 13) for year, x in at.items()),
        text(258, 22, "known to the query", "f-main", 13),
        text(600, 22, "unknown", "f-warm", 13),
    ]
    for pairs, cls in ((known, "main"), (unknown, "warm")):
        for (citing, y1), (cited, y2) in pairs:
            x1, x2 = at[citing] - 6, at[cited] + 9
            shapes.append(arrow(x1, y1, x2, y2 + (y1 - y2) * 0.03, cls, dashed=cls == "warm"))
    earlier = sorted({paper for pair in known for paper in pair})
    shapes += [dot(at[year], y, 7, "main") for year, y in earlier]
    shapes += [dot(at[year], y, 7, "warm") for (year, y), _ in unknown]
    note = "arrows: citations; solid: made in earlier years; dashed: made in its own year or later"
    shapes += [
        dot(at[2019], 54, 10, "ink"),
        text(at[2019] + 18, 59, "query of 2019", "f-bold", 13, "start"),
        text(380, 254, note, "f-soft", 13),
    ]
    return (
        "The citation graph in time: a query of 2019 knows the citations of earlier years only",
        270,
        shapes,
    )


def evaluation() -> Picture:
    """The split by year, and from queries to a report."""
    shapes = [
        '<rect class="b-main" x="24" y="48" width="568" height="40"/>',
        '<rect class="b-box" x="592" y="48" width="71" height="40"/>',
        '<rect class="b-box" x="663" y="48" width="73" height="40"/>',
        text(308, 73, "train: the oldest 80 %", "f-ink", 14),
        text(628, 73, "dev", "f-ink", 14),
        text(699, 73, "test", "f-ink", 14),
        text(24, 36, "papers by year, oldest first", "f-soft", 13, "start"),
        text(308, 108, "models learn from these citations", "f-soft", 12),
        text(628, 108, "settings", "f-soft", 12),
        text(699, 108, "figures", "f-soft", 12),
        box(24, 150, 150, 64, ["query", "title and abstract of", "a test paper"]),
        arrow(174, 182, 212, 182),
        box(214, 150, 130, 64, ["system", "BM25, rrf, ranker, …"]),
        arrow(344, 182, 382, 182),
        box(384, 150, 120, 64, ["run", "1000 papers"]),
        arrow(504, 182, 542, 182),
        box(
            544,
            150,
            192,
            64,
            ["metrics", "F1@20, MRR, R@100, …", "with intervals and tests"],
            "b-main",
        ),
        box(384, 226, 120, 36, ["gold citations"]),
        arrow(504, 244, 580, 216),
    ]
    return (
        "Evaluation: a split by year, test papers as queries, their true references as gold",
        276,
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
