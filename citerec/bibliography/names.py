"""The form in which names of authors are compared."""

import re
import unicodedata

from citerec.text import normalized

# DBLP numbers people of the same name
_SUFFIX = re.compile(r",?\s(?:jr\.?|sr\.?|ii|iii|iv|[0-9]{4})$", re.IGNORECASE)
_INITIALS = re.compile(r"(.*[a-z].*)\s([A-Z]{1,3})")  # as in PubMed
_WORD = re.compile(r"[^\W\d_]+")


def name_key(name: str) -> str:
    """Return an author's first initial and family name, such as `r ribler`; empty for a name without letters."""
    if not name.isascii():
        folded = normalized("NFKD", name).replace("’", "")
        name = "".join(c for c in folded if not unicodedata.combining(c))
    name = _SUFFIX.sub("", name.replace("'", "").strip())
    family, comma, given = name.partition(",")
    if comma:
        name = f"{given} {family}"
    elif last := _INITIALS.fullmatch(name):
        name = f"{last[2]} {last[1]}"
    words = _WORD.findall(name.lower())
    return f"{words[0][0]} {words[-1]}" if len(words) > 1 else "".join(words)
