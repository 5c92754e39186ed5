"""Prints the weight of citerec: its syntax nodes by folder, and how many of its modules a command imports and enters.

    python experiments/loaded.py                     nodes, lines and modules by folder, density, habits
    python experiments/loaded.py recommend --index indexes/sample --title "Citation networks"
    python experiments/loaded.py --names recommend …           the same, and each entered module

A line of code is no blank line, comment or docstring. A tuple assignment binds a tuple of values to a tuple of names.
A module is entered if one of its functions is called; the body of a module that is imported, and of a class, does not
count. The command runs in a process of its own, and its output goes to stderr.
"""

import ast
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Weight:
    """What some Python files weigh."""

    nodes: int  # of their syntax trees
    code: int  # lines
    tuples: int  # assignments of a tuple of values to a tuple of names
    ones: int  # bindings of the name `one`

    @classmethod
    def of(cls, files: Iterable[Path]) -> "Weight":
        """Weigh files."""
        nodes = code = tuples = ones = 0
        for file in files:
            text = file.read_text(encoding="utf-8")
            tree = ast.parse(text)
            docstrings: set[int] = set()
            for node in ast.walk(tree):
                nodes += 1
                match node:
                    case ast.Assign(targets=[ast.Tuple()], value=ast.Tuple()):
                        tuples += 1
                    case ast.Name("one", ast.Store()) | ast.arg("one"):
                        ones += 1
                    case ast.Expr(ast.Constant(str())):
                        docstrings |= {*range(node.lineno, (node.end_lineno or 0) + 1)}
                    case _:
                        pass
            for number, line in enumerate(text.splitlines(), start=1):
                code += bool(line.split("#")[0].strip()) and number not in docstrings
        return cls(nodes, code, tuples, ones)

    @property
    def density(self) -> float:
        """Nodes per line of code."""
        return self.nodes / self.code

    @property
    def tuple_rate(self) -> float:
        """Tuple assignments per 1,000 lines of code."""
        return 1000 * self.tuples / self.code


def package_files() -> list[Path]:
    """Return the files of the package without its lab."""
    return [
        file
        for file in PACKAGE.rglob("*.py")
        if "lab" not in file.relative_to(PACKAGE).parts
    ]


def by_folder() -> None:
    """Print what each folder of the package weighs, then the whole, its lab, tests and experiments."""
    folders: dict[str, list[Path]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE).parts
        folders.setdefault(place[0] if len(place) > 1 else "(top)", []).append(file)
    whole = {"the package without lab": package_files()}
    for name in ("tests", "experiments"):
        own = (ROOT / name).rglob("*.py")
        whole[name] = [file for file in own if "node_modules" not in file.parts]
    print("   nodes    code  a line  tuples  one  modules")
    for name, files in {**folders, **whole}.items():
        weight = Weight.of(files)
        print(
            f"{weight.nodes:8,} {weight.code:7,} {weight.density:7.2f} {weight.tuple_rate:7.1f} "
            f"{weight.ones:4} {len(files):8}  {name}"
        )


def main(arguments: list[str]) -> None:
    """Print the weight of the package, or what a command imports and enters."""
    names = arguments[:1] == ["--names"]
    command = arguments[names:]
    if not command:
        by_folder()
        return
    imported, entered = loaded(command)
    for file, functions in sorted(entered.items()) if names else ():
        print(
            f"{functions:6,} functions of {lines(file):5,} lines in {file.relative_to(ROOT)}"
        )
    print(f"{len(imported)} modules imported, {sum(map(lines, imported)):,} lines")
    print(f"{len(entered)} modules entered, in {sum(entered.values()):,} functions")


if __name__ == "__main__":
    main(sys.argv[1:])
