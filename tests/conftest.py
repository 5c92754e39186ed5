"""What the tests share: small corpora, and indexes that are built once."""

import gc
import getpass
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from support.corpora import SAMPLE
from support.scholar_server import ScholarServer, papers_around, serving
from support.tiny import tiny_bert, tiny_reranker
from support.types import Build, Capture, Invoke, MonkeyPatch, Write

from citerec.build.index import BuildConfig, build_index
from citerec.cli import run
from citerec.encode import onnx
from citerec.encode.spec import EncoderSpec, Pooling, Similarity
from citerec.index.folder import IndexFolder, open_index
from citerec.index.java import start_jvm

os.environ["HF_HUB_OFFLINE"] = "1"  # a test fetches no model
USER_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
os.environ.setdefault("HF_HOME", str(USER_CACHE / "huggingface"))
# Not the user's: one of the tests, which all of their processes share, and those of the next run.
os.environ["XDG_CACHE_HOME"] = str(
    Path(tempfile.gettempdir(), f"citerec-tests-{getpass.getuser()}")
)
os.environ["XDG_CONFIG_HOME"] = str(Path(os.environ["XDG_CACHE_HOME"], "no-settings"))
# Bytecode is kept even where the environment says not to: each process would compile all modules and tests again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# many objects live as long as the process; to look at them takes a tenth of it
gc.set_threshold(100_000, 50, 100)
onnx.KEPT = 500  # exports of tiny models
# Several test processes share the processors: threads that spin while they wait would take them from each other.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# no time limits: a busy machine would miss them; the same examples in every run
settings.register_profile(
    "tests",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the modules that open models first: of two processes, one imports torch and transformers."""
    opening = re.compile("import torch|transformers|tiny_|dense_sample")
    paths = {
        path
        for path in {item.path for item in items}
        if opening.search(path.read_text())
    }
    items.sort(key=lambda item: item.path not in paths)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Names bytes by their number: packed ones hold the time, so that processes would collect different tests."""
    return f"{len(val)} bytes" if isinstance(val, bytes) else None


@pytest.fixture(scope="session")
def java() -> None:
    """A running JVM."""
    start_jvm()


@pytest.fixture(scope="session")
def sample_index(tmp_path_factory: pytest.TempPathFactory, java: None) -> IndexFolder:
    """The bundled sample, indexed; tests must not change it."""
    folder = tmp_path_factory.mktemp("indexes") / "sample"
    build_index(SAMPLE, folder, BuildConfig())
    return open_index(folder)


@pytest.fixture
def sample_place(
    tmp_path: Path, monkeypatch: MonkeyPatch, sample_index: IndexFolder
) -> Path:
    """The folder that the test runs in, which has the index of the sample."""
    (tmp_path / "indexes").mkdir()
    (tmp_path / "indexes" / "sample").symlink_to(sample_index.path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a tiny BERT of random weights, which pools by the mean and compares by cosine."""
    spec = EncoderSpec(
        pooling=Pooling.MEAN, max_tokens=64, similarity=Similarity.COSINE
    )
    return str(tiny_bert(tmp_path_factory.mktemp("models") / "tiny", spec=spec))


@pytest.fixture(scope="session")
def dense_sample(
    tmp_path_factory: pytest.TempPathFactory, tiny_model: str, java: None
) -> IndexFolder:
    """The bundled sample with vectors, of a tiny BERT; tests must not change it."""
    folder = tmp_path_factory.mktemp("indexes") / "dense"
    build_index(SAMPLE, folder, BuildConfig(encoder=tiny_model))
    return open_index(folder)


@pytest.fixture(scope="session")
def tiny_reranker_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a tiny cross-encoder of random weights, which reads 32 + 32 tokens."""
    return str(tiny_reranker(tmp_path_factory.mktemp("models") / "reranker"))


@pytest.fixture
def write_jsonl(tmp_path: Path) -> Write:
    """Write records as JSON lines; returns the file."""

    def write(records: Sequence[Mapping[str, Any]], name: str = "corpus.jsonl") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        return path

    return write


@pytest.fixture
def build(tmp_path: Path, write_jsonl: Write, java: None) -> Build:
    """Index records; returns the opened index."""

    def make(records: Sequence[Mapping[str, Any]], **settings: Any) -> IndexFolder:
        corpus = write_jsonl(records, "made/corpus.jsonl")
        build_index(corpus, tmp_path / "index", BuildConfig(**settings))
        return open_index(tmp_path / "index")

    return make


@pytest.fixture
def invoke(tmp_path: Path, capsys: Capture, monkeypatch: MonkeyPatch) -> Invoke:
    """Run a command in an empty folder, in this process; returns code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return call


@pytest.fixture(scope="session")
def address(sample_index: IndexFolder) -> Generator[str]:
    """The URL of a server with the sample without vectors, by two names; its page is there."""
    from support.server import listening

    from citerec.serve.service import Service

    service = Service({"sample": sample_index.path, "again": sample_index.path})
    with listening(service) as at:
        yield at
    service.close()


@pytest.fixture
def openalex(monkeypatch: MonkeyPatch) -> Generator[ScholarServer]:
    """OpenAlex on this machine, with the papers around one of the sample."""
    with serving(papers_around("khattab2020colbert")) as server:
        monkeypatch.setenv("OPENALEX_URL", server.url)
        monkeypatch.setenv("OPENALEX_API_KEY", "key")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield server


@pytest.fixture(scope="module")
def browser() -> Generator[Any]:
    """A headless browser; closed after each module, because an event loop runs in its thread."""
    from support.browsing import open_browser

    with open_browser() as opened:
        yield opened


@pytest.fixture
def page(browser: Any, address: str) -> Generator[Any]:
    """The page in a fresh profile of the browser."""
    from support.browsing import open_page

    with open_page(browser, address) as opened:
        yield opened
