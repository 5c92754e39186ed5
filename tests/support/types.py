"""The types of fixtures."""

from collections.abc import Callable
from pathlib import Path

import pytest

from citerec.index.folder import IndexFolder

Build = Callable[..., IndexFolder]  # of records, with settings
Write = Callable[..., Path]  # records to a file of a name
Invoke = Callable[..., tuple[int, str, str]]  # a command; code, stdout and stderr
Capture = pytest.CaptureFixture[str]
MonkeyPatch = pytest.MonkeyPatch
