"""`citerec export`."""

from pathlib import Path
from typing import Annotated

from citerec.bibliography.styles import ReferenceConfig, notice_of, references
from citerec.cli.console import ConsoleOutput, check_output, read_list, write_result
from citerec.cli.options import Index, open_named, settings_options
from citerec.display import plural, some_of
from citerec.errors import BadInputError


@settings_options
def export(
    papers: Annotated[
        Path,
        "A shelf, or any list that `recommend --cited` reads.",
    ],
    *,
    config: ReferenceConfig,
    index: Index = None,
    avoid: Annotated[
        Path | None, "Your .bib: bibtex has no citation key of it."
    ] = None,
    output: Annotated[Path | None, "Output file, in place of stdout."] = None,
    append: Annotated[
        Path | None,
        "Add the papers to this .bib or .ris, but those that it has; FILE.bak keeps what it was.",
    ] = None,
    zotero: Annotated[
        bool,
        "Save the papers into the Zotero that runs.",
    ] = False,
    console: ConsoleOutput,
) -> None:
    """Write papers of the corpus as references: for a reference manager, or in a citation style.

    With --append or --zotero, they go there in place of stdout.
    """
    from citerec.cli.recommend import report_appended
    from citerec.collect.zotero import save_papers
    from citerec.match.append import append_papers
    from citerec.match.check import chosen_papers

    check_output(output)
    listed = read_list(papers, console)
    folder = open_named(index)
    taken = read_list(avoid, console).keys if avoid else ()
    found, notes, missing = chosen_papers(listed, folder.papers)
    absent = f"; not in this corpus: {some_of(missing)}" if missing else ""
    if not found:
        raise BadInputError(papers, f"none of its papers is in {folder.path}{absent}")
    if append:
        report_appended(append_papers(append, found, notes), console)
    if zotero:
        saved = save_papers(found, notes)
        known = len(found) - saved
        console.log(f"{plural(saved, 'paper')} saved to Zotero; it had {known}")
    if not (append or zotero):
        write_result(references(found, config, notes, taken), output)
    console.log(f"{papers}: {plural(len(found), 'paper')} in this corpus{absent}")
    if notice := notice_of(found, config):
        console.log(notice)
