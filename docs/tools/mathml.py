"""Turns a `math` block of a page into MathML, which browsers show without a script; GitHub shows such blocks, too."""

from typing import Any

from latex2mathml.converter import convert


def block(source: str, *_: Any, **__: Any) -> str:
    """Return the MathML of one formula in LaTeX: a formatter of pymdownx.superfences."""
    formula = convert(source.strip(), display="block")
    return f'<div style="overflow-x: auto; margin: 1em 0">{formula}</div>'
