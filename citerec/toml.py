"""Reads TOML files; files on which tomllib would take minutes or overflow the stack are refused before parsing.

tomllib needs quadratic time for a dotted key of many parts, and recursion for nested arrays.
"""

import re
import tomllib  # noqa: TID251 (here alone)
from pathlib import Path
from typing import Any

from citerec.errors import BadInputError
from citerec.inputs import read_whole

MAX_BYTES = 2**20  # the longest file of the project has 4 kB
MAX_PARTS = 32  # of a dotted key
MAX_DEPTH = 32  # of nested arrays and tables
# Each alternative consumes a whole token, if necessary to the end of the file: so the scan takes linear time.
_TOKEN = re.compile(
    r'''
      """(?:[^"\\]|\\.|"(?!""))*+(?:"{3,5})?
    | \'\'\'(?:[^']|'(?!''))*+(?:'{3,5})?
    | "(?:[^"\\\n]|\\.)*+"?
    | '[^'\n]*+'?
    | \#[^\n]*+
    | (?P<open>[\[{])
    | (?P<close>[\]}])
    | (?P<dot>\.)
    | (?P<end>[\n,=])
    ''',
    re.VERBOSE | re.DOTALL,
)


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises:
        BadInputError: If it cannot be read, is too long or too deep, or is not TOML.
    """
    raw = read_whole(path, most=MAX_BYTES)
    try:
        text = raw.decode("utf-8-sig")
        _check_nesting(path, text)
        return tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BadInputError(path, "not TOML: it is not UTF-8 text", line=line) from error
    except ValueError as error:  # besides TOMLDecodeError: a number of 5,000 digits, a 32nd of May
        raise BadInputError(path, f"not TOML: {error}") from error


def _check_nesting(path: Path, text: str) -> None:
    """Refuse dotted keys of many parts and deeply nested arrays, which are found without parsing."""
    depth = dots = 0
    for token in _TOKEN.finditer(text):
        match token.lastgroup:
            case "open":
                depth, dots = depth + 1, 0
            case "close":
                depth, dots = depth - 1, 0
            case "dot":
                dots += 1
            case "end":
                dots = 0
            case _:
                pass
        if depth > MAX_DEPTH or dots >= MAX_PARTS:
            fault = (
                f"arrays or tables within each other more than {MAX_DEPTH} deep"
                if depth > MAX_DEPTH
                else f"a key of more than {MAX_PARTS} parts"
            )
            line = text.count("\n", 0, token.start()) + 1
            raise BadInputError(path, f"{fault}; settings are flat: write key = value", line=line)
