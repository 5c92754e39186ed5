"""The scripts of experiments/ranker that complete the folder of the default ranker."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
from support.tiny_ranker import tiny_ranker

from citerec.files.checksums import CARD, TRAINING, model_faults, seal_model
from citerec.rank.ltr import DEFAULT, Calibration, Variant, open_ranker

SCRIPTS = Path(__file__).parent.parent / "experiments" / "ranker"


def script(name: str) -> ModuleType:
    """Load a script of experiments/ranker."""
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A ranker of one variant with a card."""
    ranker = tiny_ranker(tmp_path / "ranker", {"bm25": 1}, variants=[Variant.FULL])
    indexes = [{"name": "vis.minilm"}, {"name": "acm_vis.minilm"}]
    (ranker / TRAINING).write_text(json.dumps({"indexes": indexes}))
    (ranker / CARD).write_text(
        "# Ranker\n\n## Probabilities\n\nold\n\n## Ablations\n\nkept\n"
    )
    seal_model(ranker)
    return ranker


def test_calibrations_and_card_are_replaced_at_once(folder: Path) -> None:
    calibration = Calibration(scale=2, offset=-1)
    rankers = {Variant.FULL: open_ranker(folder)}

    script("calibrate").write(
        folder, rankers, {Variant.FULL: calibration}, "## Probabilities\n\nnew\n\n"
    )

    assert open_ranker(folder).calibration == calibration
    card = (folder / CARD).read_text()
    assert card == "# Ranker\n\n## Probabilities\n\nnew\n\n## Ablations\n\nkept\n"
    assert model_faults(folder) == []


def test_the_card_names_corpora_in_place_of_folders_of_indexes(folder: Path) -> None:
    card = (folder / CARD).read_text()
    table = "trained on vis.minilm, acm_vis.minilm\n\n| index | papers |\n| acm_vis.minilm | 3 |"
    (folder / CARD).write_text(f"{table}\n{card}")
    seal_model(folder)

    script("card").write(folder)

    lines = (folder / CARD).read_text().splitlines()
    assert lines[:4] == [
        "trained on vis, acm_vis",
        "",
        "| corpus | papers |",
        "| acm_vis | 3 |",
    ]
    assert "## On test queries" in lines
    assert model_faults(folder) == []


def test_the_card_of_the_default_model_has_the_figures_of_the_rows() -> None:
    assert script("card")._section() in (DEFAULT / CARD).read_text()
