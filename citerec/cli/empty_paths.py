"""Refuses an empty name of a file or folder, which Python would take for the current folder."""

import inspect
from functools import partial
from typing import Any

import typer

from citerec.cli.options import is_path


def refuse_empty_paths(command: Any) -> None:
    """Make the parser of a command, and those of a group's commands, refuse empty values of paths.

    Values of settings files pass the same parser.
    """
    for inner in getattr(command, "commands", {}).values():
        refuse_empty_paths(inner)
    for parameter in command.params:
        process = parameter.process_value
        parameter.process_value = partial(_checked, command, parameter, process)


def _checked(command: Any, parameter: Any, process: Any, context: Any, value: Any) -> Any:
    several: list[Any] = [*value] if isinstance(value, list | tuple) else [value]
    if "" in several and _names_path(command, parameter):
        option = ", or leave out the option" if parameter.param_type_name == "option" else ""
        raise typer.BadParameter(f"it is empty; name a file or a folder{option}")
    return process(context, value)


def _names_path(command: Any, parameter: Any) -> bool:
    parameters = inspect.signature(command.callback, eval_str=True).parameters
    return parameter.name in parameters and is_path(parameters[parameter.name].annotation)
