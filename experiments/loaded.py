"""Prints how many modules of citerec a command imports, and how many lines they have.

    python experiments/loaded.py recommend --index indexes/sample --title "Citation networks"

The command runs in a process of its own, and its output goes to stderr. With `--names` first, the modules are listed.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

CHILD = """
import sys
from citerec.cli import run
code = run(sys.argv[2:])
loaded = [m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "citerec"]
open(sys.argv[1], "w").write("\\n".join(sorted(loaded)))
sys.exit(code)
"""


def loaded(command: list[str]) -> dict[Path, int]:
    """Return the files of citerec that `citerec COMMAND` imports, with their number of lines."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "loaded"
        arguments = [sys.executable, "-c", CHILD, str(report), *command]
        subprocess.run(arguments, check=True, stdout=sys.stderr)
        files = map(Path, report.read_text().splitlines())
        return {file: len(file.read_text().splitlines()) for file in files}


def main(arguments: list[str]) -> None:
    """Print the sums, and with `--names` each module before them."""
    names = arguments[:1] == ["--names"]
    files = loaded(arguments[names:])
    for file, lines in files.items() if names else ():
        print(f"{lines:6,} {file}")
    print(f"{len(files)} modules, {sum(files.values()):,} lines")


if __name__ == "__main__":
    main(sys.argv[1:])
