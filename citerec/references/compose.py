r"""Adds entries to the bytes of a file of references, in the style of the file; no former byte changes.

The style is: the ends of lines, a blank line between entries, and the indentation of fields.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any, cast

import orjson

from citerec.bibliography import ris
from citerec.bibliography.source import Kind
from citerec.errors import BadInputError
from citerec.export import bibtex as bibtex_export
from citerec.export import csl as csl_export
from citerec.export import ris as ris_export
from citerec.inputs import BOM
from citerec.references.file import ReferenceFile, bibtex_records
from citerec.types import Paper

_HEAD = re.compile(r"@[ \t]*[A-Za-z]+\s*[{(]\s*([^\s,{}()\"=#%\\@]+)")
_KEY_FIELD = re.compile(
    r"\b(?:crossref|xref|xdata|ids|related|entryset)\s*=\s*[{\"]([^{}\"]*)[}\"]", re.IGNORECASE
)
_FIELD_LINE = re.compile(r"^([ \t]*)[A-Za-z][\w-]*[ \t]*=", re.MULTILINE)
_RIS_ID = re.compile(r"^ID {1,2}- ?(.*)$", re.MULTILINE)
_RIS_TAG = re.compile(r"^([A-Z][A-Z0-9])  -", re.MULTILINE)
_DEEPEST = 8  # characters of indentation


def keys_in_use(file: ReferenceFile) -> set[str]:
    """Return the keys of a file, also those in comments and those that fields such as `crossref` name."""
    text = file.text
    match file.kind:
        case Kind.BIBTEX:
            named = (key for field in _KEY_FIELD.findall(text) for key in field.split(","))
            return {key.strip() for key in (*_HEAD.findall(text), *named)}
        case Kind.RIS:
            return {key.strip() for key in _RIS_ID.findall(text)}
        case _:
            return {str(item.get("id", "")) for item in _items(text)}


def extended(file: ReferenceFile, keys: Sequence[str], papers: Sequence[Paper]) -> bytes:
    """Return the content of a file with some papers added.

    Args:
        file: The file.
        keys: A key for each paper, none of them in the file.
        papers: At least one.

    Raises:
        BadInputError: If the former entries would not be read as before, such as after an open brace at the end.
    """
    match file.kind:
        case Kind.BIBTEX:
            indent = _indent(file.text)
            entries = [bibtex_export.entry(*pair, indent) for pair in _pairs(keys, papers)]
            data = _appended(file.data, entries)
        case Kind.RIS:
            data = _appended(
                file.data, [_ris(file.text, key, p) for key, p in _pairs(keys, papers)]
            )
        case _:
            items = [csl_export.item(key, paper) for key, paper in _pairs(keys, papers)]
            data = _inserted(file.data, items)
    _check(file, ReferenceFile(file.name, file.path, file.kind, data), len(papers))
    return data


def _pairs(keys: Sequence[str], papers: Sequence[Paper]) -> Iterable[tuple[str, Paper]]:
    return zip(keys, papers, strict=True)


def _items(text: str) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", orjson.loads(text)) if text else []


def _indent(text: str) -> str:
    """Return the most frequent indentation of fields; that of an export if there is none."""
    counts = Counter(indent for indent in _FIELD_LINE.findall(text) if len(indent) <= _DEEPEST)
    return counts.most_common(1)[0][0] if counts else bibtex_export.INDENT


def _ris(text: str, key: str, paper: Paper) -> str:
    record = ris_export.write([key], [paper])
    one_space = bool(text) and not _RIS_TAG.search(text)  # some programs write one before the dash
    return _RIS_TAG.sub(r"\1 -", record) if one_space else record


def _end_of_line(data: bytes) -> bytes:
    r"""Return the most frequent end of line: `\n`, `\r\n` or `\r`."""
    crlf = data.count(b"\r\n")
    counts = {b"\n": data.count(b"\n") - crlf, b"\r\n": crlf, b"\r": data.count(b"\r") - crlf}
    return max(counts, key=lambda end: counts[end])


def _appended(data: bytes, entries: Sequence[str]) -> bytes:
    """Return bytes with entries at their end, a blank line before each of them."""
    end = _end_of_line(data)
    texts = [(entry.strip("\n") + "\n").encode().replace(b"\n", end) for entry in entries]
    content = data.removeprefix(BOM)
    gap = b""
    if content.strip():
        finished = sum(1 for _ in takewhile(lambda byte: byte in b"\r\n", reversed(content)))
        ends = content[len(content) - finished :].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        gap = end * max(0, 2 - len(ends))
    return data + gap + end.join(texts)


def _inserted(data: bytes, items: Sequence[dict[str, Any]]) -> bytes:
    """Return a JSON list with items before its closing bracket."""
    content = data.removeprefix(BOM)
    if not content.strip():
        return data + orjson.dumps(items, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    closing = data.rindex(b"]")
    head = data[:closing].rstrip()
    is_empty = head.endswith(b"[")
    gap = data[len(head) : closing]
    outer, inner = _json_indents(content)
    if inner is None and not is_empty:  # all of it on one line
        texts = [orjson.dumps(item) for item in items]
        return head + b"".join(b", " + text for text in texts) + data[len(head) :]
    end = _end_of_line(data)
    texts = [_indented(item, outer, inner or b"  ").replace(b"\n", end) for item in items]
    body = (b"," + end).join(texts)
    return head + (b"" if is_empty else b",") + end + body + (gap or end) + data[closing:]


def _json_indents(content: bytes) -> tuple[bytes, bytes | None]:
    """Return the indentation of items, and how much deeper their fields are; None if they begin on no line."""
    item = re.search(rb"\[[ \t]*(?:\r\n|\r|\n)([ \t]*)\{", content)
    field = re.search(rb"\{[ \t]*(?:\r\n|\r|\n)([ \t]*)\"", content)
    outer = item[1] if item else b"" if field else b"  "
    if not field:
        return outer, b"" if item else None
    return outer, field[1].removeprefix(outer) or b"  "


def _indented(item: dict[str, Any], outer: bytes, inner: bytes) -> bytes:
    if not inner:  # an item per line
        return outer + orjson.dumps(item)
    lines = orjson.dumps(item, option=orjson.OPT_INDENT_2).split(b"\n")
    depths = ((len(line) - len(line.lstrip(b" "))) // 2 for line in lines)
    return b"\n".join(
        outer + inner * depth + line.lstrip(b" ") for depth, line in zip(depths, lines, strict=True)
    )


def _check(file: ReferenceFile, new: ReferenceFile, added: int) -> None:
    """Raise unless the new content has the former entries and as many more as were added."""
    before, after = _records(file), _records(new)
    if after[: len(before)] != before or len(after) != len(before) + added:
        message = "entries added at its end would not be read; repair its last lines first"
        raise BadInputError(file.name, message, line=file.text.rstrip("\n").count("\n") + 1)


def _records(file: ReferenceFile) -> list[Any]:
    match file.kind:
        case Kind.BIBTEX:
            records, broken = bibtex_records(file.text)
            return [*broken, *records]
        case Kind.RIS:
            return list(ris.read_records(file.text))
        case _:
            return _items(file.text)
