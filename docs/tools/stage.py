"""Collects what the site is made of: `python docs/tools/stage.py FOLDER`.

The pages of the site are the Markdown files of the repository: those of `docs/`, the README, and whatever these link
to. They are linked into FOLDER at the same relative paths, so that one and the same link works in the repository and on
the site, and an edit of a page is seen at once by `zensical serve`.
"""

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
LINK = re.compile(
    r"\]\((?!https?:|mailto:|#)([^)#\s]+)|(?:src|srcset)=\"(?!https?:)([^\"#]+)\""
)
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def pages() -> list[Path]:
    """Return the Markdown files that the site begins with."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def links(page: Path) -> list[str]:
    """Return what a Markdown file links to inside the repository, without what its code blocks show."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return [first or second for first, second in LINK.findall(text)]


def site_files() -> list[Path]:
    """Return the files of the site: the pages, and all that can be reached from them by links."""
    files, pending = dict[Path, None](), pages()
    while pending:
        file = pending.pop()
        if file in files or not file.is_file() or not file.is_relative_to(ROOT):
            continue
        files[file] = None
        if file.suffix == ".md":
            pending += [(file.parent / link).resolve() for link in links(file)]
    return sorted(files)


def stage(folder: Path) -> None:
    """Link the files of the site into a folder, which is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    for file in site_files():
        place = folder / file.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(file)


if __name__ == "__main__":
    stage(Path(sys.argv[1]))
