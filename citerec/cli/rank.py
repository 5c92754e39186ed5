"""The options of all commands that rank by a learned ranker, and what they say of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from citerec.cli.console import ConsoleOutput
    from citerec.folder import IndexFolder

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


def measurable(ranker: str, folder: "IndexFolder", console: "ConsoleOutput") -> str:
    """Return the ranker to measure: the index's own may have learned from what are test queries now."""
    from citerec.rank.ranker import DEFAULT, OWN, find_ranker, trained_on_other_data

    own = folder.models / OWN
    if (
        ranker != "auto"
        or find_ranker(ranker, folder) != own
        or not trained_on_other_data(own, folder)
    ):
        return ranker
    name = f"{folder.models.name}/{OWN}"
    console.warn(
        f"{name} is left out: it was not trained on these papers and splits, and would be measured on papers that it "
        f"learned from; train it anew: citerec train-ranker --index {folder.path} --force, or name it all the same: "
        f"--ranker {own}"
    )
    return str(DEFAULT)


def told_ranker(folder: "IndexFolder", ranker: str) -> dict[str, str] | None:
    """Return what a report tells of a ranker; None for none."""
    from citerec.rank.ranker import find_ranker, open_ranker

    found = find_ranker(ranker, folder)
    if found is None:
        return None
    opened = open_ranker(found)
    return {"model": opened.shown, "weights": opened.fingerprint}
