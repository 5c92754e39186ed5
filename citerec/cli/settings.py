"""Defaults of options from `citerec.toml`: a table for each command, which typer takes as its default map."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from citerec.errors import BadInputError
from citerec.io import read_toml

NAME = "citerec.toml"
# A file that comes with somebody else's folder must not make a command write, delete or listen.
REFUSED = frozenset(
    "output append force delete results report map query title abstract pick run qrels from resume "
    "search update command yes host no_token allow_host allow_origin".split()
)


def settings_file() -> Path | None:
    """Return the file of the working folder, else that of the user's configuration folder; None without one."""
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    places = Path(NAME), Path(base).expanduser() / "citerec" / NAME
    return next((file for file in places if file.exists()), None)


def default_map(path: Path, command: Any) -> dict[str, Any]:
    """Return the options that a file sets, by command, as the default map of the command line.

    Args:
        path: A TOML file: a table for each command, such as `[recommend]` or `[corpus.convert]`.
        command: The whole command line, or one of its groups.

    Raises:
        BadInputError: If it is no TOML, names no command or option, or sets an option that a file must not set.
    """
    return _checked(path, "", read_toml(path), command)


def _checked(path: Path, name: str, table: Mapping[str, Any], command: Any) -> dict[str, Any]:
    commands: dict[str, Any] = getattr(command, "commands", {})
    options = {
        option.lstrip("-").replace("-", "_"): parameter
        for parameter in command.params
        for option in parameter.opts
        if option.startswith("--")
    }
    found: dict[str, Any] = {}
    for key, value in table.items():
        here, option = f"{name}{key}", key.replace("-", "_")
        if isinstance(value, dict):
            inner = key.replace("_", "-")
            if inner not in commands:
                raise BadInputError(path, f"[{here}] is no command; see: citerec --help")
            found[inner] = _checked(path, f"{here}.", value, commands[inner])
        elif option not in options or not name:
            known = ", ".join(options) if name else "none outside the table of a command"
            raise BadInputError(path, f"unknown setting {here!r}; known settings: {known}")
        elif option in REFUSED or here in ("index.index", "collect.index"):
            raise BadInputError(path, f"{here!r} cannot be set in a file; give it as an option")
        else:
            found[options[option].name] = value
    return found
