"""Where settings files are: `citerec.toml` in the working folder, and in the user's configuration folder."""

import os
from pathlib import Path

NAME = "citerec.toml"


def working_file() -> Path:
    """Return the path of the settings file of the working folder."""
    return Path(NAME)


def user_file() -> Path | None:
    """Return the path of the user's settings file; None without a home folder."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    if os.path.isabs(base):  # noqa: PTH117  (the standard says that a relative path is ignored)
        return Path(base, "citerec", NAME)
    home = os.path.expanduser("~")  # noqa: PTH111  (Path.home raises without one)
    return None if home == "~" else Path(home, ".config", "citerec", NAME)


def settings_files() -> list[Path]:
    """Return the settings files that exist, the one that wins last."""
    files = [file for file in (user_file(), working_file()) if file and os.path.lexists(file)]
    if len(files) == 2 and os.path.realpath(files[0]) == os.path.realpath(files[1]):
        return files[:1]
    return files
