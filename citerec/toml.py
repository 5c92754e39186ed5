"""TOML files of settings and experiments, refused before parsing where tomllib would take minutes or overflow.

tomllib needs quadratic time for a dotted key of many parts and the stack for arrays within arrays.
"""

import re
import tomllib  # noqa: TID251 (here alone)
from pathlib import Path
from typing import Any

from citerec.errors import BadInputError
from citerec.inputs import read_whole

MAX_BYTES = 2**20  # the longest file of the project has 4 kB
MAX_PARTS = 32  # of a dotted key
MAX_DEPTH = 32  # arrays and tables within each other
# Each alternative consumes what it opens, to the end of the file if need be: so the scan is linear.
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
    except (
        ValueError
    ) as error:  # more than TOMLDecodeError: a number of 5,000 digits, a 32nd of May
        raise BadInputError(path, f"not TOML: {error}") from error


def _check_nesting(path: Path, text: str) -> None:
    """Refuse dotted keys of many parts and deep arrays, which are found without parsing."""
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
            what = (
                f"arrays or tables within each other more than {MAX_DEPTH} deep"
                if depth > MAX_DEPTH
                else f"a key of more than {MAX_PARTS} parts"
            )
            line = text.count("\n", 0, token.start()) + 1
            raise BadInputError(path, f"{what}; settings are flat: write key = value", line=line)
