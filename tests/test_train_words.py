"""Training encoders of words: what they may learn from, how settings are chosen, what they leave."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from citerec.cli import run
from citerec.corpus.splits import read_ids
from citerec.encode.opening import open_encoder
from citerec.errors import BadInputError, ConfigError, MissingExtraError, ModelExistsError
from citerec.folder import IndexFolder
from citerec.lab.train_words import vectors as vectors_module
from citerec.lab.train_words.bags import WEIGHTINGS, first_component, idf_of, sif
from citerec.lab.train_words.config import (
    LEAST_RATE,
    MAX_DF,
    NEGATIVE,
    READ,
    RECIPES,
    WORD_RECIPES,
    Idf,
    WordRecipe,
    WordsTraining,
    wants_words,
)
from citerec.lab.train_words.corpus import TrainTexts, first_query_year
from citerec.lab.train_words.train import train_words, was_trained_so
from citerec.lab.train_words.triplets import NEAR, RANDOM, SECOND, Drawer, nearest
from citerec.lab.train_words.vectors import WordVectors, read_word2vec
from citerec.lab.words.bag import Bag, Tf, tf_of
from citerec.lab.words.folder import read_words
from citerec.lab.words.propagated import Propagated
from citerec.lab.words.tokens import keys_of
from citerec.manifest import model_faults
from citerec.train import workspace
from citerec.types import Paper, Query

Build = Callable[..., IndexFolder]
SMALL: dict[str, dict[str, Any]] = {
    "random": {},
    "tfidf": {"dim": 20},
    "doc2vec": {"dim": 16, "epochs": 2},
    "fasttext": {"dim": 16, "epochs": 1, "buckets": 1000},
    "sif": {"dim": 16, "epochs": 1, "buckets": 1000},
    "sgc": {"dim": 16, "epochs": 1, "buckets": 1000},
    "citeomatic": {"dim": 75, "epochs": 2, "threads": 2},
}


def small(recipe: str, **given: Any) -> WordsTraining:
    few = {"recipe": recipe, "dev_queries": 20, "dev_pool": 100, **SMALL[recipe], **given}
    return WordsTraining.of(few)


@pytest.fixture(scope="module")
def texts(sample_index: IndexFolder) -> TrainTexts:
    return TrainTexts.of(sample_index)


# --- settings


def test_the_defaults_are_those_of_the_appendix() -> None:
    d2v, citeomatic = (
        WordsTraining.of({"recipe": "doc2vec"}),
        WordsTraining.of({"recipe": "citeomatic"}),
    )
    sgc = WordsTraining.of({"recipe": "sgc"})

    assert (d2v.dim, d2v.min_count, NEGATIVE) == (300, 3, 5)
    assert (d2v.learning_rate, LEAST_RATE) == (0.025, 0.0001)
    assert (sgc.dim, sgc.a, sgc.min_df, MAX_DF) == (300, 1e-4, 3, 0.75)
    assert citeomatic.dim == 75
    assert WordsTraining.of({"recipe": "random"}).dim == 25
    assert len(WEIGHTINGS) == 9


def test_options_win_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "sif.toml").write_text('recipe = "sif"\nepochs = 7\na = 1\n')

    read = WordsTraining.read(tmp_path / "sif.toml", {"epochs": 2, "seed": None})

    assert (read.recipe, read.epochs, read.a, read.learning_rate) == ("sif", 2, 1.0, 0.05)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"recipe": "sif", "batch": 3},
            "the recipe sif has no setting batch; its settings: recipe, seed",
        ),
        ({"recipe": "random", "model": "minilm"}, "the recipe random has no setting model"),
        ({"recipe": "bert"}, "recipe must be random, tfidf, doc2vec, fasttext"),
        ({"recipe": "tfidf", "tf": "cubic"}, "tf must be plain, sublinear, binary; got 'cubic'"),
        ({"recipe": "sif", "sample": 2}, "sample must be at most 1, got 2"),
        ({"recipe": "sgc", "k": 0}, "k must be at least 1"),
        ({"recipe": "sif", "a": 0}, "a must be greater than 0"),
        ({"recipe": "doc2vec", "epochs": "many"}, "epochs must be a whole number"),
    ],
)
def test_a_setting_that_cannot_be_is_one_clear_line(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        WordsTraining.of(given)


def test_which_trainer_is_meant_is_said_by_the_option_or_the_file(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text('recipe = "sgc"')

    assert wants_words(file, None)
    assert wants_words(None, "random")
    assert not wants_words(file, "modern")
    assert not wants_words(None, None)
    with pytest.raises(ConfigError, match=f"recipe must be {', '.join(RECIPES)}; got 'x'"):
        wants_words(None, "x")
    file.write_text("recipe = 3")
    with pytest.raises(ConfigError, match=r"one.toml: recipe must be specter"):
        wants_words(file, None)


def test_every_recipe_reads_only_settings_that_there_are() -> None:
    assert set(READ) == set(WordRecipe) and set(SMALL) == WORD_RECIPES
    for recipe, names in READ.items():
        assert WordsTraining.of({"recipe": str(recipe)}).to_json().keys() == {*names} - {"threads"}


# --- what is learned from


def test_neither_dev_nor_test_queries_are_read(
    sample_index: IndexFolder, texts: TrainTexts
) -> None:
    held_out = {i for s in ("dev", "test") for i in read_ids(sample_index.splits / f"{s}.ids")}

    read = {paper.id for paper in texts.papers()}

    assert read and not read & held_out


def test_known_to_the_queries_are_citations_by_papers_older_than_all_of_them(
    build: Build,
) -> None:
    years = {"a": 2000, "b": 2001, "c": 2002, "d": 2003, "e": 2004, "f": 2005, "g": 2006}
    cites = {"b": "a", "c": "a b", "d": "c", "e": "d b", "f": "e", "g": "f"}
    records = [
        {"id": i, "title": f"Paper {i}", "year": year, "citations": cites.get(i, "").split()}
        for i, year in years.items()
    ]
    index = build(records)
    first = first_query_year(index)
    links = TrainTexts.of(index).known_links().tocoo()

    citing = {index.papers.ids_at([row])[0] for row in links.row.tolist()}
    held_out = {i for s in ("dev", "test") for i in read_ids(index.splits / f"{s}.ids")}
    cited = {index.papers.ids_at([row])[0] for row in links.col.tolist()}

    assert first == min(years[i] for i in held_out)
    assert citing == {i for i in cites if years[i] < first} - held_out
    assert not cited & held_out


def test_words_and_weights_are_scikit_learns(texts: TrainTexts) -> None:
    given = {"strip_accents": "ascii", "stop_words": "english", "min_df": 3, "max_df": 0.75}
    words = texts.vocabulary(3, 0.75)
    counts = texts.counts(words)

    for setting in WEIGHTINGS:
        tf, idf = setting["tf"], setting["idf"]
        theirs = TfidfVectorizer(
            **given,
            norm=None,
            sublinear_tf=tf is Tf.SUBLINEAR,
            binary=tf is Tf.BINARY,
            use_idf=idf is not Idf.NONE,
            smooth_idf=idf is Idf.SMOOTH,
        )
        expected = theirs.fit_transform(texts.texts())
        ours = tf_of(counts, tf).toarray() * idf_of(counts, idf)

        assert tuple(theirs.get_feature_names_out()) == words
        assert np.allclose(ours, expected.toarray(), atol=1e-4)


# --- sums


def test_sif_is_arora_s_formula() -> None:
    found = WordVectors(("aa", "bb"), np.array([[1, 2], [3, -1]], np.float32))
    from scipy.sparse import csr_array

    counts = csr_array(np.array([[3, 1], [0, 4]], np.float32))  # p = 3/8 and 5/8
    model = sif(found, counts, a=1e-2)

    weights = np.array([1e-2 / (1e-2 + 3 / 8), 1e-2 / (1e-2 + 5 / 8)])
    averages = np.array([[3, 1], [0, 4]]) / 4 @ (found.vectors * weights[:, None])
    _, _, right = np.linalg.svd(averages)
    [text] = model.sums([Paper(id="1", title="aa aa", abstract="aa bb")])

    assert model.weights == pytest.approx(weights)
    assert np.allclose(text, averages[0] - averages[0] @ right[0] * right[0], atol=1e-6)


def test_the_first_component_is_numpys() -> None:
    vectors = np.random.default_rng(0).standard_normal((40, 6)).astype(np.float32) + 1

    found = first_component(vectors)

    assert abs(found @ np.linalg.svd(vectors)[2][0]) == pytest.approx(1, abs=1e-5)


def test_tfidf_is_scikit_learns_decomposition(sample_index: IndexFolder, tmp_path: Path) -> None:
    config = small("tfidf", grid=False, tf="sublinear", idf="smooth")
    train_words(sample_index, tmp_path / "model", config)
    model = read_words(tmp_path / "model")
    assert isinstance(model, Bag)

    texts = TrainTexts.of(sample_index)
    given = {"strip_accents": "ascii", "stop_words": "english", "min_df": 3, "max_df": 0.75}
    weighted = TfidfVectorizer(**given, norm=None, sublinear_tf=True).fit_transform(texts.texts())
    theirs = TruncatedSVD(20, random_state=0).fit(weighted)

    ours = model.sums([*texts.papers()])
    assert np.allclose(ours, theirs.transform(weighted), atol=0.02)  # float32 here


# --- every recipe


@pytest.mark.parametrize("recipe", sorted(WORD_RECIPES))
def test_a_recipe_leaves_a_whole_model_twice_the_same(
    sample_index: IndexFolder, tmp_path: Path, recipe: str
) -> None:
    config = small(recipe)
    report = train_words(sample_index, tmp_path / "one", config)
    train_words(sample_index, tmp_path / "two", config)

    encoder = open_encoder(str(tmp_path / "one"))
    vectors = encoder.encode(list(TrainTexts.of(sample_index).papers())[:5])

    assert report.chosen.mrr == max(one.mrr or 0 for one in report.tried)
    assert vectors.shape == (5, config.dim) and np.isfinite(vectors).all()
    assert model_faults(tmp_path / "one") == []
    assert (tmp_path / "one" / "README.md").read_text().startswith("# ")
    for file in ("model.safetensors", "citerec_words.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    assert was_trained_so(tmp_path / "one", sample_index, config)
    assert not was_trained_so(tmp_path / "one", sample_index, small(recipe, seed=1))


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["doc2vec", "fasttext"])
def test_gensim_trains_alike_in_a_process_of_another_hash(
    sample_index: IndexFolder, tmp_path: Path, recipe: str
) -> None:
    train_words(sample_index, tmp_path / "here", small(recipe))
    script = (
        "import sys; from pathlib import Path; from citerec.folder import open_index;"
        "from citerec.lab.train_words.config import WordsTraining;"
        "from citerec.lab.train_words.train import train_words;"
        "index, out, given = sys.argv[1:];"
        "train_words(open_index(Path(index)), Path(out), WordsTraining.of(eval(given)))"
    )
    given = {"recipe": recipe, "dev_queries": 20, "dev_pool": 100, **SMALL[recipe]}
    there = str(tmp_path / "there")

    subprocess.run(
        [sys.executable, "-c", script, str(sample_index.path), there, repr(given)],
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "5"},
    )

    here = (tmp_path / "here" / "model.safetensors").read_bytes()
    assert (tmp_path / "there" / "model.safetensors").read_bytes() == here


def test_without_dev_queries_one_setting_is_taken(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    report = train_words(sample_index, tmp_path / "model", small("tfidf", dev_queries=0))

    assert len(report.tried) == 1 and report.chosen.mrr is None


def test_in_sgcs_table_stand_papers_that_are_linked_and_no_query(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    train_words(sample_index, tmp_path / "model", small("sgc", grid=False))
    model = read_words(tmp_path / "model")
    assert isinstance(model, Propagated)

    held_out = [i for s in ("dev", "test") for i in read_ids(sample_index.splits / f"{s}.ids")]
    queries = [sample_index.papers[row] for row in sample_index.papers.rows_of(held_out).tolist()]

    assert len(model.keys) > 0
    assert not np.isin(keys_of(queries), model.keys).any()
    asked = model.vectors([Query.of(paper) for paper in queries])
    assert np.array_equal(model.vectors(queries), asked)


# --- vectors that are given


def word2vec(file: Path, content: str) -> Path:
    file.write_text(content)
    return file


def test_word_vectors_may_be_given_as_a_file_or_a_model(
    sample_index: IndexFolder, texts: TrainTexts, tmp_path: Path
) -> None:
    words = texts.vocabulary(3, 0.75)[:40]
    rng = np.random.default_rng(0)
    lines = [f"{w} {' '.join(f'{x:.3f}' for x in rng.standard_normal(4))}" for w in words]
    file = word2vec(tmp_path / "mine.vec", "\n".join([f"{len(words)} 4", *lines, ""]))

    given = small("fasttext", vectors=str(file))
    train_words(sample_index, tmp_path / "sum", given)
    again = small("sif", vectors=str(tmp_path / "sum"))
    train_words(sample_index, tmp_path / "sif", again)
    summed, averaged = read_words(tmp_path / "sum"), read_words(tmp_path / "sif")

    assert isinstance(summed, Bag) and isinstance(averaged, Bag)
    assert summed.words == averaged.words == words
    assert np.array_equal(summed.word_vectors, averaged.word_vectors)
    assert was_trained_so(tmp_path / "sum", sample_index, given)
    file.write_text(file.read_text().replace("0.1", "0.2"))
    assert not was_trained_so(tmp_path / "sum", sample_index, given)
    assert str(tmp_path) not in (tmp_path / "sum" / "training.json").read_text()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("graph 1 2\n", r'line 1: expected "words dim", found .graph 1 2'),
        ("1 2\ngraph 1\n", "line 2: expected 2 finite numbers, found 1"),
        ("1 2\ngraph 1 x\n", "line 2: no numbers"),
    ],
)
def test_a_file_that_is_no_word_vectors_is_named_with_its_line(
    tmp_path: Path, content: str, says: str
) -> None:
    with pytest.raises(BadInputError, match=says):
        read_word2vec(word2vec(tmp_path / "bad.vec", content), frozenset({"graph"}))


def test_vectors_of_other_words_or_of_no_words_are_refused(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    other = word2vec(tmp_path / "other.vec", "1 2\nxyzzy 1 2\n")
    train_words(sample_index, tmp_path / "random", small("random"))

    for place, says in ((other, "a vector for none"), (tmp_path / "random", "no word vectors")):
        with pytest.raises(ConfigError, match=says):
            train_words(sample_index, tmp_path / "model", small("sif", vectors=str(place)))
    assert not (tmp_path / "model").exists()


# --- triplets


def test_triplets_hold_off_what_is_not_cited_and_by_the_margin_of_its_kind(
    texts: TrainTexts,
) -> None:
    data = texts.data
    drawer = Drawer(data, count=3, seed=0)
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((data.papers, 4)).astype(np.float32)

    drawn = drawer.draw(drawer.near(vectors), rng)

    boost = drawer.boost[drawn.positives] - drawer.boost[drawn.negatives]
    plain = np.unique((drawn.margins - boost).round(4))
    cites = data.links.toarray() > 0
    assert cites[drawn.queries, drawn.positives].all()
    assert not cites[drawn.queries, drawn.negatives].any()
    assert (drawn.queries != drawn.negatives).all()
    assert data.pool[drawn.negatives].all()
    assert plain == pytest.approx([SECOND, NEAR, RANDOM])


def test_neighbours_are_the_nearest_of_the_pool_that_are_not_cited(texts: TrainTexts) -> None:
    data = texts.data
    drawer = Drawer(data, count=3, seed=0)
    vectors = np.random.default_rng(1).standard_normal((data.papers, 4)).astype(np.float32)

    near = drawer.near(vectors)

    query = data.queries[0]
    scores = np.where(data.pool, vectors @ vectors[query], -np.inf)
    best = set(np.argsort(-scores)[:50].tolist()) - {int(query)} - set(data.cited[0].tolist())
    assert set(near[0].tolist()) == best


def test_citeomatic_draws_papers_to_what_they_cite(
    sample_index: IndexFolder, texts: TrainTexts, tmp_path: Path
) -> None:
    told: list[str] = []

    train_words(sample_index, tmp_path / "model", small("citeomatic", dim=32), log=told.append)

    papers = [*sample_index.papers.at(range(texts.data.papers)).values()]
    vectors = read_words(tmp_path / "model").vectors(papers)
    cosines, cites = vectors @ vectors.T, texts.data.links.toarray() > 0
    others = texts.data.pool[:, None] & texts.data.pool & ~cites & ~cites.T & (cosines < 0.999)
    assert len(told) == 2 and told[0].startswith("epoch 1: dev MRR 0.")
    assert cosines[cites].mean() > cosines[others].mean() + 0.1


# --- a training that is stopped


STOPS = {
    "doc2vec": {"grid": False, "epochs": 3},
    "fasttext": {"epochs": 2},
    "sgc": {"epochs": 2},
    "citeomatic": {"dim": 16, "epochs": 3},
}


@pytest.mark.parametrize(
    "recipe", ["doc2vec", "sgc", "citeomatic", pytest.param("fasttext", marks=pytest.mark.slow)]
)
def test_a_training_that_was_stopped_resumes_to_the_model_of_an_unbroken_one(
    sample_index: IndexFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recipe: str
) -> None:
    monkeypatch.setattr(workspace, "EVERY", 0.0)  # a checkpoint at every opportunity
    monkeypatch.setattr(workspace, "CHECKPOINT_SHARE", 1e9)
    monkeypatch.setattr(vectors_module, "PART", 100)
    config, messages = small(recipe, **STOPS[recipe]), list[str]()

    def stop_late(task: str, done: int, total: int) -> None:
        if task.startswith("training") and done * 4 > total * 3:
            raise KeyboardInterrupt

    train_words(sample_index, tmp_path / "whole", config)
    with pytest.raises(KeyboardInterrupt):
        train_words(sample_index, tmp_path / "model", config, progress=stop_late)
    done: list[float] = []
    train_words(
        sample_index,
        tmp_path / "model",
        config,
        resume=True,
        log=messages.append,
        progress=lambda task, now, total: done.append(now / total) if "train" in task else None,
    )

    whole, resumed = ((tmp_path / n / "model.safetensors").read_bytes() for n in ("whole", "model"))
    assert messages[0] == f"resuming from {tmp_path / '.model.training'}"
    assert done[0] > 0.4  # of what it had reached, not from the start
    assert resumed == whole
    assert not (tmp_path / ".model.training").exists()


def test_settings_that_were_tried_are_not_tried_again(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    config, tried = small("tfidf"), list[str]()

    def stop_at_the_fifth(message: str) -> None:
        tried.append(message)
        if len(tried) == 5:
            raise KeyboardInterrupt

    whole = train_words(sample_index, tmp_path / "whole", config)
    with pytest.raises(KeyboardInterrupt):
        train_words(sample_index, tmp_path / "model", config, log=stop_at_the_fifth)
    report = train_words(sample_index, tmp_path / "model", config, resume=True, log=tried.append)

    assert len(tried) == 5 + 1 + 4  # of nine settings; one line says that it resumes
    assert report.tried == whole.tried
    one, two = ((tmp_path / n / "model.safetensors").read_bytes() for n in ("whole", "model"))
    assert one == two


def test_a_training_of_other_settings_or_a_damaged_state_is_not_resumed(
    sample_index: IndexFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(message: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_words(sample_index, tmp_path / "model", small("tfidf"), log=stop)
    arguments = ("train-encoder", "--index", sample_index.path, "--output", tmp_path / "model")
    settings = tmp_path / "tfidf.toml"
    settings.write_text('recipe = "tfidf"\ndim = 20\ndev_queries = 20\ndev_pool = 100\n')

    other, _, says = cli(capsys, *arguments, "--recipe", "random", "--resume")
    state = tmp_path / ".model.training" / "tried.npz"
    state.write_bytes(state.read_bytes()[:-40])
    damaged, _, error = cli(capsys, *arguments, "--config", settings, "--resume")
    anew, *_ = cli(capsys, *arguments, "--config", settings)

    assert other == 2 and "started with other settings: dev_pool was 100, is 2000" in says
    assert (
        damaged == 2 and "tried.npz is damaged" in error and "run again without --resume" in error
    )
    assert anew == 0 and (tmp_path / "model" / "model.safetensors").is_file()


# --- the command


def cli(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = run([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_command_trains_by_recipe_or_by_file(
    sample_index: IndexFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tfidf.toml"
    file.write_text('recipe = "tfidf"\ndim = 10\ngrid = false\ndev_queries = 10\n')
    to = ("--index", sample_index.path, "--output", tmp_path / "model")

    code, out, _ = cli(capsys, "train-encoder", "--config", file, *to)
    again, _, error = cli(capsys, "train-encoder", "--recipe", "random", *to)
    forced, *_ = cli(capsys, "train-encoder", "--recipe", "random", *to, "--force")

    assert code == 0 and "dev MRR (tf sublinear, idf smooth)" in out
    assert again == 2 and "--force" in error
    assert forced == 0 and read_words(tmp_path / "model").dim == 25


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--recipe", "best"], f"recipe must be {', '.join(RECIPES)}; got 'best'"),
        (["--recipe", "sif", "--batch", "8"], "sif has no setting batch; its settings: "),
        (["--recipe", "tfidf", "--model", "minilm"], "tfidf has no setting model"),
    ],
)
def test_what_a_recipe_does_not_read_is_refused_in_one_line(
    sample_index: IndexFolder,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    says: str,
) -> None:
    code, out, error = cli(capsys, "train-encoder", "--index", sample_index.path, *arguments)

    assert (code, out) == (2, "")
    assert says in error and "Traceback" not in error


def test_a_model_is_not_replaced_unasked(sample_index: IndexFolder, tmp_path: Path) -> None:
    train_words(sample_index, tmp_path / "model", small("random"))

    with pytest.raises(ModelExistsError, match="--force"):
        train_words(sample_index, tmp_path / "model", small("random"))
    train_words(sample_index, tmp_path / "model", small("random", seed=1), force=True)


def test_without_gensim_the_extra_is_named(
    sample_index: IndexFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "gensim"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "gensim", None)

    for recipe in ("doc2vec", "sif"):
        with pytest.raises(MissingExtraError, match=r"pip install 'citerec\[words\]'"):
            train_words(sample_index, tmp_path / "model", small(recipe))


def test_the_settings_of_the_rows_can_be_read() -> None:
    files = sorted((Path(__file__).parent.parent / "experiments/words/trainings").glob("*.toml"))

    read = {file.stem: WordsTraining.read(file, {}) for file in files}

    assert {name: str(one.recipe) for name, one in read.items()} == {n: n for n in WORD_RECIPES}


def test_citeomatic_learns_the_same_on_one_thread_as_on_two(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    # 75 dimensions of some 500 places are more than the 32,768 numbers that torch adds up on one thread.
    for threads in (1, 2):
        config = small("citeomatic", dim=75, threads=threads)
        train_words(sample_index, tmp_path / str(threads), config)

    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in "12")
    assert one == two


def test_neighbours_are_those_of_brute_force_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("citerec.lab.train_words.triplets.PART", 7)
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(50, 4)).astype(np.float32)
    rows, pool = np.arange(5, dtype=np.int32), np.arange(3, 50)

    found = nearest(vectors, rows, pool, 6)

    scores = vectors[rows] @ vectors[pool].T
    for mine, expected in zip(found, np.argsort(-scores, axis=1)[:, :6], strict=True):
        assert {*mine.tolist()} == {*pool[expected].tolist()}
