"""The commands of docs/how/paper.md, as they are written there, with models in the layouts of the real ones."""

import json
import re
import shlex
from pathlib import Path

import pytest
from support.corpora import SAMPLE
from support.hub import COMMIT, cached_scibert, cached_specter
from support.types import Invoke, MonkeyPatch

from citerec.encode.spec import read_spec
from citerec.index.folder import open_index
from citerec.rerank.pair import read_reranker_spec

PAGE = Path(__file__).parent.parent / "docs" / "how" / "paper.md"
# the latest of the sample; the oldest 48 are train queries, if they cite one
PAPERS = 60


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: MonkeyPatch) -> Path:
    """A folder with a small corpus, and a cache that has SPECTER and SciBERT."""
    papers = [json.loads(line) for line in SAMPLE.read_text().splitlines()]
    latest = sorted(papers, key=lambda paper: paper["year"])[-PAPERS:]
    text = "".join(f"{json.dumps(paper)}\n" for paper in latest)
    (tmp_path / "my-papers.jsonl").write_text(text)
    words = sorted({*re.findall(r"[a-z0-9]+", text.lower())})
    cache = tmp_path / "cache" / "hub"
    cached_specter(cache, tmp_path, words)
    cached_scibert(cache, tmp_path, words)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    return tmp_path


def test_the_system_of_the_papers_is_five_commands(
    workplace: Path, invoke: Invoke
) -> None:
    first, more = re.findall(
        r"^```sh\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    commands = [shlex.split(line) for line in first.splitlines()]

    done = {command[1]: invoke(*command[1:]) for command in commands}

    assert [*done] == [
        "index",
        "train-encoder",
        "train-reranker",
        "recommend",
        "evaluate",
    ]
    assert not any("fetching" in err for _, _, err in done.values())
    assert {name: code for name, (code, _, _) in done.items() if code} == {}, done
    index = open_index(workplace / "indexes" / "my-papers")
    assert (index.encoder.source, index.encoder.revision) == ("specter", COMMIT)
    own = workplace / "models" / "encoder"
    assert read_spec(own) == index.encoder.spec  # 512 tokens, [CLS], L2
    reranker = read_reranker_spec(workplace / "models" / "reranker")
    assert (reranker.query_tokens, reranker.candidate_tokens) == (256, 256)
    for model in (own, workplace / "models" / "reranker"):
        assert (
            json.loads((model / "training.json").read_text())["plan"]["model"]
            == "scibert"
        )
    assert "reranking the best" in done["recommend"][2]
    report = json.loads(
        (workplace / "reports" / "my-papers-test" / "report.json").read_text()
    )
    named = commands[-1][commands[-1].index("--systems") + 1].split(",")
    assert [system["name"] for system in report["systems"]] == named
    [used] = report["provenance"]["settings"]["rerank"]
    assert (used["model"], used["depth"]) == ("models/reranker", 1000)

    [again] = more.splitlines()
    assert invoke(*shlex.split(again)[1:])[0] == 0
    assert open_index(index.path).encoder.source.endswith("models/encoder")
