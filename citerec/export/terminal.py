"""The one kind of console that citerec prints to."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from citerec.export.clean import visible_lines


class PlainConsole(Console):
    """Prints text as it is: no markup, emoji code or link in it counts, and no character acts on the terminal."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Make a text of a string, such as a cell, whose width counts what is shown."""
        return super().render_str(visible_lines(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render as rich does; text that would act on the terminal is shown instead."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible_lines(segment.text))
