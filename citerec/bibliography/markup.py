"""Plain text of titles and abstracts that are published with HTML, JATS or MathML markup."""

import html
import re

_INLINE = r"i|b|u|em|strong|sub|sup|sc|scp|small|tt|italic|bold|span|font|monospace|underline|strike|inf|roman|a"
_BLOCK = r"p|br|div|h[1-6]|li|ul|ol|sec|title|list|list-item|table|tr|td|disp-formula|inline-formula"
_TAG = re.compile(
    rf"</?(?P<block>(?:jats:)?(?:{_BLOCK}))(?:\s[^<>]*+)?/?>"
    rf"|</?(?:(?:jats|mml|m|xlink|ali):[A-Za-z0-9-]++|{_INLINE})(?:\s[^<>]*+)?/?>",
    re.IGNORECASE,
)
# TeX that accompanies the same formula in MathML, and the heading that says no more than that this is an abstract
_DROPPED = re.compile(
    r"<(?P<tex>(?:jats:)?tex-math)\b[^<>]*+>.*?</(?P=tex)>"
    r"|<(?P<head>(?:jats:)?title)>\s*(?:abstract|summary)\.?\s*</(?P=head)>",
    re.IGNORECASE | re.DOTALL,
)
_HEADING = re.compile(r"(?<=[^\s.:?!])\s*</(?:jats:)?title>", re.IGNORECASE)


def plain_text(text: str) -> str:
    """Return `text` without tags and entities, on one line; other angle brackets, as in a < b, are kept."""
    if "<" in text or "&" in text:
        # publishers escape some texts twice: &amp;lt;
        text = _without_tags(html.unescape(html.unescape(_without_tags(text))))
    return " ".join(text.split())


def _without_tags(text: str) -> str:
    if "</" not in text and "/>" not in text and "<br" not in text:
        return text
    text = _HEADING.sub(": ", _DROPPED.sub(" ", text))
    return _TAG.sub(lambda tag: " " if tag["block"] else "", text)
