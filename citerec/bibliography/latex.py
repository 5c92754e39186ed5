r"""Converts LaTeX in bibliographies to plain Unicode: `{\"u}ber {BERT}` -> über BERT.

It is made for titles, names and abstracts: it knows accents, letters, Greek, quotes, dashes and common symbols. Of any
other command the argument stays and the name is dropped. It accepts any input, in linear time: pylatexenc needs 17 s
per megabyte, loses `\mbox{…}` and everything after a bare `%`, and latexcodec leaves all commands and braces in place.
"""

import re

from citerec.text import normalized

_ACCENTS = {
    "`": "\u0300", "'": "\u0301", "^": "\u0302", "~": "\u0303", "=": "\u0304", "u": "\u0306",
    ".": "\u0307", '"': "\u0308", "r": "\u030a", "H": "\u030b", "v": "\u030c", "d": "\u0323",
    "c": "\u0327", "k": "\u0328", "b": "\u0331", "t": "\u0361",
}  # fmt: skip
_LETTERS = {
    "ss": "ß", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ",
    "aa": "å", "AA": "Å", "i": "ı", "j": "ȷ", "dh": "ð", "DH": "Ð", "th": "þ", "TH": "Þ",
    "dj": "đ", "DJ": "Đ", "ng": "ŋ", "NG": "Ŋ",
}  # fmt: skip
_GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "zeta": "ζ", "eta": "η",
    "theta": "θ", "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ",
    "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "upsilon": "υ", "phi": "φ", "chi": "χ",
    "psi": "ψ", "omega": "ω",
}  # fmt: skip
_SYMBOLS = {
    "textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textbraceleft": "{",
    "textbraceright": "}", "textquoteleft": "‘", "textquoteright": "’", "textquotedblleft": "“",
    "textquotedblright": "”", "textquotesingle": "'", "textendash": "–", "textemdash": "—",
    "textregistered": "®", "texttrademark": "™", "textcopyright": "©", "copyright": "©",
    "textdegree": "°", "degree": "°", "textmu": "µ", "texteuro": "€", "euro": "€", "pounds": "£",
    "ldots": "…", "dots": "…", "textellipsis": "…", "times": "×", "pm": "±", "cdot": "·",
    "sim": "∼", "approx": "≈", "leq": "≤", "le": "≤", "geq": "≥", "ge": "≥", "neq": "≠",
    "infty": "∞", "rightarrow": "→", "to": "→", "leftarrow": "←", "leftrightarrow": "↔",
    "in": "∈", "partial": "∂", "nabla": "∇", "sum": "∑", "sqrt": "√", "ell": "ℓ",
    "LaTeX": "LaTeX", "TeX": "TeX", "BibTeX": "BibTeX", "log": "log", "ln": "ln", "exp": "exp",
    "max": "max", "min": "min", "sin": "sin", "cos": "cos",
    **_GREEK,
    **{name.capitalize(): letter.upper() for name, letter in _GREEK.items()},
    **{f"var{name}": letter for name, letter in _GREEK.items()},
}  # fmt: skip
_LIGATURES = {"~": " ", "---": "—", "--": "–", "``": "“", "''": "”"}
_SPACES = frozenset(" ,;:\\\t\n")  # as in `\,`: these stand for a space

_NEEDS_WORK = re.compile(r"[\\{}$~]|--|``|''")
_TOKEN = re.compile(
    r"""
      \\(?P<accent>["'`^~=.]|[uvHtcdbkr](?![A-Za-z]))\s?\{?\s?
      (?:\\(?P<dotless>[ij])(?![A-Za-z])\s?|(?P<base>[^\W\d_]))
    | \\(?:cite[a-z]*|ref|label|href|begin|end)\s?\{[^{}]*\}
    | \\(?P<command>[A-Za-z]+)\*?(?P<space>\s*)
    | \\(?P<escaped>.)
    | (?P<script>(?<!\\\$)(?<=\$)[_^]|[_^](?=\{))
    | (?P<ligature>~|---?|``|'')
    | (?P<dollar>\$)
    | [{}\\]
    """,
    re.VERBOSE | re.DOTALL,
)


def to_text(latex: str) -> str:
    """Return `latex` as plain Unicode (NFC) on one line, without commands and braces."""
    if not _NEEDS_WORK.search(latex):
        return " ".join(latex.split())
    # An odd number of dollars means money, not a formula: "a $5 bill".
    dollar = "" if latex.count("$") % 2 == 0 else "$"
    text = _TOKEN.sub(lambda token: dollar if token["dollar"] else _plain(token), latex)
    return " ".join(normalized("NFC", text).split())


def _plain(token: re.Match[str]) -> str:
    """Return the text of one piece of LaTeX; empty for a brace or a formatting command."""
    if accent := token["accent"]:
        # LaTeX writes an i under an accent without its dot; Unicode composes the accent with the dotted one.
        return (token["dotless"] or token["base"]) + _ACCENTS[accent]
    if command := token["command"]:
        if command in _SYMBOLS:
            return _SYMBOLS[command] + token["space"]
        return _LETTERS.get(command, "")
    if escaped := token["escaped"]:
        return " " if escaped in _SPACES else escaped if escaped in "&%$#_{}" else ""
    return _LIGATURES.get(token["ligature"] or "", "")
