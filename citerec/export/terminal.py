"""The console class for all output of citerec."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from citerec.text import visible_lines


class PlainConsole(Console):
    """Prints text literally: markup, emoji codes and links have no effect, and no character controls the terminal."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Make a `Text` of a string, such as a cell; its width is that of the visible characters."""
        return super().render_str(visible_lines(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render as rich does, with characters that would control the terminal replaced by visible ones."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible_lines(segment.text))
