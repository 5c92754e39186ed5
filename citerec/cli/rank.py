"""The options of all commands that rank by a learned ranker."""

from pathlib import Path
from typing import Annotated

import typer

RankerOption = Annotated[
    str,
    typer.Option(
        "--ranker",
        help="auto: the index's own, else the one that comes along; none; or the folder of one.",
    ),
]
NoPopularityOption = Annotated[
    bool,
    typer.Option(
        "--no-popularity",
        help="Rank without citation counts and ages: fair to new and little-cited papers.",
    ),
]
NoAuthorsOption = Annotated[
    bool, typer.Option("--no-authors", help="Rank without knowing who wrote what.")
]
DiversityOption = Annotated[
    float,
    typer.Option(
        min=0, max=1, help="How much papers like those above are held back; 0 for not at all."
    ),
]
CitedOption = Annotated[
    Path | None,
    typer.Option(
        help="References that you have already: ids one a line, or a .bib. They guide the ranker, and stay out."
    ),
]
