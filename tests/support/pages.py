"""HTML pages as a test reads them, and names that try to break out of them."""

from html.parser import HTMLParser

NASTY = [
    '<script>alert("x")</script>',
    "</script><script>alert(1)</script>\x1b[31m\u202e\\input{x}|$\\frac{",
    '"><img src=x onerror=alert(1)>',
    "</title><b>",
    "[a](javascript:alert(1))",
    "$\\frac{",
    "_a|b & c",
    "50% of_a & $x^2$ {\\~}#",
    'a <b> | "c" \N{RIGHTWARDS ARROW} d \N{EN DASH} é',
    "模型\n2",
    "_hidden",
]


VOID = {"meta", "link", "br", "img", "input", "hr"}


class Seen(HTMLParser):
    """What a page holds, and whether its tags are well nested."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and data.strip():
            self.texts.setdefault(self._open[-1], []).append(data.strip())

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]
