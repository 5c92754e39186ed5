"""The examples of the guide to extensions."""

import re
from pathlib import Path

GUIDE = Path(__file__).parent.parent.parent / "docs" / "guides" / "extend.md"


BLOCK = re.compile(r"```(python|toml)\n# ([\w.]+)[^\n]*\n(.*?)```", re.DOTALL)
