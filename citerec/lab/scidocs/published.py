"""The results of the SPECTER paper (Cohan et al. 2020, https://aclanthology.org/2020.acl-main.207), as data.

All values are shares in [0, 1]; the paper prints them times 100. The text and table 1 of the paper differ in SPECTER's
MAP for co-view (83.8 and 83.6), and the mean for user activity in table 2 (88.4) is not that of table 1 (88.0); the
values here are those of the tables.
"""

from collections.abc import Mapping, Sequence

TASKS: Mapping[str, tuple[str, ...]] = {
    "mag": ("mag f1",),
    "mesh": ("mesh f1",),
    "co-view": ("co-view map", "co-view ndcg"),
    "co-read": ("co-read map", "co-read ndcg"),
    "cite": ("cite map", "cite ndcg"),
    "co-cite": ("co-cite map", "co-cite ndcg"),
    "recommendation": ("recommendation ndcg", "recommendation p@1"),
}
"""The tasks in the order of table 1, and their metrics."""

METRICS = tuple(metric for metrics in TASKS.values() for metric in metrics)

GROUPS: Mapping[str, tuple[str, ...]] = {
    "cls": ("mag", "mesh"),
    "usr": ("co-view", "co-read"),
    "cite": ("cite", "co-cite"),
    "rec": ("recommendation",),
}
"""The groups of tasks of tables 2 and 3: each the mean of all its metrics."""

SPECTER = "SPECTER"


def _row(names: Sequence[str], percent: Sequence[float]) -> dict[str, float]:
    return {name: round(p / 100, 4) for name, p in zip(names, percent, strict=True)}


def _rows(
    names: Sequence[str], table: Mapping[str, Sequence[float]]
) -> dict[str, Mapping[str, float]]:
    return {system: _row(names, percent) for system, percent in table.items()}


TABLE_1 = _rows(
    [*METRICS, "average"],
    {
        "Random": (
            4.8,
            9.4,
            25.2,
            51.6,
            25.6,
            51.9,
            25.1,
            51.5,
            24.9,
            51.4,
            51.3,
            16.8,
            32.5,
        ),
        "Doc2vec": (
            66.2,
            69.2,
            67.8,
            82.9,
            64.9,
            81.6,
            65.3,
            82.2,
            67.1,
            83.4,
            51.7,
            16.9,
            66.6,
        ),
        "Fasttext-sum": (
            *(78.1, 84.1, 76.5, 87.9, 75.3, 87.4),
            *(74.6, 88.1, 77.8, 89.6, 52.5, 18.0, 74.1),
        ),
        "SIF": (
            78.4,
            81.4,
            79.4,
            89.4,
            78.2,
            88.9,
            79.4,
            90.5,
            80.8,
            90.9,
            53.4,
            19.5,
            75.9,
        ),
        "ELMo": (
            77.0,
            75.7,
            70.3,
            84.3,
            67.4,
            82.6,
            65.8,
            82.6,
            68.5,
            83.8,
            52.5,
            18.2,
            69.0,
        ),
        "Citeomatic": (
            *(67.1, 75.7, 81.1, 90.2, 80.5, 90.2),
            *(86.3, 94.1, 84.4, 92.8, 52.5, 17.3, 76.0),
        ),
        "SGC": (
            76.8,
            82.7,
            77.2,
            88.0,
            75.7,
            87.5,
            91.6,
            96.2,
            84.1,
            92.5,
            52.7,
            18.2,
            76.9,
        ),
        "SciBERT": (
            79.7,
            80.7,
            50.7,
            73.1,
            47.7,
            71.1,
            48.3,
            71.7,
            49.7,
            72.6,
            52.1,
            17.9,
            59.6,
        ),
        "Sent-BERT": (
            80.5,
            69.1,
            68.2,
            83.3,
            64.8,
            81.3,
            63.5,
            81.6,
            66.4,
            82.8,
            51.6,
            17.1,
            67.5,
        ),
        SPECTER: (
            82.0,
            86.4,
            83.6,
            91.5,
            84.5,
            92.4,
            88.3,
            94.9,
            88.1,
            94.8,
            53.9,
            20.0,
            80.0,
        ),
    },
)
"""Table 1, by system and metric."""

_MEANS = (*GROUPS, "average")

TABLE_2 = _rows(
    _MEANS,
    {
        SPECTER: (84.2, 88.4, 91.5, 36.9, 80.0),
        "- abstract": (82.2, 72.2, 73.6, 34.5, 68.1),
        "+ venue": (84.5, 88.0, 91.2, 36.7, 79.9),
        "+ author": (82.7, 72.3, 71.0, 34.6, 67.3),
        "No hard negatives": (82.4, 85.8, 89.8, 36.8, 78.4),
        "Start w/ BERT-Large": (81.7, 85.9, 87.8, 36.1, 77.5),
    },
)
"""Table 2, ablations, by system and group."""

TABLE_3 = _rows(
    _MEANS,
    {
        SPECTER: (84.2, 88.4, 91.5, 36.9, 80.0),
        "SciBERT fine-tune on co-view": (83.0, 84.2, 84.1, 36.4, 76.0),
        "SciBERT fine-tune on co-read": (82.3, 85.4, 86.7, 36.3, 77.1),
        "SciBERT fine-tune on co-citation": (82.9, 84.3, 85.2, 36.6, 76.4),
        "SciBERT fine-tune on multitask": (83.3, 86.1, 88.2, 36.0, 78.0),
    },
)
"""Table 3, training signals, by system and group."""

FIGURE_2 = _rows(
    ("homogeneity", "completeness"), {SPECTER: (41, 72), "SciBERT": (19, 63)}
)
"""The clusters of figure 2, section 6."""
