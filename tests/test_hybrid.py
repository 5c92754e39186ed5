"""The first stages together: what each found, fused, and whose vectors they are."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import current_thread

import numpy as np
import numpy.typing as npt
import pytest
from support.tiny import tiny_bert

from citerec.config import FuseConfig, FuseMethod, RecommendConfig
from citerec.encode.encoder import Encoder
from citerec.encode.opening import open_encoder
from citerec.encode.spec import EncoderSpec
from citerec.errors import BadInputError, ConfigError, EncoderMismatchError, ModelError
from citerec.folder import IndexFolder
from citerec.rank.ltr import DEFAULT, open_ranker
from citerec.recommend import Recommender
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.dense import DenseRetriever
from citerec.retrieve.fuse import rrf
from citerec.retrieve.hybrid import HybridRetriever, open_hybrid
from citerec.rules.known import eligible
from citerec.tuned import read_tuned, write_tuned
from citerec.types import Query

Build = Callable[..., IndexFolder]
DRAFT = Query(id="d", title="Retrieval with a language model", abstract="Search.", year=2018)


def test_the_list_is_the_fusion_of_what_bm25_and_the_vectors_find(
    dense_sample: IndexFolder, tiny_model: str
) -> None:
    rules = eligible([DRAFT], dense_sample.papers)
    [words] = Bm25Retriever(dense_sample).retrieve([DRAFT], rules, 1000)
    encoder = open_encoder(tiny_model)
    [vectors] = DenseRetriever(dense_sample, encoder).retrieve([DRAFT], rules, 1000)

    [found] = open_hybrid(dense_sample, RecommendConfig()).candidates([DRAFT], rules, 20)

    expected = rrf([words, vectors], dense_sample.id_rank, k=20)
    assert found.hits.rows.tolist() == expected.rows.tolist()
    assert np.allclose(found.hits.scores, expected.scores)
    assert list(found.hits_by_source) == ["bm25", "dense"]


class WatchedEncoder:
    """Encodes as another encoder does, and notes the thread that encodes each text."""

    def __init__(self, encoder: Encoder, *, overlaps: bool) -> None:
        self._encoder, self.overlaps = encoder, overlaps
        self.fingerprint = encoder.fingerprint
        self.threads: dict[tuple[str, str], str] = {}  # by title and abstract

    def encode(self, papers: Sequence[Query]) -> npt.NDArray[np.float32]:
        self.threads |= {(p.title, p.abstract): current_thread().name for p in papers}
        return self._encoder.encode(papers)


@pytest.mark.parametrize(
    ("drafts", "overlaps", "thread"),
    [(1, True, "encode-ahead_0"), (1, False, "MainThread"), (2, True, "MainThread")],
)
def test_the_sentences_of_a_single_draft_are_encoded_while_it_is_searched(
    dense_sample: IndexFolder, tiny_model: str, drafts: int, overlaps: bool, thread: str
) -> None:
    text = "We rank papers by a model."
    queries = [replace(DRAFT, id=f"d{i}", title=f"Draft {i}", abstract=text) for i in range(drafts)]
    encoder = WatchedEncoder(open_encoder(tiny_model), overlaps=overlaps)
    dense = DenseRetriever(dense_sample, encoder)
    retriever = HybridRetriever(dense_sample, [dense])
    retriever.sentences_ahead = True

    [first, *_] = retriever.candidates(queries, eligible(queries, dense_sample.papers), 20)
    assert first.sentences.vectors
    vectors = first.sentences.vectors()

    assert encoder.threads[("Draft 0", text)] == "MainThread"
    assert encoder.threads[("Draft 0", "")] == encoder.threads[(text, "")] == thread
    title, sentence = (replace(DRAFT, title=part, abstract="") for part in ("Draft 0", text))
    assert np.array_equal(vectors, encoder.encode([title, sentence]))


def test_sentences_are_encoded_ahead_only_for_a_model_that_reads_them() -> None:
    full = open_ranker(DEFAULT)
    by_words = replace(full, features=("bm25", "sentence_bm25"))

    assert full.reads_sentence_vectors
    assert not by_words.reads_sentence_vectors


def test_a_recommendation_says_where_each_stage_put_it(dense_sample: IndexFolder) -> None:
    recommender = Recommender(dense_sample, RecommendConfig(k=5, ranker="none"))

    [found] = recommender.recommend([DRAFT], explain=True)

    for item in found:
        ranks = {name: hit.rank for name, hit in item.stages.items()}
        assert item.score == pytest.approx(sum(1 / (60 + rank) for rank in ranks.values()))
        assert (item.paper.year or 0) <= 2018
    assert any("semantic similarity: rank" in reason for item in found for reason in item.reasons)


def test_without_an_encoder_bm25_stands_alone(dense_sample: IndexFolder) -> None:
    recommender = Recommender(dense_sample, RecommendConfig(k=5, encoder="none", ranker="none"))

    [found] = recommender.recommend([DRAFT])

    assert recommender.retriever_names == ("bm25",)
    assert [list(item.stages) for item in found] == [["bm25"]] * 5


def test_the_index_s_own_encoder_may_be_named(dense_sample: IndexFolder, tiny_model: str) -> None:
    assert open_hybrid(dense_sample, RecommendConfig(encoder=tiny_model)).names == (
        "bm25",
        "dense",
    )


def test_another_encoder_is_refused(dense_sample: IndexFolder, tmp_path: Path) -> None:
    other = tiny_bert(tmp_path / "other", seed=7, spec=EncoderSpec(max_tokens=64))

    with pytest.raises(EncoderMismatchError, match="leave --encoder out, or embed it anew"):
        open_hybrid(dense_sample, RecommendConfig(encoder=str(other)))


def test_an_encoder_for_an_index_without_vectors_is_refused(
    sample_index: IndexFolder, tiny_model: str
) -> None:
    with pytest.raises(ConfigError, match="has no vectors; embed its papers: citerec encode"):
        open_hybrid(sample_index, RecommendConfig(encoder=tiny_model))


def test_an_encoder_that_is_gone_is_missed_by_its_name(build: Build, tmp_path: Path) -> None:
    model = tiny_bert(tmp_path / "model", spec=EncoderSpec(max_tokens=64))
    index = build([{"id": "a", "title": "A paper"}], encoder=str(model))
    model.rename(tmp_path / "elsewhere")

    with pytest.raises(ModelError, match="model"):
        open_hybrid(index, RecommendConfig())


def test_what_was_tuned_is_used_until_the_index_is_embedded_by_another(
    build: Build, tiny_model: str
) -> None:
    index = build([{"id": "a", "title": "A paper"}], encoder=tiny_model)
    tuned = FuseConfig(method=FuseMethod.WEIGHTED, bm25_weight=0.25, dense_weight=0.75)
    write_tuned(index, tuned, {"split": "dev"})

    assert read_tuned(index) == tuned
    assert open_hybrid(index, RecommendConfig()).config == tuned
    assert open_hybrid(index, RecommendConfig(fuse=FuseConfig())).config == FuseConfig()
    of_another = replace(
        index, manifest=replace(index.manifest, settings={"encoder": {"weights": "others"}})
    )
    assert read_tuned(of_another) is None


def test_a_tuning_that_cannot_be_made_out_is_named(build: Build, tiny_model: str) -> None:
    index = build([{"id": "a", "title": "A paper"}], encoder=tiny_model)
    file = write_tuned(index, FuseConfig(), {})
    file.write_text("{}")

    with pytest.raises(BadInputError, match="cannot be read; tune again"):
        read_tuned(index)
