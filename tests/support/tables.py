"""Rows of strings, for tests of many cases."""


def table(text: str) -> list[list[str]]:
    """Return the cells of each line, which stand apart by `|`."""
    return [
        [cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()
    ]
