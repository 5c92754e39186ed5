"""all-mpnet-base-v2 from its wheels: a tiny MPNet in five packages, and the real one where it is installed."""

import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest
from support.tiny import tiny_mpnet
from support.types import MonkeyPatch

from citerec.cli.doctor import examine
from citerec.encode import mpnet
from citerec.encode.encoder import open_encoder, reopen
from citerec.encode.models import auto_encoder, find_model
from citerec.encode.spec import EncodeConfig, Precision
from citerec.errors import ModelError
from citerec.types import Paper

F32 = EncodeConfig(precision=Precision.FLOAT32)
FEW = EncodeConfig(few_texts=True)
IS_REAL = mpnet.is_installed()  # before a test installs the tiny one
TEXTS = [
    ("A graph of citations", "We rank papers by what they cite. " * n)
    for n in (0, 1, 3, 40)
]
PAPERS = [Paper(id=str(n), title=t, abstract=a) for n, (t, a) in enumerate(TEXTS)]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: MonkeyPatch) -> Path:
    """A folder of packages that holds the wheels of a tiny model."""
    monkeypatch.setattr(mpnet, "WHEELS", [f"tiny-{wheel}" for wheel in mpnet.WHEELS])
    site, content = tmp_path / "site", _zipped(tmp_path)
    fifth = -(-len(content) // 5)
    for n, wheel in enumerate(mpnet.WHEELS):
        name = wheel.replace("-", "_")
        part = f"{wheel[:-4]}_{wheel[-3:]}/input/{mpnet.NAME}.zip.{wheel[-3:]}"
        info = site / f"{name}-0.0.1.dist-info"
        (site / part).parent.mkdir(parents=True)
        (site / part).write_bytes(content[n * fifth : (n + 1) * fifth])
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {wheel}\nVersion: 0.0.1\n"
        )
        (info / "RECORD").write_text(f"{part},,\n{info.name}/METADATA,,\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(mpnet, "SHA256", hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(mpnet, "cache_folder", lambda: tmp_path / "cache")
    return site


def _zipped(folder: Path) -> bytes:
    tiny_mpnet(folder / "root" / mpnet.NAME)
    return Path(
        shutil.make_archive(str(folder / "model"), "zip", folder / "root")
    ).read_bytes()


def _same_as_sentence_transformers(config: EncodeConfig) -> bool:
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(find_model("mpnet").folder), device="cpu")
    expected = theirs.encode([f"{title} {text}".strip() for title, text in TEXTS])
    return np.allclose(
        open_encoder("mpnet", config).encode(PAPERS), expected, atol=1e-5
    )


@pytest.mark.parametrize("config", [F32, FEW], ids=["torch", "onnx"])
@pytest.mark.usefixtures("site")
def test_the_vectors_are_those_of_sentence_transformers(config: EncodeConfig) -> None:
    assert _same_as_sentence_transformers(config)


@pytest.mark.slow
@pytest.mark.skipif(not IS_REAL, reason=f"mpnet is not installed: {mpnet.INSTALL}")
@pytest.mark.parametrize("config", [F32, FEW], ids=["torch", "onnx"])
def test_the_real_vectors_are_those_of_sentence_transformers(
    config: EncodeConfig,
) -> None:
    assert _same_as_sentence_transformers(config)


def test_it_is_unpacked_once_and_an_index_opens_it_again(
    site: Path, tmp_path: Path
) -> None:
    lines: list[str] = []

    first = open_encoder("mpnet", FEW, log=lines.append)
    shutil.rmtree(site)  # the cache is enough
    again = reopen(first.fingerprint, tmp_path, FEW, log=lines.append)

    assert again.fingerprint == first.fingerprint
    assert (first.fingerprint.source, first.fingerprint.revision) == (
        "mpnet",
        mpnet.REVISION,
    )
    assert [line.split(" into ")[0] for line in lines] == [
        "unpacking all-mpnet-base-v2"
    ]


@pytest.mark.parametrize(
    "pattern",
    ["*part_003-0.0.1.dist-info", "*/*/*.zip.002"],
    ids=["missing", "damaged"],
)
def test_a_missing_or_damaged_part_is_one_line(
    site: Path, tmp_path: Path, pattern: str
) -> None:
    path = next(site.glob(pattern))
    shutil.rmtree(path) if path.is_dir() else path.write_bytes(b"")

    with pytest.raises(
        ModelError, match=r"wheels of mpnet are not whole: sha256 .*; run: pip install"
    ):
        find_model("mpnet")

    assert not (tmp_path / "cache").exists()


def test_auto_and_doctor_say_that_it_is_installed(site: Path) -> None:
    lines: list[str] = []

    with_it = auto_encoder(lines.append)
    installed = examine("extras")[-1]
    shutil.rmtree(site)
    without = auto_encoder(lines.append)

    assert with_it == without == "minilm"
    assert ["mpnet (installed" in line for line in lines] == [True, False]
    assert (installed.name, installed.status) == ("mpnet", "ok")
    assert examine("extras")[-1].advice == mpnet.INSTALL
