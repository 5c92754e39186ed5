"""Shapes of SVG pictures, and the two sets of colours that they are drawn in."""

from collections.abc import Iterable
from html import escape

WIDTH = 760

Picture = tuple[str, int, list[str]]  # title, height, shapes

LIGHT = {
    "page": "#ffffff",
    "ink": "#1f2933",
    "soft": "#5b6775",
    "box": "#f1f5f9",
    "edge": "#94a3b8",
    "main": "#0f766e",
    "tint": "#ccebe5",
    "warm": "#b45309",
}
DARK = {
    "page": "#0f1720",
    "ink": "#e6edf3",
    "soft": "#9aa7b5",
    "box": "#1c2733",
    "edge": "#536273",
    "main": "#2dd4bf",
    "tint": "#134e48",
    "warm": "#f5a742",
}


def style(colours: dict[str, str]) -> str:
    """Return the style sheet of a picture: what fills, what outlines, what is text."""
    rules = [f".page{{fill:{colours['page']}}}", f"text{{fill:{colours['ink']}}}"]
    for name in ("ink", "soft", "main", "warm", "edge", "tint", "box"):
        rules.append(f".f-{name}{{fill:{colours[name]}}}")
        rules.append(f".l-{name}{{stroke:{colours[name]};fill:none}}")
    rules.append(f".b-box{{fill:{colours['box']};stroke:{colours['edge']}}}")
    rules.append(f".b-main{{fill:{colours['tint']};stroke:{colours['main']}}}")
    return "".join(rules)


def svg(title: str, height: int, shapes: Iterable[str], css: str) -> str:
    """Return a whole picture; `title` is what a screen reader says."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}" font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" '
        f'font-size="14" stroke-width="1.5">\n<title>{escape(title)}</title>\n<style>{css}</style>\n'
        f'<rect class="page" width="{WIDTH}" height="{height}" rx="10"/>\n'
        + "\n".join(shapes)
        + "\n</svg>\n"
    )


def text(
    x: float,
    y: float,
    words: str,
    cls: str = "f-ink",
    size: int = 14,
    anchor: str = "middle",
) -> str:
    """Return one line of text; y is its base line."""
    bold = ' font-weight="600"' if cls in ("f-main", "f-warm", "f-bold") else ""
    shade = "f-ink" if cls == "f-bold" else cls
    place = f'x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}"'
    return f'<text class="{shade}" {place}{bold}>{escape(words)}</text>'


def box(
    x: float,
    y: float,
    w: float,
    h: float,
    lines: list[str],
    cls: str = "b-box",
    *,
    dashed: bool = False,
) -> str:
    """Return a box with lines of text in its middle: the first is bold, the others are small."""
    dashes = ' stroke-dasharray="5 4"' if dashed else ""
    place = f'x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="8"'
    shape = [f'<rect class="{cls}" {place}{dashes}/>']
    top = y + h / 2 - 9 * (len(lines) - 1) + 5
    for number, line in enumerate(lines):
        kind, size = ("f-bold", 14) if number == 0 else ("f-soft", 12)
        shape.append(text(x + w / 2, top + 18 * number, line, kind, size))
    return "".join(shape)


def arrow(
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    cls: str = "edge",
    *,
    dashed: bool = False,
) -> str:
    """Return an arrow from one point to another."""
    length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1e-9)
    dx, dy = (x2 - x1) / length, (y2 - y1) / length
    back_x, back_y = x2 - 8 * dx, y2 - 8 * dy
    head = f"{x2:.1f},{y2:.1f} {back_x - 4 * dy:.1f},{back_y + 4 * dx:.1f} {back_x + 4 * dy:.1f},{back_y - 4 * dx:.1f}"
    return (
        line(x1, y1, back_x, back_y, cls, dashed=dashed)
        + f'<polygon class="f-{cls}" points="{head}"/>'
    )


def line(
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    cls: str = "edge",
    *,
    dashed: bool = False,
) -> str:
    """Return a straight line."""
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<line class="l-{cls}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"{dash}/>'


def dot(x: float, y: float, radius: float, cls: str) -> str:
    """Return a filled circle."""
    return f'<circle class="f-{cls}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"/>'


def curve(points: list[tuple[float, float]], cls: str) -> str:
    """Return a line through points."""
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline class="l-{cls}" stroke-width="2.5" points="{joined}"/>'
