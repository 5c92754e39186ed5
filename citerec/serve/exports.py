"""Answers as files for reference managers: which format a request accepts, and the papers in it."""

from collections.abc import Iterable

from citerec.export import Format, Result, dump
from citerec.serve.service import QueryAnswer

JSON = "application/json"
MEDIA_TYPES = {
    Format.BIBTEX: "application/x-bibtex",
    Format.RIS: "application/x-research-info-systems",
    Format.CSL: "application/vnd.citationstyles.csl+json",
}
_FORMATS = {media_type: name for name, media_type in MEDIA_TYPES.items()} | {
    "text/x-bibtex": Format.BIBTEX,
}
_SUFFIXES = {Format.BIBTEX: ".bib", Format.RIS: ".ris", Format.CSL: ".json"}
LONGEST = 1_000  # characters of a header that are read


def accepted_format(accept: str) -> Format | None:
    """Return the format that the header `Accept` prefers to JSON; None for JSON.

    The types of reference managers must be named: `*/*` and `application/*` mean JSON. Of equal weights, the first
    counts.
    """
    best, chosen = 0.0, None
    for part in accept[:LONGEST].split(","):
        media_type, *parameters = (text.strip().lower() for text in part.split(";"))
        weight = _weight(parameters)
        if weight > best and (
            media_type in _FORMATS or media_type in (JSON, "*/*", "application/*")
        ):
            best, chosen = weight, _FORMATS.get(media_type)
    return chosen


def bibliography(answers: Iterable[QueryAnswer], format: Format) -> str:
    """Return the papers of answers in a format of `MEDIA_TYPES`, each once and in their order."""
    results = [Result(one.query, one.items, one.why_nothing) for one in answers]
    return dump(results, format, batch=True)


def headers(format: Format) -> dict[str, str]:
    """Return the headers of an answer that is a bibliography; a browser saves it under this name."""
    return {
        "Content-Type": f"{MEDIA_TYPES[format]}; charset=utf-8",
        "Content-Disposition": f'attachment; filename="citerec{_SUFFIXES[format]}"',
        "Vary": "Accept",
    }


def _weight(parameters: Iterable[str]) -> float:
    """Return the weight q of a media type, in [0, 1]; 1 if there is none, 0 if it is invalid."""
    value = next((text[2:] for text in parameters if text.startswith("q=")), "1")
    try:
        weight = float(value)
    except ValueError:
        return 0.0
    return weight if 0 <= weight <= 1 else 0.0
