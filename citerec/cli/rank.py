"""The options of all commands with a learning-to-rank model, and its facts for reports."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from citerec.cli.console import ConsoleOutput
    from citerec.folder import IndexFolder


def measurable(ranker: str, folder: "IndexFolder", console: "ConsoleOutput") -> str:
    """Return the model to evaluate: that of the index only if it was not trained on the current test queries."""
    from citerec.rank.ltr import DEFAULT, SPEC
    from citerec.rules.held_out import RANKER, own_model, own_name, trained_on_other_data

    own = own_model(folder, RANKER, SPEC) if ranker == "auto" else None
    if own is None or not trained_on_other_data(own, folder):
        return ranker
    name = own_name(folder, RANKER)
    console.warn(
        f"{name} is not used: it was trained on other papers or splits, which may include test queries; "
        f"train it again: citerec train-ranker --index {folder.path} --force, or use it anyway: --ranker {own}"
    )
    return str(DEFAULT)


def ranker_provenance(folder: "IndexFolder", ranker: str) -> dict[str, str] | None:
    """Return the name and checksum of a learning-to-rank model for the report; None for none."""
    from citerec.rank.ltr import find_ranker, open_ranker

    folder_of_model = find_ranker(ranker, folder)
    if folder_of_model is None:
        return None
    opened = open_ranker(folder_of_model)
    return {"model": opened.shown, "weights": opened.fingerprint}
