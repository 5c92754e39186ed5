"""Compiled loops are imported when they pay off."""

import subprocess
import sys


def run(code: str) -> str:
    """What a new process prints, in which nothing is imported yet."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_the_import_waits_for_so_much_work() -> None:
    code = """
import sys
from citerec.compiled import Loops
loops = Loops("citerec.retrieve.kernel", 200)
print([loops.after(work) is not None for work in (0, 150, 49, 1, 0)], "numba" in sys.modules)
"""
    assert run(code) == "[False, False, False, True, True] True\n"


def test_where_numba_is_imported_already_the_loops_are_used_at_once() -> None:
    code = """
import numba
from citerec.compiled import Loops
print(Loops("citerec.retrieve.kernel", 10**9).after(1).__name__)
"""
    assert run(code) == "citerec.retrieve.kernel\n"


def test_without_the_loops_the_slower_way_stays() -> None:
    code = """
import sys
from citerec.compiled import Loops
sys.modules["numba"] = None  # an import of it fails
loops = Loops("citerec.retrieve.kernel", 1)
print(loops.after(5), loops.after(5))
"""
    assert run(code) == "None None\n"
