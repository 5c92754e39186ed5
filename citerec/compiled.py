"""Loops that numba compiles. The import of numba takes a fraction of a second, so it waits until it pays off."""

import sys
from contextlib import suppress
from importlib import import_module
from typing import Any


def preload() -> None:
    """Import numba now, so that all loops are compiled ones: for a process that answers many queries."""
    with suppress(ImportError, RuntimeError):
        import_module("numba")


class Loops:
    """The compiled loops of one module."""

    def __init__(self, module: str, worth: int) -> None:
        """Prepare.

        Args:
            module: The name of the module.
            worth: The work, in any unit, after which the import has paid off.
        """
        self._module, self._worth, self._done = module, worth, 0
        self._loops: Any = None

    def after(self, work: int) -> Any:
        """Count more work; return the module, or None as long as the import is not worth it, or if it fails.

        Where numba is imported already, it is worth it at once. Without a folder for its cache numba fails.
        """
        self._done += work
        if self._loops is None and (self._done >= self._worth or "numba" in sys.modules):
            self._done = 0
            with suppress(ImportError, RuntimeError):
                self._loops = import_module(self._module)
        return self._loops
