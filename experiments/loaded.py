"""Prints the weight of citerec: its lines by folder, and how many of its modules a command imports and enters.

    python experiments/loaded.py                     lines and modules by folder, lines of tests
    python experiments/loaded.py recommend --index indexes/sample --title "Citation networks"
    python experiments/loaded.py --names recommend …           the same, and each entered module

A module is entered if one of its functions is called; the body of a module that is imported, and of a class, does not
count. The command runs in a process of its own, and its output goes to stderr.
"""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "citerec"
CHILD = """
import json, sys, threading
entered, functions = {}, set()
package = sys.argv[2]
def profile(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(package) and code not in functions:
        functions.add(code)
        if code.co_flags & 2:  # CO_NEWLOCALS: a function, and no body of a class or module
            entered[code.co_filename] = entered.get(code.co_filename, 0) + 1
from citerec.cli import run
threading.setprofile(profile)
sys.setprofile(profile)
code = run(sys.argv[3:])
sys.setprofile(None)
imported = [m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "citerec"]
json.dump({"imported": sorted(imported), "entered": entered}, open(sys.argv[1], "w"))
sys.exit(code)
"""


def lines(file: Path) -> int:
    """Return the number of lines of a file, blank ones and docstrings included."""
    return len(file.read_text(encoding="utf-8").splitlines())


def loaded(command: list[str]) -> tuple[list[Path], dict[Path, int]]:
    """Return the files of citerec that a command imports, and the number of functions that it calls in each."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "loaded"
        arguments = [sys.executable, "-c", CHILD, str(report), str(PACKAGE), *command]
        subprocess.run(arguments, check=True, stdout=sys.stderr)
        content: dict[str, Any] = json.loads(report.read_text())
    entered = {Path(file): count for file, count in content["entered"].items()}
    return [Path(file) for file in content["imported"]], entered


def by_folder() -> None:
    """Print the modules and lines of each folder of the package, and the lines of tests and experiments."""
    files = [*PACKAGE.rglob("*.py")]
    folders: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    for file in files:
        place = file.relative_to(PACKAGE).parts
        folder = place[0] if len(place) > 1 else "(modules)"
        folders[folder] += lines(file)
        modules[folder] += 1
    for folder in sorted(folders):
        print(f"{folders[folder]:8,} lines {modules[folder]:4} modules  {folder}")
    lab = folders["lab"]
    tests, scripts = (
        sum(map(lines, (ROOT / name).rglob("*.py"))) for name in ("tests", "experiments")
    )
    print(f"{sum(folders.values()) - lab:8,} lines of the package without lab, {lab:,} of lab")
    print(f"{len(files):8,} modules in all")
    print(f"{tests:8,} lines of tests, {scripts:,} of experiments")


def main(arguments: list[str]) -> None:
    """Print the weight of the package, or what a command imports and enters."""
    names = arguments[:1] == ["--names"]
    command = arguments[names:]
    if not command:
        by_folder()
        return
    imported, entered = loaded(command)
    for file, functions in sorted(entered.items()) if names else ():
        print(f"{functions:6,} functions of {lines(file):5,} lines in {file.relative_to(ROOT)}")
    print(f"{len(imported)} modules imported, {sum(map(lines, imported)):,} lines")
    print(f"{len(entered)} modules entered, in {sum(entered.values()):,} functions")


if __name__ == "__main__":
    main(sys.argv[1:])
