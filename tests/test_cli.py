"""The command line: every command and format of the contract, what goes where, and the exit codes."""

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from citerec.cli import COMMANDS, run
from citerec.cli.console import ConsoleOutput
from citerec.drafts import read_queries
from citerec.export import Format
from citerec.folder import IndexFolder, open_index
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.run import read_qrels, read_run
from citerec.types import Query

SAMPLE = Path(__file__).parent.parent / "citerec" / "sample"
COMMAND = Path(sys.executable).parent / "citerec"
TITLE, ABSTRACT = "Citation recommendation", "We rank the papers that a manuscript should cite."
PLAIN = ("--ranker", "none", "--reranker", "none")  # as the retrievers leave the list

JSON_QUERY = json.dumps({"id": "draft", "title": TITLE, "abstract": ABSTRACT})
QUERIES = {
    "draft.json": JSON_QUERY,
    "draft.jsonl": f"{JSON_QUERY}\n",
    "draft.bib": f"@misc{{draft, title = {{{TITLE}}}, abstract = {{{ABSTRACT}}}}}",
    "draft.ris": f"TY  - JOUR\nID  - draft\nTI  - {TITLE}\nAB  - {ABSTRACT}\nER  - \n",
    "draft.csl": json.dumps(
        [{"id": "draft", "type": "book", "title": TITLE, "abstract": ABSTRACT, "author": []}]
    ),
    "draft.txt": f"{TITLE}\n\n{ABSTRACT}\n",
}
BATCH = [
    {"id": "first", "title": "Citation recommendation"},
    {"id": "second one", "title": "Protein structure", "year": 2010},
    {"id": "third", "title": "zzzz"},
]


@dataclass(frozen=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def ids(self) -> list[str]:
        return [item["id"] for item in self.json]


Cli = Callable[..., Done]


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command in an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> Done:
        if arguments[:1] == ("index",) and not {"--encoder", "--help"} & {*arguments}:
            arguments += ("--encoder", "none")  # what vectors add is told in test_cli_dense
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return call


@pytest.fixture
def sample(cli: Cli, sample_index: IndexFolder, tmp_path: Path) -> Cli:
    """Run a command in a folder that has the index of the sample."""
    (tmp_path / "indexes").mkdir()
    (tmp_path / "indexes" / "sample").symlink_to(sample_index.path)
    return cli


def a_process(*arguments: object, cwd: Path, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [COMMAND, *map(str, arguments)], cwd=cwd, capture_output=True, check=False, **more
    )


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


# --- help and version


CONTRACT = {
    "index": "--index --format --encoder --threads --resume --force",
    "encode": "--index --encoder",
    "train-encoder": "--index --model --output --resume",
    "tune": "--index --split",
    "recommend": "--query --title --abstract --index --k --reranker --ranker --year-max --exclude "
    "--format --output --explain",
    "evaluate": "--index --split --run --qrels --output",
    "experiment run": "--results",
    "experiment table": "--output",
    "info": "--index",
    "verify": "--index",
    "doctor": "",
    "demo": "",
}


@pytest.mark.parametrize("command", CONTRACT)
def test_every_command_has_help_with_the_options_of_the_contract(cli: Cli, command: str) -> None:
    done = cli(*command.split(), "--help")

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Usage: citerec {command} ")
    for option in (*CONTRACT[command].split(), "--quiet", "--verbose"):
        assert f" {option}" in done.out


def test_help_lists_the_commands(cli: Cli) -> None:
    done = cli("--help")

    assert (done.code, done.err) == (0, "")
    for command in CONTRACT:
        assert f"  {command.split()[0]} " in done.out
    assert cli("-h") == done


def test_the_version_is_told(cli: Cli) -> None:
    done = cli("--version")

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("citerec ")


@pytest.mark.parametrize("command", [[], ["experiment"]])
def test_no_command_is_one_line_that_points_to_the_help(cli: Cli, command: list[str]) -> None:
    done = cli(*command)

    assert (done.code, done.out) == (2, "")
    assert (
        done.err
        == f"citerec: error: Missing command. (see: {' '.join(['citerec', *command])} --help)\n"
    )


def test_the_shell_completes_commands(tmp_path: Path) -> None:
    asked = {"_CITEREC_COMPLETE": "complete_bash", "COMP_WORDS": "citerec re", "COMP_CWORD": "1"}

    done = a_process(cwd=tmp_path, env=os.environ | asked)

    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [b"recommend"], b"")


# --- index


@pytest.mark.parametrize(
    ("corpus", "named", "index"),
    [
        ("mine.jsonl", "mine.jsonl", "mine"),
        ("mine.v2.jsonl", "mine.v2.jsonl", "mine"),
        ("acl/corpus.jsonl", "acl/corpus.jsonl", "acl"),
        ("acl/corpus.jsonl", "acl", "acl"),
        ("acl/corpus.jsonl", "acl/", "acl"),
        ("acl/shards/part-1.jsonl", "acl/../acl/shards", "shards"),
    ],
)
def test_an_index_is_named_after_its_corpus(
    cli: Cli, tmp_path: Path, corpus: str, named: str, index: str
) -> None:
    write(tmp_path / corpus, [{"id": "a", "title": "A"}])

    done = cli("index", named)

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"indexes/{index}  (canonical)\n")
    assert open_index(tmp_path / "indexes" / index).manifest.counts["papers"] == 1


def test_index_says_what_it_made_and_left_out(cli: Cli, tmp_path: Path) -> None:
    corpus = write(
        tmp_path / "mine.jsonl",
        [
            {"id": "a", "title": "A", "abstract": "Of b.", "year": 2000, "citations": ["b", "b"]},
            {"id": "b", "title": "B", "citations": ["b", "z"]},
            {"id": "c", "title": 3},
        ],
    )

    done = cli("index", corpus, "--index", "made", "--skip-bad")

    assert done.code == 0
    words = [line.split(maxsplit=1) for line in done.out.splitlines()[1:]]
    assert {name: int(count) for count, name in words} == {
        "papers": 2,
        "with an abstract": 1,
        "without a year": 1,
        "citations among them": 1,
        "references to papers outside the corpus": 1,
        "self-citations left out": 1,
        "repeated references left out": 1,
        "records left out: wrong types": 1,
        "train queries": 0,
        "dev queries": 0,
        "test queries": 1,
    }
    assert done.err == f"citerec: left out: {corpus}, line 3: 'title' must be a string, found 3\n"


def test_an_index_is_replaced_by_force_alone(cli: Cli, tmp_path: Path) -> None:
    corpus = write(tmp_path / "mine.jsonl", [{"id": "a", "title": "A"}])
    assert cli("index", corpus).code == 0
    write(corpus, [{"id": "b", "title": "B"}, {"id": "c", "title": "C"}])

    refused = cli("index", corpus)
    forced = cli("index", corpus, "--force")

    assert refused.code == 2
    assert "--force" in refused.err
    assert forced.code == 0
    assert list(open_index(tmp_path / "indexes" / "mine").papers.ids) == ["b", "c"]


@pytest.mark.parametrize("option", [["--encoder", "none"], ["--threads", "2"], ["--heap", "512m"]])
def test_options_of_index_are_taken(cli: Cli, option: list[str]) -> None:
    assert cli("index", SAMPLE / "papers.jsonl", "--format", "canonical", *option).code == 0


def test_what_is_no_ranker_is_refused(sample: Cli) -> None:
    done = sample("recommend", "--title", TITLE, "--ranker", "scibert")

    assert (done.code, done.out) == (2, "")
    assert "scibert is no ranker" in done.err


# --- recommend: queries in


def test_json_output_is_what_the_contract_says(sample: Cli) -> None:
    done = sample("recommend", "--title", TITLE, "--k", 3, "--format", "json", *PLAIN)

    assert (done.code, done.err) == (0, "")
    assert [item["rank"] for item in done.json] == [1, 2, 3]
    for item in done.json:
        assert list(item) == [
            "rank",
            "id",
            "title",
            "year",
            "score",
            "stages",
            "probability",
            "reasons",
        ]
        assert item["probability"] is None  # BM25 alone: nothing is calibrated
        assert item["stages"] == {"bm25": {"rank": item["rank"], "score": item["score"]}}
    assert done.json[0]["id"] == "he2010context"


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_of_any_format_asks_the_same(sample: Cli, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(QUERIES[name])

    by_file = sample("recommend", "--query", name, "--format", "json")

    by_words = sample("recommend", "--title", TITLE, "--abstract", ABSTRACT, "--format", "json")
    assert (by_file.code, by_file.err) == (0, "")
    assert by_file.json == by_words.json
    assert len(by_file.json) == 20


@pytest.mark.parametrize("name", QUERIES)
def test_standard_input_is_read_for_a_dash(
    sample: Cli, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(QUERIES[name].encode())))

    done = sample("recommend", "--query", "-", "--format", "jsonl", *PLAIN)

    assert (done.code, done.err) == (0, "")
    assert done.json["query"] == ("query" if name == "draft.txt" else "draft")
    assert done.json["results"][0]["id"] == "strohman2007recommending"


def test_a_real_process_reads_standard_input_and_writes_the_result_alone(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    done = a_process(
        *("recommend", "--query", "-", "--index", sample_index.path),
        *("--format", "json", *PLAIN),
        cwd=tmp_path,
        input=QUERIES["draft.txt"].encode(),
    )

    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)[0]["id"] == "strohman2007recommending"


def test_bytes_that_are_no_utf8_on_the_command_line_are_passed_over(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    done = subprocess.run(
        [COMMAND, "recommend", "--title", b"\xff citation \xe9", "--index", sample_index.path],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, b"")
    assert b"CiteSeer" in done.stdout


def test_a_batch_is_one_document_or_one_line_a_query(sample: Cli, tmp_path: Path) -> None:
    write(tmp_path / "batch.jsonl", BATCH)

    for format in ("json", "jsonl"):
        done = sample("recommend", "--query", "batch.jsonl", "--format", format, "--k", 2)

        jsonl = format == "jsonl"
        lines = [json.loads(line) for line in done.out.splitlines()] if jsonl else done.json
        assert done.code == 0
        assert "nothing was found for 1 of 3 drafts (the first: third)" in done.err
        assert [line["query"] for line in lines] == ["first", "second one", "third"]
        assert [len(line["results"]) for line in lines] == [2, 2, 0]
        assert all(item["year"] <= 2010 for item in lines[1]["results"])


def test_a_batch_of_a_thousand_gives_each_query_its_own(sample: Cli, tmp_path: Path) -> None:
    papers = [json.loads(line) for line in (SAMPLE / "papers.jsonl").read_text().splitlines()]
    # A title and one word is no title of the corpus, so that each query may be given its paper.
    asked = [{"id": f"q{i}", "title": f"{papers[i % 300]['title']} again"} for i in range(600)]
    write(tmp_path / "batch.jsonl", asked)

    done = sample("recommend", "--query", "batch.jsonl", "--format", "jsonl", "--k", 1)

    lines = [json.loads(line) for line in done.out.splitlines()]
    assert [line["query"] for line in lines] == [query["id"] for query in asked]
    hit = [line["results"][0]["id"] == papers[i % 300]["id"] for i, line in enumerate(lines)]
    assert sum(hit) > 540


# --- recommend: lists out


@pytest.mark.parametrize("format", [*Format])
def test_every_format_can_be_read_back(sample: Cli, tmp_path: Path, format: Format) -> None:
    truth = sample("recommend", "--title", TITLE, "--k", 5, "--format", "json").json

    done = sample("recommend", "--title", TITLE, "--k", 5, "--format", format.value)

    assert done.code == 0
    assert bool(done.err) == (format is Format.DOI)  # the papers of the sample have none
    (tmp_path / "out").write_text(done.out)
    ids, titles = [item["id"] for item in truth], [item["title"] for item in truth]
    match format:
        case Format.TABLE:
            assert [docid for docid in ids if docid in done.out] == ids
        case Format.JSON:
            assert done.json == truth
        case Format.JSONL:
            assert done.json == {"query": "query", "results": truth}
        case Format.TREC:
            ranking = read_run(tmp_path / "out").rankings["query"]
            assert list(ranking.ids) == ids
            assert list(ranking.scores) == pytest.approx([item["score"] for item in truth])
        case Format.BIBTEX | Format.RIS | Format.CSL:
            assert [query.title for query in read_queries(tmp_path / "out").queries] == titles


def test_a_trec_run_has_every_query_and_no_white_space_in_an_id(
    sample: Cli, tmp_path: Path
) -> None:
    write(tmp_path / "batch.jsonl", BATCH)

    done = sample("recommend", "--query", "batch.jsonl", "--format", "trec", "--k", 300)

    (tmp_path / "out.run").write_text(done.out)
    rankings = read_run(tmp_path / "out.run").rankings
    assert rankings.keys() == {"first", "second_one"}  # nothing is found for the third
    columns = [line.split(" ") for line in done.out.splitlines()]
    assert {len(row) for row in columns} == {6}
    assert [int(row[3]) for row in columns] == [
        *range(1, len(rankings["first"]) + 1),
        *range(1, len(rankings["second_one"]) + 1),
    ]


@pytest.mark.parametrize("format", [*Format])
def test_nothing_found_is_an_empty_list(sample: Cli, format: Format) -> None:
    done = sample("recommend", "--title", "zzzz", "--format", format.value)

    assert done.code == 0
    why = "no word of the draft occurs in the 300 eligible papers, and this index has no vectors"
    if format is Format.TABLE:
        text = " ".join(done.out.split())
        assert done.err == ""
        assert text.startswith(f"No eligible paper of this corpus matches: {why}")
        return
    assert done.err.startswith(f"citerec: nothing was found: {why}")
    expected = {"json": "[]", "csl": "[]"}
    expected["jsonl"] = '{"query":"query","results":[]}'
    assert done.out.strip() == expected.get(format.value, "")


def test_the_table_is_the_default_and_has_no_escape_codes_in_a_pipe(sample: Cli) -> None:
    done = sample("recommend", "--title", TITLE)

    assert done == sample("recommend", "--title", TITLE, "--format", "table")
    assert "Context-Aware Citation Recommendation" in done.out
    assert "\x1b" not in done.out


# --- recommend: options


def test_excluded_ids_do_not_come_back(sample: Cli, tmp_path: Path) -> None:
    before = sample("recommend", "--title", TITLE, "--format", "json", *PLAIN).ids
    (tmp_path / "cited.txt").write_text(f"{before[0]}\n{before[3]}\nnobody\n")

    done = sample(
        "recommend",
        "--title",
        TITLE,
        "--format",
        "json",
        "--k",
        18,
        "--exclude",
        "cited.txt",
        *PLAIN,
    )

    assert done.ids == [i for i in before if i not in (before[0], before[3])]
    assert done.err == (
        "citerec: 3 references in cited.txt: 2 found in this corpus, 1 not found "
        "(use --verbose to list them)\n"
    )


def test_a_draft_that_is_in_the_corpus_is_left_out_and_that_is_said(sample: Cli) -> None:
    title = "Attention Is All You Need!"

    done = sample("recommend", "--title", title, "--format", "json")

    assert "vaswani2017attention" not in done.ids
    assert done.err.startswith("citerec: 'query' is in this corpus (vaswani2017attention, by its")


def test_a_reference_list_of_a_wrong_type_is_refused(sample: Cli, tmp_path: Path) -> None:
    (tmp_path / "paper.tex").write_text("\\documentclass{article}\nSee \\cite{he2010context}.\n")

    done = sample("recommend", "--title", TITLE, "--exclude", "paper.tex")

    assert (done.code, done.out) == (2, "")
    assert "paper.tex: this is LaTeX; pass the .bib file that it cites from" in done.err


@pytest.mark.parametrize("option", ["--query", "--cited", "--exclude"])
@pytest.mark.parametrize("data", [b"%PDF-1.7\n\0", b"PK\3\4\0"], ids=["PDF", "zip"])
def test_a_document_given_for_a_list_or_a_query_is_one_clear_line(
    sample: Cli, tmp_path: Path, option: str, data: bytes
) -> None:
    (tmp_path / "paper").write_bytes(data)
    query = () if option == "--query" else ("--title", TITLE)

    done = sample("recommend", *query, option, "paper")

    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("citerec: error: paper: ")


@pytest.mark.parametrize("option", ["--query", "--cited", "--exclude"])
def test_a_folder_given_for_a_list_or_a_query_is_one_clear_line(
    sample: Cli, tmp_path: Path, option: str
) -> None:
    (tmp_path / "folder").mkdir()
    query = () if option == "--query" else ("--title", TITLE)

    done = sample("recommend", *query, option, "folder")

    message = "citerec: error: folder: this is a folder, expected a file\n"
    assert done == Done(2, "", message)


def test_the_references_that_a_draft_cites_are_used_by_themselves(
    sample: Cli, tmp_path: Path
) -> None:
    (tmp_path / "draft.tex").write_text(
        "\\documentclass{article}\\title{Citation recommendation}\\begin{document}\\begin{abstract}"
        f"{ABSTRACT}\\end{{abstract}}\\cite{{he}}\\cite{{nobody}}\\bibliography{{refs}}"
    )
    (tmp_path / "refs.bib").write_text(
        "@misc{he, title = {Context-aware citation recommendation}}\n"
        "@misc{nobody, title = {No such paper at all}}\n"
    )
    (tmp_path / "more.txt").write_text("bhagavatula2018content\n")
    query = ("recommend", "--query", "draft.tex", *PLAIN, "--format", "json")

    plain = sample(
        "recommend", "--title", TITLE, "--abstract", ABSTRACT, *PLAIN, "--format", "json"
    )
    own, added = sample(*query), sample(*query, "--cited", "more.txt")
    off, retitled = sample(*query, "--cited", "none"), sample(*query, "--title", "Deep learning")

    assert own.err == (
        "citerec: draft.tex (LaTeX): title 'Citation recommendation', abstract 'We rank the papers that a "
        "manuscript should cite.' (49 characters)\n"
        "citerec: 2 references cited in draft.tex (refs.bib): 1 found in this corpus, 1 not found "
        "(use --verbose to list them)\n"
    )
    assert "he2010context" in plain.ids
    assert "he2010context" not in own.ids
    assert {"he2010context", "bhagavatula2018content"}.isdisjoint(added.ids)
    assert off.ids == plain.ids
    assert "title 'Deep learning'" in retitled.err


def test_verbose_lists_which_references_are_in_the_corpus(sample: Cli, tmp_path: Path) -> None:
    (tmp_path / "refs.bib").write_text(
        "@misc{a, title = {Context aware citation recommendation}}\n"
        "@misc{b, title = {No such paper at all}}\n"
        "@misc{c, title = {Attention is all you need}, year = {1950}, author = {Ada Lovelace}}\n"
        "@misc{vaswani2017attention, title = {Transformers}}\n"
    )

    done = sample("recommend", "--title", TITLE, "--cited", "refs.bib", "-v", *PLAIN)

    assert done.code == 0
    assert [line for line in done.err.splitlines() if "refs.bib" in line] == [
        "citerec: refs.bib: Context aware citation recommendation: he2010context",
        "citerec: refs.bib: No such paper at all: not found",
        "citerec: refs.bib: Attention is all you need: not found",
        "citerec: refs.bib: Transformers: vaswani2017attention",
        "citerec: 4 references in refs.bib: 2 found in this corpus, 2 not found",
    ]


def test_fields_are_added_to_each_paper_of_json(sample: Cli) -> None:
    plain = sample("recommend", "--title", TITLE, "--format", "json", "--k", 2).json

    for format in ("json", "jsonl"):
        done = sample(
            *("recommend", "--title", TITLE, "--k", 2, "--format", format),
            *("--fields", "authors, venue,doi"),
        )

        found = done.json if format == "json" else [json.loads(s) for s in done.out.splitlines()]
        papers = found[0].get("results", found)
        assert [
            paper.keys() - first.keys() for paper, first in zip(papers, plain, strict=True)
        ] == [{"authors", "venue", "doi"}] * 2
        assert all(isinstance(paper["authors"], list) and paper["authors"] for paper in papers)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (("--format", "json", "--fields", "colour"), "--fields: no field 'colour'; choose from "),
        (("--fields", "doi"), "--fields is for --format json and jsonl, not table"),
    ],
)
def test_fields_that_cannot_be_given_are_one_clear_line(
    sample: Cli, options: tuple[str, ...], fault: str
) -> None:
    done = sample("recommend", "--title", TITLE, *options)

    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert fault in done.err


def test_a_bibliography_excludes_by_title(sample: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.bib").write_text(
        "@article{x, title = {Context-aware {C}itation recommendation}}\n@misc{y, year = 2000}\n"
    )

    done = sample("recommend", "--title", TITLE, "--format", "json", "--exclude", "mine.bib")

    assert done.code == 0
    assert "he2010context" not in done.ids
    assert done.err.splitlines() == [
        "citerec: warning: mine.bib: line 2: entry 'y' has neither a title nor an id; "
        "the entry is ignored",
        "citerec: 1 reference in mine.bib: 1 found in this corpus",
    ]


def test_many_entries_without_a_name_have_some_lines(sample: Cli, tmp_path: Path) -> None:
    records = "TY  - JOUR\nER  - \n" * 3_000
    (tmp_path / "mine.ris").write_text(f"{records}TY  - JOUR\nTI  - Any title\nER  - \n")

    done = sample("recommend", "--title", TITLE, "--exclude", "mine.ris")

    lines = done.err.splitlines()
    assert (done.code, len(lines)) == (0, 22)
    assert lines[20].endswith("2,980 more entries are ignored (list them: citerec check)")


def test_own_output_as_an_exclusion_leaves_nothing_of_it(sample: Cli, tmp_path: Path) -> None:
    for format in ("bibtex", "ris", "csl"):
        first = sample("recommend", "--title", TITLE, "--format", "json", "--k", 10).ids
        sample("recommend", "--title", TITLE, "--k", 10, "--format", format, "--output", "seen")

        second = sample("recommend", "--title", TITLE, "--format", "json", "--exclude", "seen")

        assert not set(first) & set(second.ids), format


def test_the_year_bound_is_the_querys_or_the_one_given(sample: Cli, tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text(json.dumps({"title": TITLE, "year": 2012}))

    def latest(*more: object) -> int:
        done = sample("recommend", "--query", "q.json", "--format", "json", "--k", 300, *more)
        return max(item["year"] for item in done.json)

    assert latest() <= 2012
    assert latest("--year-max", 1990) <= 1990
    assert latest("--year-max", 3000) > 2012


def test_explain_says_why(sample: Cli) -> None:
    done = sample("recommend", "--title", TITLE, "--format", "json", "--explain", "--k", 1, *PLAIN)

    (reason,) = done.json[0]["reasons"]
    kind, words = reason.split(": ")
    assert kind == "matches"
    assert set(words.split(", ")) == {"citation", "recommendation"}
    assert reason in sample("recommend", "--title", TITLE, "--explain", *PLAIN).out


def test_bm25_can_be_tuned(sample: Cli) -> None:
    def scores(*more: object) -> list[float]:
        draft = SAMPLE / "draft.json"
        done = sample("recommend", "--query", draft, "--format", "json", *more)
        return [item["score"] for item in done.json]

    assert scores("--k1", 1.2, "--b", 0.75) == scores()
    for other in (
        ["--k1", 0.9],
        ["--b", 0],
        ["--query-form", "title"],
        ["--query-form", "key-terms"],
        ["--stop-words", "long"],
    ):
        assert scores(*other) != scores(), other


def test_many_papers_may_be_asked_for(sample: Cli) -> None:
    for k in (5000, 2_000_000):
        done = sample(
            "recommend", "--title", TITLE, "--abstract", ABSTRACT, "--k", k, "--format", "json"
        )

        assert done.code == 0
        assert 20 < len(done.json) <= 300


# --- what goes where


def test_output_is_the_file_and_stdout_stays_empty(sample: Cli, tmp_path: Path) -> None:
    for format in Format:
        shown = sample("recommend", "--title", TITLE, "--format", format.value)

        done = sample("recommend", "--title", TITLE, "--format", format.value, "--output", "out")

        assert (done.code, done.out, done.err) == (0, "", shown.err)
        assert bool(done.err) == (format is Format.DOI)  # the papers of the sample have none
        assert (tmp_path / "out").read_text() == shown.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["indexes", "out"]


def test_an_output_that_fails_leaves_what_was_there(
    sample: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").write_text("before")

    def full(*_: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    done = sample("recommend", "--title", TITLE, "--output", "out")

    assert (done.code, done.out) == (2, "")
    assert done.err == "citerec: error: cannot write out: No space left on device\n"
    assert (tmp_path / "out").read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["indexes", "out"]


def test_a_batch_that_fails_midway_leaves_what_was_there(
    sample: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").write_text("before")
    write(tmp_path / "batch.jsonl", [{"id": f"q{i}", "title": TITLE} for i in range(300)])
    retrieve, parts = Bm25Retriever.retrieve, []

    def second_fails(*arguments: Any) -> Any:
        if len(arguments[1]) > 1:  # else the title of one draft is searched alone
            parts.append(len(arguments[1]))
        if len(parts) == 2:
            raise KeyboardInterrupt
        return retrieve(*arguments)

    monkeypatch.setattr(Bm25Retriever, "retrieve", second_fails)
    done = sample(*("recommend", "--query", "batch.jsonl", "--format", "trec", "--output", "out"))

    assert (done.code, done.out, parts) == (1, "", [256, 44])
    assert (tmp_path / "out").read_text() == "before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["batch.jsonl", "indexes", "out"]


def test_a_cold_start_loads_no_library_that_it_does_not_need(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    (tmp_path / "cited").write_text("https://doi.org/10.1145/1\nhe2010context\n")
    arguments = ["recommend", "--title", TITLE, "--index", str(sample_index.path), *PLAIN]
    script = (
        "import sys\nfrom citerec.cli import run\n"
        f"run({[*arguments, '--format', 'trec', '--exclude', 'cited']!r})\n"
        "needless = {'pandas', 'scipy', 'matplotlib', 'ranx', 'citerec.cli.train', 'citerec.cli.evaluate'}\n"
        "print(needless & set(sys.modules), file=sys.stderr)"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout.count("\n") == 20
    assert done.stderr.splitlines()[1:] == ["set()"]


def test_every_command_is_listed_with_its_help_and_runs_by_its_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["--help"]) == 0
    listed = re.findall(r"^  ([a-z][a-z-]*)  +\S", capsys.readouterr().out, re.MULTILINE)

    assert set(listed) == set(COMMANDS)
    for name in COMMANDS:
        assert run([name, "--help"]) == 0
        assert capsys.readouterr().out.startswith(f"Usage: citerec {name} ")


def test_in_a_log_file_progress_is_a_line_a_minute(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lines(console: ConsoleOutput) -> str:
        with console.progress(in_bytes="read") as progress:
            progress("features", 640, 2_000)
            progress("read", 2**21, 2**22)
        return capsys.readouterr().err

    assert lines(ConsoleOutput()) == ""  # no minute has passed

    monkeypatch.setattr("citerec.cli.console.LINE_SECONDS", 0.0)
    assert lines(ConsoleOutput()) == "citerec: features: 640/2,000\nciterec: read: 2.0/4.0 MB\n"
    assert lines(ConsoleOutput(quiet=True)) == ""


def test_one_draft_is_searched_by_vectors_ranked_and_reranked_without_torch(
    dense_sample: IndexFolder, tiny_reranker_model: str, tmp_path: Path
) -> None:
    index = ["--index", str(dense_sample.path)]
    arguments = ["recommend", "--title", TITLE, *index, "--reranker", tiny_reranker_model]
    needless = (
        "torch",
        "transformers",
        "huggingface_hub",
        "pandas",
        "sklearn",
        "matplotlib",
        "ranx",
        "citerec.encode.model",
        "citerec.encode.hub",
        "citerec.corpus.readers",
    )
    script = (
        "import sys\nfrom citerec.cli import run\n"
        f"run({[*arguments, '--format', 'trec', '--verbose']!r})\n"
        f"print([name for name in {needless} if name in sys.modules], file=sys.stderr)"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout.count("\n") == 20
    assert "bm25 + dense" in done.stderr and "ranker: the default ranker" in done.stderr
    assert "32+32 tokens, numpy float32" in done.stderr
    assert done.stderr.splitlines()[-1] == "[]"


def test_a_text_without_an_id_may_be_given_the_paper_that_is_called_query(
    cli: Cli, tmp_path: Path
) -> None:
    write(tmp_path / "c.jsonl", [{"id": i, "title": "Tensors"} for i in ("query", "q1", "q2")])
    cli("index", "c.jsonl")
    write(tmp_path / "two.jsonl", [{"title": "Tensors"}, {"id": "q2", "title": "Tensors"}])

    one = cli("recommend", "--title", "tensors", "--format", "json")
    two = cli("recommend", "--query", "two.jsonl", "--format", "trec")

    assert one.ids == ["q1", "q2", "query"]
    rows = [line.split(" ")[:3:2] for line in two.out.splitlines()]
    assert rows == [["q1", "q1"], ["q1", "q2"], ["q1", "query"], ["q2", "q1"], ["q2", "query"]]


def test_an_output_that_is_a_link_stays_one(sample: Cli, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "near").symlink_to(tmp_path / "far" / "file")

    assert sample("recommend", "--title", TITLE, "--output", "near").code == 0

    assert (tmp_path / "near").is_symlink()
    assert "Citation" in (tmp_path / "far" / "file").read_text()


def test_an_output_that_is_a_pipe_is_written_into(sample: Cli, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[str] = []
    reader = Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()

    done = sample("recommend", "--title", TITLE, "--output", "pipe", "--format", "json")

    reader.join()
    assert done.code == 0
    assert len(json.loads(read[0])) == 20
    assert (tmp_path / "pipe").is_fifo()


def test_quiet_says_nothing_but_the_result(sample: Cli, tmp_path: Path) -> None:
    (tmp_path / "cited").write_text("he2010context")

    for arguments in (
        ["recommend", "--title", TITLE, "--exclude", "cited"],
        ["info"],
        ["verify"],
        ["index", SAMPLE / "papers.jsonl", "--index", "other"],
        ["evaluate", "--systems", "random", "--index", "sample"],
    ):
        done = sample(*arguments, "--quiet")

        assert (done.code, done.err) == (0, ""), arguments


def test_verbose_says_more_on_stderr_and_the_same_on_stdout(sample: Cli) -> None:
    plain = sample("recommend", "--title", TITLE, *PLAIN)

    verbose = sample("recommend", "--title", TITLE, "-v", *PLAIN)

    assert verbose.out == plain.out
    assert verbose.err == (
        "citerec: indexes/sample: 300 papers, bm25\nciterec: ranker: none (option)\n"
    )


def test_progress_is_shown_on_a_terminal_and_wiped_away(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [
            COMMAND,
            "index",
            SAMPLE / "papers.jsonl",
            "--encoder",
            "none",
            "--index",
            tmp_path / "made",
        ],
        stdout=subprocess.PIPE,
        stderr=follower,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "80"},
    ) as process:
        os.close(follower)
        shown = b""
        while chunk := _read(leader):
            shown += chunk
        assert process.wait() == 0
        assert process.stdout is not None
        assert process.stdout.read().startswith(str(tmp_path / "made").encode())
    os.close(leader)

    assert b"reading" in shown
    assert b"0.3/0.3 MB" in shown
    assert b"2/2 " in shown  # steps of finishing, which are no bytes
    assert shown.endswith(b"\x1b[2K")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that the other end is closed
        return b""


@pytest.mark.parametrize(
    "arguments",
    [
        ["recommend", "--title", "a model of data", "--k", "300", "--format", "json"],
        ["info"],
        pytest.param(
            ["evaluate", "--systems", "random", "--output", "report"], marks=pytest.mark.slow
        ),  # seconds, and its output goes the same way
        ["recommend", "--help"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_a_reader_that_has_enough_is_no_error(
    sample_index: IndexFolder, tmp_path: Path, arguments: list[str]
) -> None:
    given = [] if "--help" in arguments else ["--index", str(sample_index.path)]
    with subprocess.Popen(
        [COMMAND, *arguments, *given],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # as `head` does
        assert process.stderr.read() == b""
        assert process.wait() == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize(
    "arguments",
    [["recommend", "--title", TITLE], ["doctor"], ["--help"], ["recommend", "-h"], ["--version"]],
)
def test_a_full_disk_behind_stdout_is_one_line(
    sample_index: IndexFolder, tmp_path: Path, arguments: list[str], buffered: bool
) -> None:
    index = ["--index", str(sample_index.path)] if "--title" in arguments else []

    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [str(COMMAND), *arguments, *index],
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env=os.environ | {"PYTHONUNBUFFERED": "" if buffered else "1"},
            text=True,
            check=False,
        )

    message = "citerec: error: cannot write standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, message)


def test_with_a_closed_stderr_the_list_is_printed(sample_index: IndexFolder) -> None:
    command = f"{COMMAND} recommend --index {sample_index.path} --title '{TITLE}'"

    done = [
        subprocess.run(f"{command} {end}", shell=True, capture_output=True, text=True, check=False)
        for end in ("", "2>&-")
    ]

    assert [one.returncode for one in done] == [0, 0]
    assert done[0].stdout == done[1].stdout != ""


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"recommend --title '{TITLE}' >&-", "cannot write standard output: Bad file descriptor"),
        ("check ids.txt >&-", "cannot write standard output: Bad file descriptor"),
        ("info >&-", "cannot write standard output: Bad file descriptor"),
        ("recommend --query - <&-", "standard input: this is closed; name a file, or pipe one"),
        (f"recommend --title '{TITLE}' --cited - <&-", "standard input: this is closed; name"),
        ("check - <&-", "standard input: this is closed; name a file, or pipe one into the"),
    ],
)
def test_a_closed_stream_is_one_line(
    sample_index: IndexFolder, tmp_path: Path, command: str, message: str
) -> None:
    (tmp_path / "ids.txt").write_text("a\n")
    name, _, rest = command.partition(" ")

    done = subprocess.run(
        f"{COMMAND} {name} --index {sample_index.path} {rest}",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert done.stderr.startswith(f"citerec: error: {message}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["recommend", "--title", "x", "--output", "loop"], "cannot write loop: Too many levels"),
        (["recommend", "--title", "x", "--append", "loop", "--output", "o"], "cannot write "),
        (["index", "loop"], "loop: no such file or folder; name a corpus file or folder"),
        (["check", "loop"], "loop: cannot be read: Too many levels of symbolic links"),
        (["evaluate", "--output", "loop"], "cannot write loop: it is a link that leads to itself"),
        (["corpus", "convert", "in.jsonl", "-o", "l.jsonl"], "cannot write l.jsonl: it is a link"),
        (["index", "in.jsonl", "--index", "loop"], "cannot write loop: it is a link that leads"),
    ],
)
def test_a_link_that_leads_to_itself_is_one_line(
    sample_index: IndexFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    makes_one = arguments[0] in ("index", "corpus")
    index = [] if makes_one else ["--index", str(sample_index.path.absolute())]
    (tmp_path / "in.jsonl").write_text('{"id": "1", "title": "A paper"}\n')
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "l.jsonl").symlink_to("l.jsonl")
    monkeypatch.chdir(tmp_path)

    assert run([*arguments, *index]) == 2

    error = capsys.readouterr().err
    assert error.startswith(f"citerec: error: {message}")
    assert error.count("\n") == 1


def test_an_output_in_a_folder_that_is_gone_is_one_line(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    done = subprocess.run(
        f"mkdir gone; cd gone; rmdir ../gone; "
        f"{COMMAND} recommend --title x --output x --index {sample_index.path.absolute()}",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    message = "citerec: error: cannot write x: No such file or directory\n"
    assert (done.returncode, done.stderr) == (2, message)


def test_head_takes_what_it_wants(sample_index: IndexFolder, tmp_path: Path) -> None:
    done = subprocess.run(
        f"set -o pipefail; {COMMAND} recommend --title 'a model of data' --k 300 --format trec "
        f"--index {sample_index.path} | head -1",
        shell=True,
        executable="/bin/bash",
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("query Q0 ")
    assert done.stdout.count("\n") == 1


def test_a_terminal_without_our_letters_is_no_fault(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    (tmp_path / "Übersicht").symlink_to(sample_index.path)

    for command in (["info"], ["recommend", "--title", TITLE]):
        done = a_process(
            *command,
            *("--index", "Übersicht"),
            cwd=tmp_path,
            env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        )

        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout


def test_an_interruption_is_one_line_and_exit_code_1(
    sample: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("citerec.folder.open_index", interrupted)

    done = sample("info")

    assert (done.code, done.out) == (1, "")
    assert done.err == "citerec: interrupted; no file is left half-written\n"


def test_a_fault_of_ours_keeps_its_traceback(sample: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("citerec.folder.open_index", broken)

    with pytest.raises(ZeroDivisionError):
        sample("info")


@pytest.mark.parametrize(
    ("imported", "code", "said"),
    [
        ("typer", -signal.SIGINT, ""),  # while the command line is imported
        ("pyarrow", 1, "citerec: interrupted; no file is left half-written\n"),  # by a command
    ],
)
def test_ctrl_c_during_an_import_leaves_no_traceback(
    sample_index: IndexFolder, tmp_path: Path, imported: str, code: int, said: str
) -> None:
    (tmp_path / f"{imported}.py").write_text(
        "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
    )
    command = [sys.executable, "-m", "citerec", "info", "--index", sample_index.path]

    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)


# --- which index


def test_without_any_index_it_says_how_to_build_one(cli: Cli) -> None:
    done = cli("recommend", "--title", TITLE)

    assert (done.code, done.out) == (2, "")
    assert "no index under indexes/; build one: citerec index CORPUS" in done.err


def test_several_indexes_are_listed(sample: Cli, tmp_path: Path) -> None:
    (tmp_path / "indexes" / "other").symlink_to(tmp_path / "indexes" / "sample")

    for arguments in (["recommend", "--title", TITLE], ["info"], ["verify"], ["evaluate"]):
        done = sample(*arguments)

        assert (done.code, done.out) == (2, "")
        assert done.err == (
            "citerec: error: several indexes: indexes/other, indexes/sample; "
            "choose one with --index\n"
        )


@pytest.mark.parametrize(
    "named", ["sample", "indexes/sample", "indexes/sample/", "./indexes/other"]
)
def test_an_index_is_named_by_folder_or_name(sample: Cli, tmp_path: Path, named: str) -> None:
    (tmp_path / "indexes" / "other").symlink_to(tmp_path / "indexes" / "sample")

    assert sample("recommend", "--title", TITLE, "--index", named).code == 0


# --- info, verify, demo, doctor


def test_info_says_what_an_index_holds(sample: Cli, sample_index: IndexFolder) -> None:
    counts = sample_index.manifest.counts

    done = sample("info")

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("indexes/sample  (")
    for line in (
        f"{counts['papers']}  papers",
        f"{counts['citations']:,}  citations among them",
        f"{counts['test_queries']}  test queries",
        "splits  by year, 80/10/10",
        "encoder  none: BM25 alone",
    ):
        assert f" {line}\n" in done.out


def test_info_as_json_is_the_manifest(sample: Cli, sample_index: IndexFolder) -> None:
    done = sample("info", "--format", "json")

    assert (done.code, done.err) == (0, "")
    assert done.json == json.loads((sample_index.path / "manifest.json").read_text())


def test_verify_finds_a_flipped_byte(cli: Cli, tmp_path: Path) -> None:
    corpus = write(tmp_path / "mine.jsonl", [{"id": "a", "title": "A"}])
    cli("index", corpus)
    whole = cli("verify")
    papers = tmp_path / "indexes" / "mine" / "papers.arrow"
    papers.write_bytes(papers.read_bytes()[:-20] + b"?" + papers.read_bytes()[-19:])

    done = cli("verify")

    assert (whole.code, whole.err) == (0, "")
    assert whole.out.startswith("indexes/mine is complete: ")
    assert (done.code, done.out) == (2, "")
    assert "indexes/mine is damaged: papers.arrow is not what was written" in done.err


def test_the_doctor_examines_this_machine(cli: Cli) -> None:
    done = cli("doctor", "--format", "json")

    assert done.code in (0, 1)
    assert done.json
    assert cli("doctor").out


# --- evaluate


FILES = {
    "report.json",
    "report.html",
    "report.tex",
    "per_query.csv",
}


def test_evaluate_writes_the_report_of_the_contract(sample: Cli, tmp_path: Path) -> None:
    done = sample("evaluate", "--systems", "bm25, random,oracle,bm25", "--seed", 3)

    assert done.code == 0
    assert done.err == "citerec: the report is in reports/sample-test/\n"
    assert all(name in done.out for name in ("bm25", "random", "oracle"))
    folder = tmp_path / "reports" / "sample-test"
    names = {path.name for path in folder.iterdir()}
    assert names == FILES | {"qrels.txt", "bm25.run", "random.run", "oracle.run"}
    report = json.loads((folder / "report.json").read_text())
    assert (report["corpus"], report["split"]) == ("sample", "test")
    assert report["known_graph"] == "train"
    assert report["queries"] == len(read_qrels(folder / "qrels.txt"))
    assert [system["name"] for system in report["systems"]] == ["bm25", "random", "oracle"]
    for system in report["systems"]:
        assert set(system["metrics"]) == set(system["ci95"])
        assert {"f1@20", "f1@20 (of means)", "mrr", "recall@1000", "map"} <= set(system["metrics"])
    assert report["provenance"]["settings"]["bm25"]["k1"] == 1.2
    assert len(read_run(folder / "bm25.run").rankings) == report["queries"]


def test_given_runs_are_held_against_given_qrels(sample: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("q1 Q0 x 1 2 t\nq1 Q0 y 2 1 t\n")
    (tmp_path / "b.run").write_text("q1 Q0 y 1 2 t\nq2 Q0 z 2 1 t\n")
    (tmp_path / "gold.txt").write_text("q1 0 x 1\nq2 0 z 1\n")

    done = sample(
        *("evaluate", "--run", "a.run", "--run", "b.run", "--qrels", "gold.txt"),
        *("--output", "report"),
    )

    assert done.code == 0
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    assert report["queries"] == 2
    mrr = {system["name"]: system["metrics"]["mrr"] for system in report["systems"]}
    assert mrr == {"a": 0.5, "b": 0.5}
    assert {item["metric"] for item in report["comparisons"]} >= {"mrr", "f1@20"}


def test_a_run_that_was_written_scores_as_the_system_did(sample: Cli, tmp_path: Path) -> None:
    sample("evaluate", "--systems", "bm25", "--output", "own")

    done = sample("evaluate", "--run", "own/bm25.run", "--output", "again")

    assert done.code == 0
    own, again = (
        json.loads((tmp_path / name / "report.json").read_text())["systems"][0]
        for name in ("own", "again")
    )
    assert own["metrics"] == again["metrics"]
    assert own["ci95"] == again["ci95"]


def test_a_recommended_batch_can_be_evaluated(
    sample: Cli, sample_index: IndexFolder, tmp_path: Path
) -> None:
    ids = (sample_index.splits / "test.ids").read_text().split()
    rows = sample_index.papers.rows_of(ids).tolist()
    asked = [Query.of(sample_index.papers[row]) for row in rows]
    records = [
        {"id": q.id, "title": q.title, "abstract": q.abstract, "year": q.year} for q in asked
    ]
    write(tmp_path / "test.jsonl", records)

    sample(
        *("recommend", "--query", "test.jsonl", "--format", "trec", "--k", 1000),
        *("--output", "mine.run", *PLAIN),
    )
    sample("evaluate", "--run", "mine.run", "--output", "mine")
    sample("evaluate", "--systems", "bm25", "--output", "own")

    mine, own = (
        json.loads((tmp_path / name / "report.json").read_text())["systems"][0]
        for name in ("mine", "own")
    )
    assert mine["metrics"] == pytest.approx(own["metrics"])


def test_a_report_is_replaced_but_nothing_else_is(sample: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")

    refused = sample("evaluate", "--systems", "random", "--output", "mine")
    first = sample("evaluate", "--systems", "random", "--output", "report")
    second = sample("evaluate", "--systems", "oracle", "--output", "report")

    assert refused.code == 2
    assert "thesis.tex" in refused.err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]
    assert (first.code, second.code) == (0, 0)
    assert not (tmp_path / "report" / "random.run").exists()


@pytest.mark.parametrize("known", ["train", "earlier"])
def test_the_known_graph_is_told(sample: Cli, tmp_path: Path, known: str) -> None:
    sample("evaluate", "--systems", "most-cited", "--known-graph", known, "--output", "report")

    report = json.loads((tmp_path / "report" / "report.json").read_text())
    assert report["known_graph"] == known


def test_given_runs_have_a_folder_of_their_own(sample: Cli, tmp_path: Path) -> None:
    sample("evaluate", "--systems", "random,most-cited")
    own = tmp_path / "reports" / "sample-test"
    before = {path.name: path.read_bytes() for path in own.iterdir()}

    done = sample("evaluate", "--run", "reports/sample-test/random.run")

    assert done.code == 0
    assert done.err == "citerec: the report is in reports/sample-test-runs/\n"
    assert {path.name: path.read_bytes() for path in own.iterdir()} == before
    report = (tmp_path / "reports" / "sample-test-runs" / "report.json").read_text()
    assert json.loads(report)["known_graph"] is None


@pytest.mark.parametrize(("given", "told"), [((), None), (("--known-graph", "train"), "train")])
def test_a_given_run_is_of_no_known_graph_unless_somebody_says(
    sample: Cli, tmp_path: Path, given: tuple[str, ...], told: str | None
) -> None:
    (tmp_path / "a.run").write_text("q1 Q0 x 1 2 t\n")
    (tmp_path / "gold.txt").write_text("q1 0 x 1\n")

    done = sample("evaluate", "--run", "a.run", "--qrels", "gold.txt", *given)

    assert done.code == 0
    folder = tmp_path / "reports" / "gold-qrels-runs"
    assert json.loads((folder / "report.json").read_text())["known_graph"] == told


def test_ids_without_gold_are_told_of(cli: Cli, tmp_path: Path) -> None:
    papers = [{"id": f"p{n}", "title": f"Paper {n}", "year": 2000 + n} for n in range(9)]
    papers[5]["citations"] = ["p1"]
    write(tmp_path / "made" / "papers.jsonl", papers)
    splits = {"train": "p1", "dev": "p2", "test": "p5\np6\np7\ngone"}
    (tmp_path / "made" / "splits").mkdir()
    for name, ids in splits.items():
        (tmp_path / "made" / "splits" / f"{name}.ids").write_text(ids)
    cli("index", "made", "--quiet")

    done = cli("evaluate", "--systems", "random,oracle")

    said = "3 left out (1 not in the corpus; 2 without gold"
    assert done.code == 0
    assert f"citerec: 1 test queries; {said}" in done.err
    assert said in (tmp_path / "reports" / "made-test" / "report.html").read_text()
    report = json.loads((tmp_path / "reports" / "made-test" / "report.json").read_text())
    assert sorted(report["left_out"].values()) == [1, 2]
    assert (report["ceilings"], report["comparisons"]) == (["oracle"], [])


def test_what_would_fail_at_the_end_is_refused_before_any_system_runs(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    papers: list[dict[str, Any]] = [
        {"id": f"p{n}", "title": "Same", "year": 2000 + n, "citations": ["p0"]} for n in range(20)
    ]
    write(tmp_path / "plain.jsonl", papers)
    write(tmp_path / "reports" / "plain-test" / "thesis.tex", [{"years": "of work"}])
    cli("index", "plain.jsonl", "--index", "indexes/plain", "--quiet")
    monkeypatch.setattr("citerec.evaluate.systems.Systems.run", lambda *_: pytest.fail("it ran"))

    folder = cli("evaluate", "--index", "plain")

    assert folder.code == 2
    assert "thesis.tex" in folder.err


# --- rows


def test_a_run_of_rows_goes_past_a_broken_one(cli: Cli, tmp_path: Path) -> None:
    head = f'claim = "It runs."\ncost = "1 s"\ncorpus = "{SAMPLE / "papers.jsonl"}"\n'
    rows = tmp_path / "experiments" / "mine"
    rows.mkdir(parents=True)
    (rows / "a.toml").write_text(f'title = "Broken"\n{head}rules = {{ min_gold = 999 }}')
    (rows / "b.toml").write_text(
        f'title = "Whole"\n{head}published = {{ mrr = 0.5 }}\nsource = "A paper"'
    )
    (rows / "c.toml").write_text(f'title = "Chance"\n{head}system = "random"')
    (rows / "table.toml").write_text('title = "Mine"')

    done = cli("experiment", "run", *sorted(rows.glob("*.toml")))

    assert done.code == 2  # for the broken row, told once the others are done
    assert "no query with 999 gold citations" in done.err.splitlines()[-1]
    verdicts = [line.split()[:2] for line in done.out.splitlines()]
    assert verdicts == [["measured", str(rows / "b.toml")], ["measured", str(rows / "c.toml")]]
