"""Decodes LaTeX source: UTF-8, else the encoding that it declares, else Latin-1."""

import re

_INPUTENC = re.compile(rb"\\usepackage\s*\[([a-z0-9]+)\]\s*\{inputenc\}")
_ENCODINGS = {
    "latin1": "latin-1", "latin2": "iso8859-2", "latin3": "iso8859-3", "latin4": "iso8859-4",
    "latin5": "iso8859-9", "latin9": "iso8859-15", "latin10": "iso8859-16", "ansinew": "cp1252",
    "cp1250": "cp1250", "cp1251": "cp1251", "cp1252": "cp1252", "cp1257": "cp1257",
    "applemac": "mac-roman", "koi8": "koi8-r", "cp850": "cp850", "cp437": "cp437",
}  # fmt: skip


def declared_encoding(data: bytes) -> str:
    """Return the encoding that the source declares by `inputenc`, in Python's name; empty for UTF-8 or none."""
    match = _INPUTENC.search(data[: 2**16])
    return _ENCODINGS.get(match[1].decode("ascii"), "") if match else ""


def decode_tex(data: bytes, encoding: str = "") -> str:
    r"""Return LaTeX source as text with lines ended by `\n`; bytes of no encoding become replacement characters."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode(encoding or declared_encoding(data) or "latin-1", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
