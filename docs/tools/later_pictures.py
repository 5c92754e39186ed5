"""Pictures of the stages after fusion, and of the evaluation."""

from math import exp

from shapes import Picture, arrow, box, curve, dot, line, text

from citerec.rank.features import FEATURES
from citerec.rank.ltr import Variant

READ = sum(map(Variant.FULL.reads, FEATURES))  # features that the trees read


def expansion() -> Picture:
    """Neighbours of the draft and the papers that they cite."""
    neighbours = [(300, 56, "1/61"), (300, 126, "1/62"), (300, 196, "1/63")]
    cited = [
        (560, 56, "cited by 1"),
        (560, 126, "cited by 3"),
        (560, 196, "cited by 1"),
    ]
    shapes = [box(36, 96, 110, 60, ["draft"])]
    for number, (x, y, weight) in enumerate(neighbours, 1):
        shapes += [
            arrow(146, 126, x - 66, y, dashed=True),
            box(x - 64, y - 24, 128, 48, [f"neighbour {number}", f"weight {weight}"]),
        ]
    for i, j in ((0, 0), (0, 1), (1, 1), (2, 1), (2, 2)):
        shapes.append(
            arrow(366, neighbours[i][1], 494, cited[j][1], "main" if j == 1 else "edge")
        )
    shapes += [
        box(
            x - 64,
            y - 24,
            128,
            48,
            ["candidate", share],
            "b-main" if n == 1 else "b-box",
        )
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
    """What a cross-encoder reads, and how its probability is mixed with the score before reranking."""
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
        box(262, 186, 236, 50, ["s", "score of the pair"], "b-main"),
        box(24, 186, 200, 50, ["f", "score before"]),
        box(
            538,
            186,
            198,
            50,
            ["w · z(s) + (1 − w) · z(f)", "orders the list"],
            "b-main",
        ),
        arrow(498, 211, 536, 211),
        '<path class="l-edge" d="M124,236 V258 H637 V246"/>',
        '<polygon class="f-edge" points="637,237 633,246 641,246"/>',
    ]
    return (
        "Reranking, if you train a cross-encoder: it reads draft and candidate as one and gives a score",
        274,
        shapes,
    )


def ranking() -> Picture:
    """Feature groups, trees, score, probability."""
    groups = [
        "lexical (BM25)",
        "semantic (vectors)",
        "cross-encoder, if any",
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
        box(
            264,
            96,
            168,
            80,
            ["LambdaMART", "boosted trees over", f"{READ} features"],
            "b-main",
        ),
        arrow(432, 136, 466, 136),
        box(468, 106, 92, 60, ["score", "orders the list"]),
        arrow(560, 136, 590, 136),
    ]
    shapes.append(
        '<rect class="b-box" x="592" y="76" width="144" height="120" rx="8"/>'
    )
    points = [
        (606 + 116 * t / 40, 180 - 76 / (1 + exp(-(t - 20) / 3.2))) for t in range(41)
    ]
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
    known = [
        ((2018, 70), (2015, 110)),
        ((2017, 150), (2014, 120)),
        ((2018, 70), (2016, 172)),
    ]
    unknown = [
        ((2020, 96), (2016, 172)),
        ((2021, 150), (2018, 70)),
        ((2019, 184), (2017, 150)),
    ]
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
            shapes.append(
                arrow(x1, y1, x2, y2 + (y1 - y2) * 0.03, cls, dashed=cls == "warm")
            )
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
