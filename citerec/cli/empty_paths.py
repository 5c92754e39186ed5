"""Refuses an empty name of a file or folder, which Python would take for the current folder."""

from functools import partial
from pathlib import Path
from typing import Any

import typer


def refuse_empty_paths(command: Any) -> None:
    """Make the parser of a command, and those of a group's commands, refuse empty values of paths.

    Values of settings files pass the same parser.
    """
    for inner in getattr(command, "commands", {}).values():
        refuse_empty_paths(inner)
    for parameter in command.params:
        process = parameter.process_value
        parameter.process_value = partial(_checked, parameter, process)


def _checked(parameter: Any, process: Any, context: Any, value: Any) -> Any:
    several: list[Any] = [*value] if isinstance(value, list | tuple) else [value]
    if "" in several and parameter.type_descriptor.annotation is Path:
        option = ", or leave out the option" if parameter.param_type_name == "option" else ""
        raise typer.BadParameter(f"it is empty; name a file or a folder{option}")
    return process(context, value)
