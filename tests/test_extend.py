"""Parts of other packages: the examples of docs/guides/extend.md, found by real entry points."""

import gzip
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.guide import BLOCK, GUIDE
from support.types import Capture, Invoke, MonkeyPatch

import citerec
from citerec import plugins
from citerec.cli import run
from citerec.errors import ConfigError, IndexDamagedError, ModelError
from citerec.evaluation.protocol import EvalConfig, load_eval_set
from citerec.evaluation.systems import Systems, default_systems
from citerec.export import formats
from citerec.files.reading import read_toml
from citerec.index.folder import IndexFolder, open_index
from citerec.lab.audit import audit_systems
from citerec.plugins import Plugins
from citerec.rank.features import NAMES, Feature
from citerec.rank.ltr import open_ranker
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.stages import checked_hits
from citerec.train.ranker import train_ranker
from citerec.train.settings import RankerTraining
from citerec.types import Eligibility, Hits

TABLE = (
    "id,title,abstract,year,references\n"
    "a,Graph drawing,Forces between nodes.,1990,\n"
    'b,"Trees, drawn",,1995,a elsewhere\n'
)
PLAIN = ("--ranker", "none")
DRAFT = citerec.Query(id="draft", title="Dense retrieval of passages", year=2010)

Install = Callable[..., None]
Cli = Callable[..., "tuple[int, str]"]


@pytest.fixture
def cli(invoke: Invoke) -> Cli:
    """Run `citerec index`; returns the exit code and stderr."""
    return lambda *given: invoke(
        "index", *given, "--index", "made", "--encoder", "none"
    )[::2]


def forget_plugins() -> None:
    plugins._registered.cache_clear()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: MonkeyPatch) -> Iterator[Install]:
    """Install a package into a folder of sys.path: its modules, and its entry points in a .dist-info."""

    def make(modules: Mapping[str, str], entry_points: str) -> None:
        folder = tmp_path / "site"
        folder.mkdir(exist_ok=True)
        for name, code in modules.items():
            (folder / name).write_text(code)
            monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
        info = folder / f"package{len([*folder.iterdir()])}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: package\nVersion: 1.0\n"
        )
        (info / "entry_points.txt").write_text(entry_points)
        monkeypatch.syspath_prepend(str(folder))
        forget_plugins()

    yield make
    monkeypatch.undo()
    forget_plugins()


@pytest.fixture
def guide(install: Install, tmp_path: Path) -> None:
    """The examples of the guide, installed as one package."""
    blocks = BLOCK.findall(GUIDE.read_text())
    lines: list[str] = []
    for language, _, code in blocks:
        if language == "toml":
            (tmp_path / "project.toml").write_text(code)
            points = read_toml(tmp_path / "project.toml")["project"]["entry-points"]
            for group, names in points.items():
                lines += [f"[{group}]"] if f"[{group}]" not in lines else []
                lines += [f"{name} = {value}" for name, value in names.items()]
    modules = {name: code for language, name, code in blocks if language == "python"}
    install(modules, "\n".join(lines))


# --- readers and exporters


@pytest.mark.parametrize("name", ["papers.csv", "papers.csv.gz", "folder/part.csv"])
def test_a_table_is_indexed_by_a_registered_reader(
    cli: Cli, guide: None, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "corpus" / name
    file.parent.mkdir(parents=True)
    file.write_bytes(
        gzip.compress(TABLE.encode()) if name.endswith(".gz") else TABLE.encode()
    )

    code, _ = cli(file if "/" not in name else file.parent)

    index = open_index(tmp_path / "made")
    assert (code, index.manifest.corpus["format"]) == (0, "csv")
    assert (index.papers[1].title, index.papers[1].year) == ("Trees, drawn", 1995)
    counts = index.manifest.counts
    assert (counts["citations"], counts["unknown_references"]) == (1, 1)


def test_json_lines_are_recognised_by_a_registered_reader(
    cli: Cli, guide: None, tmp_path: Path
) -> None:
    work = (
        '{"doi": "10.1/a", "titles": [{"title": "Maps"}], "relatedIdentifiers": []}\n'
    )
    cites = '[{"relationType": "Cites", "relatedIdentifier": "10.1/a"}]'
    other = work.replace("10.1/a", "10.1/b").replace("[]", cites)
    (tmp_path / "works.jsonl").write_text(work + other)
    (tmp_path / "papers.jsonl").write_text('{"id": "a", "title": "Maps"}\n')

    assert cli("works.jsonl")[0] == 0
    manifest = open_index(tmp_path / "made").manifest
    assert cli("papers.jsonl", "--force")[0] == 0

    assert manifest.corpus["format"] == "datacite"
    assert (manifest.counts["papers"], manifest.counts["citations"]) == (2, 1)
    assert open_index(tmp_path / "made").manifest.corpus["format"] == "canonical"


@pytest.mark.parametrize(
    ("code", "facts"),
    [
        (
            "from citerec import Paper\nfrom citerec.corpus.readers import Format\n"
            "broken = Format(records=lambda stream: iter([(7, {})]), read=lambda fields: Paper(id='', title='A'))",
            ("papers.csv, line 7", "its id is empty"),
        ),
        (
            "def broken(fields): pass",
            ("'broken'", "must be a citerec.corpus.readers.Format"),
        ),
        ("import nowhere", ("'broken' of citerec.readers", "cannot be loaded")),
    ],
)
def test_a_broken_reader_is_one_line_that_names_it(
    cli: Cli, install: Install, tmp_path: Path, code: str, facts: Sequence[str]
) -> None:
    install({"broken.py": code}, "[citerec.readers]\nbroken = broken:broken\n")
    (tmp_path / "papers.csv").write_text(TABLE)

    status, shown = cli("papers.csv", "--format", "broken")

    assert (status, shown.count("\n")) == (2, 1)
    assert all(fact in shown for fact in facts)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("value", ["broken", "foo bar", "broken:", ".broken:part", ""])
def test_an_entry_point_that_names_no_object_is_one_line(
    install: Install, value: str
) -> None:
    install({"broken.py": "part = 1"}, f"[citerec.exporters]\nbroken = {value}\n")

    with pytest.raises(ConfigError, match="expected module:object") as caught:
        Plugins.EXPORTERS.load("broken")

    assert f"'broken' of citerec.exporters is registered as {value!r}" in str(
        caught.value
    )


def test_a_registered_exporter_writes_the_results(
    guide: None, capsys: Capture, cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "papers.csv").write_text(TABLE)
    assert cli("papers.csv")[0] == 0

    draft = ("--title", "Trees", "--index", "made", *PLAIN)
    code = run(["recommend", *draft, "--format", "markdown"])
    shown = capsys.readouterr().out
    wrong = run(["recommend", *draft, "--format", "word"])

    assert (code, wrong, formats()[-1]) == (0, 2, "markdown")
    assert shown == "## Trees\n\n1. Trees, drawn (1995), `b`\n\n"
    assert "'word'" in capsys.readouterr().err


# --- retrievers and rerankers


def test_the_programs_of_the_guide_run(guide: None, sample_place: Path) -> None:
    names: dict[str, Any] = {}

    for code in re.findall(
        r"```python\n(?!# \w+\.py)(.*?)```", GUIDE.read_text(), re.DOTALL
    ):
        exec(code, names)

    assert names["recommender"].retriever_names == ("bm25", "latest")
    [first, *_] = names["surveys"].recommend(title="Citation recommendation")
    assert "Survey" in first.paper.title


def test_a_registered_retriever_is_fused_as_an_object_is(
    guide: None, sample_index: IndexFolder
) -> None:
    plain = citerec.RecommendConfig(ranker="none", k=40)
    latest = Plugins.RETRIEVERS.load("latest")(sample_index)

    named = citerec.Recommender(sample_index, plain.replace(retrievers=("latest",)))
    passed = citerec.Recommender(
        sample_index, plain, retrievers=[Bm25Retriever(sample_index), latest]
    )
    alone = citerec.Recommender(sample_index, plain, retrievers=[latest])

    found = named.recommend(DRAFT)
    assert {stage for item in found for stage in item.stages} == {"bm25", "latest"}
    assert found.ids == passed.recommend(DRAFT).ids
    assert [paper.year for paper in alone.recommend(DRAFT, k=5).papers] == [2010] * 5


def test_a_retriever_keeps_what_it_reads_in_the_index(
    guide: None, invoke: Invoke, sample_index: IndexFolder
) -> None:
    Path("a.csv").write_text(TABLE)
    Path("more.csv").write_text("id,title,year\nz,Grabh drawing for all,2001\n")
    made = ("--index", "made")
    letters = citerec.RecommendConfig(ranker="none", retrievers=("letters",))

    refused, _, reason = invoke("index", "a.csv", *made, "--retriever", "latest")
    built = invoke(
        "index", "a.csv", *made, "--encoder", "none", "--retriever", "letters"
    )
    grown = invoke("index", "more.csv", *made, "--append")

    assert (refused, built[0], grown[0]) == (2, 0, 0)
    with pytest.raises(ConfigError, match="--retriever letters --force"):
        citerec.Recommender(sample_index, letters)
    assert "'latest' keeps nothing in an index" in reason
    assert citerec.verify_index("made").settings["plugins"] == ["letters"]
    found = citerec.Recommender("made", letters).recommend(title="grahp drawnig")
    assert {*found.ids[:2]} == {"a", "z"}  # BM25 knows neither word
    Path("made/plugins/letters/titles.npz").write_bytes(b"")
    with pytest.raises(IndexDamagedError, match="plugins/letters"):
        citerec.verify_index("made")


@pytest.mark.parametrize(
    ("returned", "fault"),
    [
        ([], "returned no list of 1 results"),
        ([None], "returned NoneType for a query"),
        ([Hits([0, 1], [1.0])], "with scores of"),
        ([Hits([0.5], [1.0])], "returned rows float64"),
        ([Hits([0, 300], [1.0, 0.5])], "returned row 300"),
        ([Hits([4, 4], [1.0, 0.5])], "returned a paper twice"),
        ([Hits([4], [np.nan])], "not finite"),
        ([Hits([7, 4], [1.0, 0.5])], "returned 1 of 2 papers"),
    ],
)
def test_what_a_retriever_returns_is_checked(
    sample_index: IndexFolder, returned: Any, fault: str
) -> None:
    excluded = [Eligibility(excluded=frozenset({7}))]

    with pytest.raises(ConfigError, match=fault):
        checked_hits(returned, "mine", sample_index, excluded, 5)


def test_a_fusion_of_three_retrievers_names_the_third(
    guide: None, dense_sample: IndexFolder
) -> None:
    config = EvalConfig(retrievers=("latest",))

    result = citerec.evaluate(["rrf"], dense_sample, config=config, queries=3)

    assert [system.name for system in result.systems] == ["rrf+latest", "latest"]


def test_without_vectors_bm25_and_the_retriever_are_fused(
    guide: None, sample_index: IndexFolder
) -> None:
    config = EvalConfig(retrievers=("latest",))
    plain = citerec.RecommendConfig(ranker="none", retrievers=("latest",))

    default = default_systems(sample_index, config)
    both = [citerec.Recommender(sample_index, plain), "rrf"]
    result = citerec.evaluate(both, sample_index, config=config, queries=3)

    assert default[:3] == ["bm25", "rrf", "expanded"]
    recommended, fused, alone = result.systems
    assert (fused.name, alone.name) == ("rrf+latest", "latest")
    assert fused.metrics == recommended.metrics != alone.metrics


class Nameless:
    def retrieve(self, *_: object) -> list[Hits]:
        return []


@pytest.mark.parametrize(
    ("stage", "fault"),
    [
        ({"retrievers": []}, "no stage: expected an object with a method retrieve"),
        ({"retrievers": [object()]}, "no stage"),
        ({"retrievers": Nameless()}, "no stage"),
        ({"retrievers": [Nameless]}, "no stage"),
        ({"retrievers": [Nameless()]}, "has no name"),
        ({"reranker": "monot5"}, "method score"),
        ({"ranker": object()}, "method score"),
        ({"features": ["survey"]}, "'survey' is no citerec.rank.features.Feature"),
    ],
)
def test_an_object_that_is_no_stage_is_refused(
    sample_index: IndexFolder, stage: dict[str, Any], fault: str
) -> None:
    with pytest.raises(ConfigError, match=fault):
        citerec.Recommender(sample_index, **stage)


def test_lists_are_hits_and_come_back_in_order(sample_index: IndexFolder) -> None:
    returned = [Hits([3, 9, 5], [0.5, 1.0, 0.25])]

    [hits] = checked_hits(returned, "mine", sample_index, [Eligibility()], 2)

    assert hits.rows.tolist() == [9, 3]


NEARBY = """
from citerec.rank.features import Feature, Group
from citerec.retrieve.bm25 import Bm25Retriever

class Nearby(Bm25Retriever):
    name = "nearby"
    features = Feature("nearby_rank", Group.ADDED, lambda s: s.reciprocal_ranks("nearby"), "its rank"),
"""

SHORTER = """
from citerec.rank.features import Feature, Group

def length(signals):
    titles = signals.index.papers.texts("title", signals.rows).to_pylist()
    return [len(title) for title in titles]

class Shorter:
    depth = 5
    features = Feature("length", Group.ADDED, length, "the letters of its title"),
    def __init__(self, index): pass
    def score(self, query, papers): return [-float(len(paper.title)) for paper in papers]
"""


@pytest.fixture
def shorter(install: Install) -> None:
    """A registered reranker that prefers short titles."""
    install({"shorter.py": SHORTER}, "[citerec.rerankers]\nshorter = shorter:Shorter\n")


def test_a_registered_reranker_is_named_everywhere(
    shorter: None,
    sample_index: IndexFolder,
    tmp_path: Path,
    capsys: Capture,
) -> None:
    index = shutil.copytree(sample_index.path, tmp_path / "index")
    options = ("--index", str(index), "--reranker", "shorter")

    code = run(
        ["recommend", "--title", DRAFT.title, *options, *PLAIN, "--format", "json"]
    )
    lengths = [len(item["title"]) for item in json.loads(capsys.readouterr().out)[:5]]
    report = tmp_path / "report"
    evaluated = run(
        ["evaluate", *options, "--systems", "rerank", "--output", str(report)]
    )

    assert (code, evaluated) == (0, 0)
    assert lengths == sorted(lengths)
    [used] = json.loads((report / "report.json").read_text())["provenance"]["settings"][
        "rerank"
    ]
    # its own depth, as in recommend
    assert (used["model"], used["depth"]) == (
        "shorter",
        5,
    )


# --- features


def trained(index: IndexFolder, output: Path, **given: Any) -> Path:
    settings = {
        "threads": 1,
        "trees": 5,
        "least_rows": 5,
        "queries": 40,
        "dev_queries": 10,
    }
    features: Sequence[Feature] = given.pop("given", ())
    config = RankerTraining(**settings | {"reranker": "none"} | given)
    train_ranker([index], output, config, features=features)
    return output


def test_a_ranker_reads_the_features_that_it_was_trained_with(
    guide: None, sample_index: IndexFolder, tmp_path: Path
) -> None:
    folder = trained(
        sample_index, tmp_path / "ranker", features=("survey",), retrievers=("latest",)
    )
    ranker = open_ranker(folder)
    config = citerec.RecommendConfig(ranker=str(folder), retrievers=("latest",), k=5)

    found = citerec.Recommender(sample_index, config).recommend(DRAFT, explain=True)
    eval_set = load_eval_set(sample_index, "test")
    settings = EvalConfig(ranker=str(folder), retrievers=("latest",))
    audited = audit_systems(Systems(sample_index, eval_set, settings), ["ranker"])

    assert ranker.columns == (*NAMES, "survey")
    assert ranker.features[-1] == "survey"
    assert "| survey |" in (folder / "README.md").read_text()
    assert len(found) == 5
    assert audited.faults == ()


NOT_IN_USE = "ranker was trained with the retriever latest, which is not in use"


def test_a_ranker_says_that_the_retriever_of_its_training_is_not_in_use(
    guide: None, sample_index: IndexFolder, tmp_path: Path, capsys: Capture
) -> None:
    index = Path(shutil.copytree(sample_index.path, tmp_path / "index"))
    trained(open_index(index), index / "models" / "ranker", retrievers=("latest",))
    draft = ("recommend", "--title", DRAFT.title, "--index", str(index))
    systems = ("evaluate", "--index", str(index), "--systems", "bm25,ranker")
    report = ("--output", str(tmp_path / "report"))

    def lines(*arguments: str) -> list[str]:
        assert run(arguments) == 0
        return [
            line for line in capsys.readouterr().err.splitlines() if "retriever" in line
        ]

    again = f"train it again: citerec train-ranker --index {index} --force"
    said = f"citerec: {NOT_IN_USE}; use it, or {again}"
    assert lines(*draft) == lines(*systems, *report) == [said]
    assert lines(*draft, "--retriever", "latest") == []
    assert lines(*systems, *report, "--retriever", "latest") == []
    assert lines(*draft, *PLAIN) == lines(*systems[:-1], "bm25", *report) == []


def test_a_retriever_that_declares_a_feature_is_named_where_it_is_missing(
    install: Install, sample_index: IndexFolder, tmp_path: Path
) -> None:
    install({"nearby.py": NEARBY}, "[citerec.retrievers]\nnearby = nearby:Nearby\n")
    folder = trained(sample_index, tmp_path / "ranker", retrievers=("nearby",))
    config = citerec.RecommendConfig(ranker=str(folder))

    assert open_ranker(folder, features=import_module("nearby").Nearby.features).added
    assert citerec.Recommender(sample_index, config.replace(retrievers=("nearby",)))
    with pytest.raises(
        ModelError, match=r"'nearby_rank'.* use the retriever or reranker that"
    ):
        citerec.Recommender(sample_index, config)


def test_a_ranker_is_refused_where_its_feature_is_not_installed(
    guide: None, sample_index: IndexFolder, tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    feature = import_module("citerec_surveys").SURVEY
    folder = trained(sample_index, tmp_path / "ranker", given=[feature], dev_queries=0)
    monkeypatch.setattr(plugins, "_registered", lambda group: {})
    config = citerec.RecommendConfig(ranker=str(folder))

    with pytest.raises(ModelError, match=r"missing here .*'survey'"):
        citerec.Recommender(sample_index, config)
    with pytest.raises(ConfigError, match="no feature 'survey'"):
        trained(sample_index, tmp_path / "other", features=("survey",))
    assert citerec.Recommender(sample_index, config, features=[feature]).recommend(
        DRAFT
    )


# --- PyTerrier


def test_a_recommender_is_a_transformer_of_frames(
    guide: None, sample_index: IndexFolder
) -> None:
    import pandas as pd

    recommender = citerec.Recommender(
        sample_index, citerec.RecommendConfig(ranker="none", k=3)
    )
    abstract = "Passages are ranked by the inner product of learned vectors"
    topics = pd.DataFrame(
        {
            "qid": ["1", "2", "3"],
            "query": ["dense retrieval", "dense retrieval", "citation graphs"],
            "abstract": [abstract, None, ""],
            "year": [2015, None, None],
        }
    )

    results = (
        import_module("citerec_terrier")
        .CitationTransformer(recommender)
        .transform(topics)
    )

    whole = recommender.recommend(title="dense retrieval", abstract=abstract, year=2015)
    title = recommender.recommend(title="dense retrieval")
    assert results[results.qid == "1"].docno.tolist() == [*whole.ids] != [*title.ids]
    assert results[results.qid == "2"].docno.tolist() == [*title.ids]
    assert results["rank"].tolist() == [0, 1, 2] * 3
    assert [*results.columns] == [*topics.columns, "docno", "score", "rank"]
