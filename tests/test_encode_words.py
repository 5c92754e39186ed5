"""Encoders of words: the same paper always gets the same vector, held against scikit-learn and numpy."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from citerec.build import BuildConfig, build_index
from citerec.embed import EmbedConfig, embed_anew
from citerec.encode.opening import EncoderChangedError, open_encoder, reopen
from citerec.encode.spec import Fingerprint, Similarity
from citerec.errors import MissingExtraError, ModelError
from citerec.folder import IndexFolder, open_index
from citerec.lab.words.bag import Bag, Tf
from citerec.lab.words.chance import RandomVectors
from citerec.lab.words.doc2vec import Doc2VecWords
from citerec.lab.words.folder import read_words, write_words
from citerec.lab.words.model import WordModel
from citerec.lab.words.propagated import Propagated, propagate
from citerec.lab.words.tokens import counted, keys_of, words_of
from citerec.retrieve.dense import DenseRetriever
from citerec.types import Eligibility, Paper, Query

GRAPH = Paper(id="1", title="graph graph", abstract="search")
SEARCH = Paper(id="2", title="search", abstract="the tree")
NOTHING = Paper(id="3", title="Unknown words", abstract="alone")
PAPERS = [GRAPH, SEARCH, NOTHING]


def bag(**given: Any) -> Bag:
    """Graph points right, search up; a graph counts twice as much."""
    plain = {
        "words": ("graph", "search"),
        "word_vectors": np.array([[1, 0], [0, 1]], np.float32),
        "weights": np.array([2, 1], np.float32),
    }
    return Bag(**{**plain, **given})


def doc2vec(words: int = 30, dim: int = 8) -> Doc2VecWords:
    rng = np.random.default_rng(0)
    return Doc2VecWords(
        words=tuple(f"word{n}" for n in range(words)),
        counts=np.arange(words, 0, -1),
        outputs=rng.standard_normal((words, dim)).astype(np.float32),
        epochs=5,
    )


def sgc() -> Propagated:
    """In the table stands paper 1, and it points down."""
    down = np.array([[0, -1]], np.float32)
    return Propagated(features=bag(), keys=keys_of([GRAPH]), table=down)


MODELS: dict[str, Callable[[], WordModel]] = {
    "random": lambda: RandomVectors(dim=4, seed=7),
    "bag": lambda: bag(component=np.array([1, 0], np.float32), average=True, tf=Tf.SUBLINEAR),
    "shares": lambda: bag(shares=(0.75, 0.25)),
    "sgc": sgc,
    "doc2vec": doc2vec,
}


# --- words


def test_words_are_cut_as_scikit_learn_cuts_them() -> None:
    texts = [
        "Élan-vital: a C++ x2 GRAPHS, naïve\u2019s",
        "日本語 Graph_1 3.14 ﬁsh",
        "",
        "\ud800 half",
    ]
    theirs = CountVectorizer(strip_accents="ascii").build_analyzer()

    assert [words_of(text) for text in texts[:3]] == [theirs(text) for text in texts[:3]]
    assert words_of(texts[3]) == ["half"]


def test_known_words_are_counted() -> None:
    counts = counted(["b a b", "unknown", "a"], {"a": 0, "b": 1}).toarray()

    assert counts.tolist() == [[0, 0], [0, 0], [0, 0]]  # words of one letter are none

    counts = counted(["bb aa bb", "unknown", "aa"], {"aa": 0, "bb": 1}).toarray()

    assert counts.tolist() == [[1, 2], [0, 0], [1, 0]]


# --- sums


def test_a_bag_sums_weighted_vectors_to_unit_length() -> None:
    [graph, search, nothing] = bag().vectors(PAPERS)
    [again, other] = bag().vectors([Query.of(NOTHING), replace(NOTHING, id="4")])

    assert graph == pytest.approx(np.array([4, 1]) / np.sqrt(17))  # 2 graphs, twice; 1 search
    assert search.tolist() == [0, 1]
    assert np.linalg.norm(nothing) == pytest.approx(1)  # no word is known: a direction by chance
    assert np.array_equal(again, nothing)
    assert not np.array_equal(other, nothing)


@pytest.mark.parametrize(
    ("tf", "sums"), [("plain", [4, 1]), ("sublinear", [2 + 2 * np.log(2), 1]), ("binary", [2, 1])]
)
def test_what_a_word_counts_that_is_there_twice(tf: str, sums: list[float]) -> None:
    assert bag(tf=Tf(tf)).sums([GRAPH])[0] == pytest.approx(sums)


def test_an_average_is_over_the_words_that_are_known() -> None:
    assert bag(average=True).sums([GRAPH])[0] == pytest.approx([4 / 3, 1 / 3])


def test_a_component_is_taken_out() -> None:
    right = np.array([1, 0], np.float32)

    assert bag(component=right).sums([GRAPH])[0].tolist() == [0, 1]


def test_title_and_abstract_apart_weigh_by_their_shares() -> None:
    [graph] = bag(shares=(3.0, 4.0)).vectors([GRAPH])

    assert graph == pytest.approx([0.6, 0.8])  # title right, abstract up: 3 and 4 make 5


def test_a_bag_whose_parts_do_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="2 words, 2 vectors and 1 weights"):
        bag(weights=np.ones(1, np.float32))


# --- propagated


def test_propagation_is_the_formula_of_the_paper() -> None:
    from scipy.sparse import csr_array

    rng = np.random.default_rng(0)
    links = rng.random((6, 6)) < 0.3
    features = rng.standard_normal((6, 3)).astype(np.float32)

    adjacency = (links | links.T | np.eye(6, dtype=bool)).astype(float)
    scale = np.diag(adjacency.sum(1) ** -0.5)
    by_hand = np.linalg.matrix_power(scale @ adjacency @ scale, 3) @ features
    found = propagate(features, csr_array(links.astype(np.int32)), 3)

    assert np.allclose(found, by_hand, atol=1e-5)
    assert np.array_equal(propagate(features, csr_array((6, 6), dtype=np.int32), 8), features)


def test_a_paper_of_the_table_is_looked_up_a_query_and_a_stranger_are_not() -> None:
    stranger = Paper(id="1", title="search graph")  # the id alone is not the paper

    [known, asked, other] = sgc().vectors([GRAPH, Query.of(GRAPH), stranger])

    assert known.tolist() == [0, -1]
    assert np.array_equal(asked, bag().vectors([GRAPH])[0])
    assert np.array_equal(other, bag().vectors([stranger])[0])


# --- chance


def test_random_vectors_have_mean_zero_and_go_by_seed_id_and_title() -> None:
    papers = [Paper(id=str(n), title="Title") for n in range(500)]
    vectors = RandomVectors().vectors(papers)

    assert vectors.shape == (500, 25)
    assert abs(vectors.mean()) < 0.03  # 12,500 numbers: three standard errors
    assert abs(vectors.std() - 1) < 0.03
    assert np.array_equal(RandomVectors().vectors([Query.of(papers[9])])[0], vectors[9])
    assert not np.array_equal(RandomVectors(seed=1).vectors(papers)[9], vectors[9])


# --- every kind


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_comes_back_from_its_folder_and_is_written_alike(tmp_path: Path, kind: str) -> None:
    model = MODELS[kind]()
    papers = [*PAPERS, Paper(id="4", title="word1 word2", abstract="word3 word1")]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_words(tmp_path / name, model)

    found = read_words(tmp_path / "one")

    assert np.array_equal(found.vectors(papers), model.vectors(papers))
    for file in ("citerec_words.json", "model.safetensors"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


@pytest.mark.parametrize("kind", MODELS)
def test_a_papers_vector_is_the_same_in_any_company(kind: str) -> None:
    model = MODELS[kind]()
    papers = [
        Paper(id=str(n), title=f"graph word{n} search", abstract=f"search word{n + 1} " * n)
        for n in range(20)
    ]

    together = model.vectors(papers)
    apart = np.stack([model.vectors([paper])[0] for paper in reversed(papers)])[::-1]

    assert np.array_equal(together, apart)
    assert np.isfinite(together).all()
    if model.similarity is Similarity.COSINE:
        assert np.linalg.norm(together, axis=1) == pytest.approx(1, abs=1e-5)


def test_doc2vec_infers_the_same_in_another_process(tmp_path: Path) -> None:
    write_words(tmp_path, doc2vec())
    paper = Paper(id="1", title="word1 word2 word1", abstract="word9")
    script = (
        "import sys; from pathlib import Path; from citerec.lab.words.folder import read_words;"
        "from citerec.types import Paper;"
        "paper = Paper(id='1', title='word1 word2 word1', abstract='word9');"
        "sys.stdout.write(read_words(Path(sys.argv[1])).vectors([paper]).tobytes().hex())"
    )

    said = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "1", "OMP_NUM_THREADS": "1"},
    )

    # the last bits differ on some processors, between this process and a bare one
    elsewhere = np.frombuffer(bytes.fromhex(said.stdout), np.float32)
    assert elsewhere == pytest.approx(doc2vec().vectors([paper])[0], abs=1e-6)


# --- as an encoder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    write_words(tmp_path / "model", bag())
    return tmp_path / "model"


def test_the_folder_opens_as_any_encoder(folder: Path) -> None:
    told: list[tuple[str, int, int]] = []
    encoder = open_encoder(str(folder))

    vectors = encoder.encode(PAPERS, lambda *what: told.append(what))

    assert vectors.shape == (3, 2)
    assert told[-1] == ("encoding", 3, 3)
    assert (encoder.dim, encoder.precision) == (2, "float32")
    assert encoder.spec.similarity is Similarity.COSINE
    assert Fingerprint.from_json(encoder.fingerprint.to_json()) == encoder.fingerprint


def test_other_numbers_are_another_encoder(folder: Path, tmp_path: Path) -> None:
    recorded = open_encoder(str(folder)).fingerprint
    assert reopen(recorded, tmp_path).fingerprint == recorded

    write_words(folder, bag(weights=np.array([1, 1], np.float32)))

    with pytest.raises(EncoderChangedError, match="trained again or replaced"):
        reopen(recorded, tmp_path)


def test_an_index_is_built_and_searched_with_it(tmp_path: Path, folder: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(
        '{"id": "1", "title": "graph graph", "abstract": "search"}\n'
        '{"id": "2", "title": "search"}\n{"id": "3", "title": "Words"}\n'
    )
    build_index(corpus, tmp_path / "index", BuildConfig(encoder=str(folder)))
    index = open_index(tmp_path / "index")

    dense = DenseRetriever(index, open_encoder(str(folder)))
    [hits] = dense.retrieve([Query(id="q", title="graph")], [Eligibility()], 3)

    scores = dict(zip(index.papers.ids_at(hits.rows), hits.scores.tolist(), strict=True))
    assert scores["1"] == pytest.approx(4 / np.sqrt(17))
    assert scores["2"] == pytest.approx(0)
    assert -1 < scores["3"] < 1  # of which no word is known


def test_an_index_takes_other_vectors_when_only_ids_differ(
    build: Callable[..., IndexFolder], tmp_path: Path
) -> None:
    index = build([{"id": "a", "title": "Same"}, {"id": "b", "title": "Same"}], encoder=None)
    (tmp_path / "random").mkdir()
    write_words(tmp_path / "random", RandomVectors(dim=3))
    encoder = open_encoder(str(tmp_path / "random"))

    embed_anew(index.path, encoder, EmbedConfig(shard=1))
    dense = DenseRetriever(open_index(index.path), encoder)

    asked = [Query(id="a", title="Same"), Query(id="b", title="Same")]
    found = dense.retrieve(asked, [Eligibility()] * 2, 1)
    assert [hits.rows.tolist() for hits in found] == [[0], [1]]
    assert [hits.scores.tolist() for hits in found] == [[0], [0]]  # no distance at all


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("citerec_words.json", b"{", "cannot be read"),
        ("citerec_words.json", b'{"format": 9, "kind": "bag"}', "'bag' in format 9"),
        ("citerec_words.json", b'{"format": 1, "kind": "tree"}', "kind 'tree'"),
        ("model.safetensors", b"nothing", "the arrays do not match"),
    ],
)
def test_a_folder_that_cannot_be_made_out_is_one_clear_line(
    folder: Path, file: str, content: bytes, says: str
) -> None:
    (folder / file).write_bytes(content)

    with pytest.raises(ModelError, match=says):
        open_encoder(str(folder))


def test_without_gensim_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_words(tmp_path, doc2vec())
    for name in [name for name in sys.modules if name.split(".")[0] == "gensim"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "gensim", None)

    with pytest.raises(MissingExtraError, match=r"pip install 'citerec\[words\]'"):
        open_encoder(str(tmp_path))
