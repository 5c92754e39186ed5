"""Reads TOML files; files on which tomllib would take minutes or overflow the stack are refused before parsing.

tomllib needs quadratic time for a dotted key of many parts, and recursion for nested arrays; `serve` may read files of
others.
"""

import re
import tomllib  # noqa: TID251 (here alone)
from pathlib import Path
from typing import Any

from citerec.errors import BadInputError
from citerec.inputs import read_whole

MAX_BYTES = 2**20  # the longest file of the project has 4 kB
MAX_DEPTH = 32  # of nested arrays and tables, counted without regard to strings
_KEY = re.compile(rb"(?:[\w\"'-]+\s*\.\s*){32}")  # a key of more than 32 parts


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises:
        BadInputError: If it cannot be read, is too long or too deep, or is not TOML.
    """
    raw = read_whole(path, most=MAX_BYTES)
    depth = 0
    for bracket in re.finditer(rb"[\[\]{}]", raw):
        depth += 1 if bracket[0] in b"[{" else -1
        if depth > MAX_DEPTH:
            raise BadInputError(path, f"arrays or tables nested more than {MAX_DEPTH} deep")
    if _KEY.search(raw):
        raise BadInputError(path, "a key of more than 32 parts; settings are flat: key = value")
    try:
        return tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BadInputError(path, "not TOML: it is not UTF-8 text", line=line) from error
    except ValueError as error:  # besides TOMLDecodeError: a number of 5,000 digits, a 32nd of May
        raise BadInputError(path, f"not TOML: {error}") from error
