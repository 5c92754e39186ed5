"""The recipe `linear`: a map of the vectors of an encoder learns from citations, and the encoder stays as it is."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from support.encoder_training import config, records, train_mrr
from support.encoder_training import weights as weights_of
from support.tiny import tiny_bert

from citerec.cli import run
from citerec.embed import EmbedConfig, embed_anew
from citerec.encode.config import EncodeConfig, Precision
from citerec.encode.difference.write import write_difference
from citerec.encode.encoder import TransformerEncoder, Vectors
from citerec.encode.hub import model_files
from citerec.encode.light.parts import LightParts
from citerec.encode.minilm import minilm_folder
from citerec.encode.opening import EncoderChangedError, open_encoder, reopen
from citerec.encode.projection import Projection, read_projection, unit, write_projection
from citerec.encode.spec import Fingerprint, Similarity, read_spec, write_spec
from citerec.errors import ConfigError, ModelError
from citerec.folder import DENSE, IndexFolder, open_index
from citerec.index.vectors import open_dense
from citerec.manifest import editing_model, model_faults
from citerec.stored import stored_vectors
from citerec.train.data import TrainingData, load_training_data
from citerec.train.encoder import linear as linear_module
from citerec.train.encoder.config import EncoderTraining
from citerec.train.encoder.examples import EncoderExamples
from citerec.train.encoder.linear import PULL, LinearExamples, linear_net, matrix_of, vectors_of
from citerec.train.encoder.signals import Signals, examples_of
from citerec.train.encoder.train import train_encoder
from citerec.types import Query

Build = Callable[..., IndexFolder]


def linear(**given: object) -> EncoderTraining:
    small = {"epochs": 2, "batch": 16, "dev_queries": 10, "dev_pool": 60, "dtype": "float32"}
    return config(recipe="linear", **{**small, **given})


def examples(data: TrainingData, **given: object) -> EncoderExamples:
    return examples_of(Signals(data=data, config=linear(**given), mine=lambda: data.gold))


@pytest.fixture(scope="module")
def trained(
    dense_sample: IndexFolder, tiny_model: str, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A map of the vectors of the sample, by the tiny BERT that the index was embedded by."""
    output = tmp_path_factory.mktemp("trained") / "linear"
    train_encoder(dense_sample, output, linear(model=tiny_model))
    return output


# --- what it learns from


def test_the_loss_is_that_of_all_papers_and_the_squared_changes(build: Build) -> None:
    # Train queries b to f over the papers a to f; d (2003) cites c, and is not compared with e and f, which are later.
    data = load_training_data(build(records()))
    batches = LinearExamples(examples(data, temperature=0.5))
    vectors = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    [d] = [
        i for i, row in enumerate(data.queries.tolist()) if data.index.papers.ids_at([row]) == ["d"]
    ]

    inputs = batches.collate([d, d])  # a query that is drawn twice is compared once
    net = linear_net(vectors, linear(temperature=0.5), Similarity.COSINE, train_queries=5)

    allowed = [0, 1, 2]  # a, b, c: earlier than d
    scores = vectors[allowed] @ vectors[3] / 0.5
    expected = np.log(np.exp(scores).sum()) - scores[2]
    assert net(**inputs).item() == pytest.approx(expected, rel=1e-5)
    net.change.data[0, 1] = 0.3
    mapped = vectors @ (np.eye(4) + 0.3 * np.outer([1, 0, 0, 0], [0, 1, 0, 0])).T
    mapped /= np.linalg.norm(mapped, axis=1, keepdims=True)
    scores = mapped[allowed] @ mapped[3] / 0.5
    expected = np.log(np.exp(scores).sum()) - scores[2] + PULL / 5 * 0.3**2
    assert net(**inputs).item() == pytest.approx(expected, rel=1e-5)


def test_an_epoch_is_50_batches_in_which_every_query_comes_equally_often(build: Build) -> None:
    batches = LinearExamples(examples(load_training_data(build(records())), batch=3))

    drawn = batches.epoch(0)

    assert len(drawn) == len(batches) == 50 * 3
    assert np.bincount(drawn).tolist() == [30] * 5  # 150 / 5 queries
    assert {*drawn[:5].tolist()} == {*range(5)}
    assert drawn.tolist() == batches.epoch(0).tolist() != batches.epoch(1).tolist()


def test_of_many_papers_a_step_compares_the_positives_of_its_queries_and_a_sample(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = load_training_data(build(records()))  # e (2004) cites b and d
    monkeypatch.setattr(linear_module, "STEP_PAPERS", 2)
    batches = LinearExamples(examples(data))
    ids = data.index.papers.ids_at
    papers = ids(batches.memory.rows.tolist())
    number = ids(data.queries.tolist()).index("e")

    inputs = {name: tensor.numpy() for name, tensor in batches.collate([number]).items()}

    compared = [papers[slot] for slot in inputs["papers"]]
    assert {"b", "d"} <= {*compared} and 2 <= len(compared) <= 4 < len(papers)
    assert compared == sorted(compared)
    assert {compared[target] for target in inputs["targets"]} == {"b", "d"}
    allowed = [
        paper
        for paper, is_allowed in zip(compared, inputs["allowed"][0], strict=True)
        if is_allowed
    ]
    assert allowed == [paper for paper in compared if paper < "e"]  # of no later year, not itself
    assert len(batches.memory.usable) == 5  # no train query is left out


def test_each_step_compares_another_sample_also_if_it_draws_all_queries(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = load_training_data(build(records()))
    monkeypatch.setattr(linear_module, "STEP_PAPERS", 1)
    batches = LinearExamples(examples(data))
    orders = [*permutations(batches.memory.usable.tolist())]

    once, again = (
        [tuple(batches.collate(drawn)["papers"].tolist()) for drawn in orders] for _ in range(2)
    )

    assert once == again
    assert len({*once}) > 1  # of 120 orders of 5 queries


def test_vectors_of_an_index_are_used_if_this_encoder_made_them(
    dense_sample: IndexFolder, sample_index: IndexFolder, tiny_model: str, tmp_path: Path
) -> None:
    rows = np.arange(0, 300, 7, dtype=np.int32)
    encoder = open_encoder(tiny_model)
    other = open_encoder(str(tiny_bert(tmp_path / "other", seed=3, spec=encoder.spec)))

    stored, known = vectors_of(load_training_data(dense_sample), rows, encoder, print_nothing)
    encoded, none = vectors_of(load_training_data(sample_index), rows, encoder, print_nothing)
    _, of_other = vectors_of(load_training_data(dense_sample), rows, other, print_nothing)

    assert (known, none, of_other) == (len(rows), 0, 0)
    assert stored == pytest.approx(encoded, abs=2e-2)  # the same papers; perhaps in bfloat16


@pytest.mark.parametrize(
    ("index_by", "encoder_by", "can_be_read"),
    [
        ("l2", "cosine", True),
        ("cosine", "cosine", True),
        ("cosine", "l2", False),
        ("l2", "l2", True),
    ],
)
def test_vectors_of_unit_length_are_not_used_to_compare_by_distance(
    dense_sample: IndexFolder, tmp_path: Path, index_by: str, encoder_by: str, can_be_read: bool
) -> None:
    folder = tmp_path / "index"
    shutil.copytree(dense_sample.path, folder)
    recorded = Fingerprint.from_json(dense_sample.manifest.settings["encoder"])
    by = [
        replace(recorded, spec=replace(recorded.spec, similarity=Similarity(kind)))
        for kind in (index_by, encoder_by)
    ]
    settings = {**dense_sample.manifest.settings, "encoder": by[0].to_json()}
    index = replace(dense_sample, manifest=replace(dense_sample.manifest, settings=settings))

    read = stored_vectors(index, by[1])

    assert (read is not None) == can_be_read
    assert stored_vectors(index, replace(by[0], tokenizer="other")) is None
    if read and encoder_by == "cosine":
        assert np.linalg.norm(read([0, 1]), axis=1).tolist() == pytest.approx([1, 1])


def print_nothing(what: str, done: int, total: int) -> None:
    """Ignore the progress."""


# --- what it leaves


def test_training_finds_citations_better_and_leaves_the_encoder_as_it_is(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    base, output = tmp_path / "base", tmp_path / "linear"
    shutil.copytree(minilm_folder(), base)
    write_spec(base, replace(read_spec(base), max_tokens=24))

    report = train_encoder(sample_index, output, linear(model=str(base)))

    assert [point.epoch for point in report.history] == [0, 1, 2]
    assert train_mrr(sample_index, output) > train_mrr(sample_index, base) + 0.05
    before, after = weights_of(base), weights_of(output)
    assert all(np.array_equal(before[name], after[name]) for name in after)
    assert model_faults(output) == []


def test_no_text_of_an_index_is_read_that_the_base_model_embedded(
    dense_sample: IndexFolder, tiny_model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TransformerEncoder, "encode", no_text_is_read)

    report = train_encoder(dense_sample, tmp_path / "linear", linear(model=tiny_model))

    assert [point.dev_mrr is None for point in report.history] == [False] * 3  # dev papers neither
    with pytest.raises(AssertionError, match="a text was read"):
        train_encoder(dense_sample, tmp_path / "other", linear(model="minilm"))


def test_the_same_seed_gives_the_same_map(
    dense_sample: IndexFolder, tiny_model: str, trained: Path, tmp_path: Path
) -> None:
    train_encoder(dense_sample, tmp_path / "again", linear(model=tiny_model))

    one, other = (read_projection(folder, 32) for folder in (trained, tmp_path / "again"))
    assert one is not None and other is not None
    assert one.matrix.tolist() == other.matrix.tolist() != np.eye(32).tolist()


def test_torch_numpy_and_sentence_transformers_give_the_same_vectors(
    trained: Path, tiny_model: str
) -> None:
    from sentence_transformers import SentenceTransformer

    papers = [Query(id=i, title=f"Graphs {i}", abstract=f"Of trees {i}.") for i in ("q", "r")]
    exact = EncodeConfig(precision=Precision.FLOAT32, threads=1)
    few = EncodeConfig(precision=Precision.FLOAT32, threads=1, few_texts=True)
    projection = read_projection(trained, 32)
    assert projection is not None

    by_torch, by_numpy = (open_encoder(str(trained), how) for how in (exact, few))
    base = open_encoder(tiny_model, exact).encode(papers)
    mapped = base @ projection.matrix.T
    mapped /= np.linalg.norm(mapped, axis=1, keepdims=True)
    theirs = SentenceTransformer(str(trained), device="cpu").encode(
        [f"{paper.title}[SEP]{paper.abstract}" for paper in papers]
    )

    assert isinstance(by_numpy, TransformerEncoder) and isinstance(by_numpy.parts, LightParts)
    assert by_torch.encode(papers) == pytest.approx(mapped, abs=1e-5)
    assert by_numpy.encode(papers) == pytest.approx(mapped, abs=1e-5)
    assert by_numpy.encode_together(papers) == pytest.approx(mapped, abs=1e-5)
    assert theirs == pytest.approx(mapped, abs=1e-5)


def test_a_mapped_vector_does_not_depend_on_the_others() -> None:
    rng = np.random.default_rng(0)
    vectors, matrix = rng.normal(size=(9, 48)), rng.normal(size=(48, 48))
    projection = Projection(matrix.astype("f"), ("", ""))
    together = projection.of(vectors.astype("f"), Similarity.L2)

    alone = [projection.of(v[None].astype("f"), Similarity.L2)[0] for v in vectors]

    assert np.array_equal(together, alone)
    assert together == pytest.approx(vectors @ matrix.T, rel=1e-4, abs=1e-4)


def test_an_index_is_embedded_by_it_and_notices_another_map(
    dense_sample: IndexFolder, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, model = tmp_path / "index", tmp_path / "model"
    shutil.copytree(dense_sample.path, folder)
    shutil.copytree(trained, model)

    encoder = open_encoder(str(model))
    monkeypatch.setattr(encoder, "encode", no_text_is_read)
    embed_anew(folder, encoder, EmbedConfig())

    monkeypatch.undo()
    before, after = vectors(dense_sample), vectors(open_index(folder))
    projection = read_projection(model, 32)
    assert projection is not None
    assert np.array_equal(after, projection.of(unit(before), Similarity.COSINE))
    encoded = open_encoder(str(model)).encode([*dense_sample.papers.at(range(300)).values()])
    assert after == pytest.approx(encoded, abs=2e-2)  # perhaps in bfloat16
    recorded = Fingerprint.from_json(open_index(folder).manifest.settings["encoder"])
    assert reopen(recorded, folder).fingerprint.key == recorded.key
    with editing_model(model) as copy:
        write_projection(copy, np.eye(32, dtype=np.float32))
    with pytest.raises(EncoderChangedError, match="trained again or replaced"):
        reopen(recorded, folder)


def no_text_is_read(*_: object) -> None:
    raise AssertionError("a text was read")


def vectors(index: IndexFolder) -> Vectors:
    settings = index.manifest.settings["dense"]
    opened = open_dense(index.path / DENSE, settings, index.papers.years)
    return opened.vectors(np.arange(300, dtype=np.int32))


# --- bad input


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"loss": "triplet"}, "linear needs the memory loss, got triplet"),
        ({"max_tokens": 64}, "max_tokens has no effect with linear: the base model stays as it is"),
        ({"form": "title"}, "form has no effect with linear"),
        ({"hard": 2}, "hard has no effect with linear: the base model stays as it is, and every"),
        ({"dropout": False}, "dropout has no effect with linear"),
        ({"negatives": "mined"}, "negatives has no effect with linear"),
    ],
)
def test_settings_that_a_map_cannot_have_are_refused(
    given: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        linear(**given)


@pytest.mark.parametrize("given", [{"recipe": "memory"}, {"loss": "memory"}])
def test_a_map_can_be_had_by_other_recipes_whose_defaults_it_does_not_use(
    given: dict[str, object],
) -> None:
    assert config(linear=True, **given).linear


def test_a_training_that_diverges_leaves_nothing(
    dense_sample: IndexFolder, tiny_model: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"the training diverged: .* lower learning_rate, now"):
        train_encoder(
            dense_sample, tmp_path / "m", linear(model=tiny_model, epochs=1, learning_rate=1e300)
        )

    assert [*tmp_path.iterdir()] == []


def test_an_index_whose_encoder_is_replaced_has_to_be_embedded_again(
    dense_sample: IndexFolder,
    tiny_model: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "index"
    shutil.copytree(dense_sample.path, folder)
    (tmp_path / "settings.toml").write_text(
        "dev_queries = 10\ndev_pool = 60\nepochs = 1\nbatch = 16\n"
    )
    train = ["train-encoder", "--recipe", "linear", "--index", str(folder), "--model", tiny_model]
    train += ["--config", str(tmp_path / "settings.toml")]
    encode = ["encode", "--index", str(folder), "--encoder", str(folder / "models" / "encoder")]

    assert run([*train, "--quiet"]) == run([*encode, "--quiet"]) == 0
    assert "embedded" not in capsys.readouterr().err
    assert run([*train, "--force", "--seed", "3"]) == 0

    told = " ".join(capsys.readouterr().err.split())
    assert "was embedded by the model that this one replaced, and cannot be searched before" in told
    assert f"citerec {' '.join(encode)}" in told


def test_it_cannot_be_trained_further_nor_stored_as_a_difference(
    dense_sample: IndexFolder, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["train-encoder", "--index", str(dense_sample.path), "--model", str(trained)]

    code = run([*asked, "--recipe", "memory", "--output", str(tmp_path / "m")])

    assert code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert (
        "was trained by the recipe linear, which cannot be trained further; name its base" in line
    )
    assert not (tmp_path / "m").exists()
    with pytest.raises(ModelError, match="has a linear map, which a difference does not store"):
        write_difference(trained, tmp_path / "d", rank=4, training={}, card="")


def test_a_map_that_is_damaged_or_of_another_size_is_one_line(
    trained: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    shutil.copytree(trained, model)
    with editing_model(model) as copy:
        write_projection(copy, np.eye(16, dtype=np.float32))
    with pytest.raises(ModelError, match="holds no linear map of 32 dimensions; train the encoder"):
        open_encoder(str(model))
    with editing_model(model) as copy:
        (copy / "2_Dense" / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(ModelError, match="holds no linear map of 32 dimensions"):
        open_encoder(str(model))
    with editing_model(model) as copy:
        write_projection(copy, np.full((32, 32), np.nan, np.float32))
    with pytest.raises(
        ModelError, match="has numbers that are not finite; train the encoder again"
    ):
        open_encoder(str(model))


def test_a_copy_without_its_map_is_one_line(trained: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(trained, model)
    for file in ("checksums.json", "training.json", "2_Dense/model.safetensors"):
        (model / file).unlink()

    with pytest.raises(ModelError, match=r"model\.safetensors is missing: the encoder lacks its"):
        open_encoder(str(model))
    assert "2_Dense/model.safetensors" in model_files(
        [str(f.relative_to(trained)) for f in trained.rglob("*")]
    )


def test_matrix_of_a_new_net_is_the_identity() -> None:
    net = linear_net(np.zeros((2, 3), np.float32), linear(), Similarity.COSINE, train_queries=2)

    assert matrix_of(net).tolist() == np.eye(3).tolist()
