"""The first stages together: what each found, fused, and whose vectors they are."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from support.types import Build

from citerec.config import FuseConfig, FuseMethod, RecommendConfig
from citerec.encode.encoder import Encoder, open_encoder
from citerec.errors import BadInputError
from citerec.folder import IndexFolder
from citerec.retrieve.dense import DenseRetriever
from citerec.retrieve.hybrid import HybridRetriever, open_hybrid
from citerec.rules.known import eligible
from citerec.tuned import tuned_fusion, write_tuned
from citerec.types import Query

DRAFT = Query(id="d", title="Retrieval with a language model", abstract="Search.", year=2018)


class CountingEncoder:
    """Encodes as another encoder does, and keeps the number of texts of each call."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder, self.fingerprint = encoder, encoder.fingerprint
        self.calls: list[int] = []

    def encode(self, papers: Sequence[Query]) -> npt.NDArray[np.float32]:
        self.calls.append(len(papers))
        return self._encoder.encode(papers)


def test_the_sentences_of_all_drafts_are_encoded_in_one_call_when_they_are_read(
    dense_sample: IndexFolder, tiny_model: str
) -> None:
    text = "We rank papers by a model."
    queries = [replace(DRAFT, id=f"d{i}", title=f"Draft {i}", abstract=text) for i in range(3)]
    encoder = CountingEncoder(open_encoder(tiny_model))
    retriever = HybridRetriever(dense_sample, [DenseRetriever(dense_sample, encoder)])

    first, *others = retriever.candidates(queries, eligible(queries, dense_sample.papers), 20)
    assert encoder.calls == [3]
    assert first.sentences.vectors
    vectors = first.sentences.vectors()
    assert [one.sentences.vectors() is not None for one in others if one.sentences.vectors]

    assert encoder.calls == [3, 4]  # their titles, and the sentence that they share
    title, sentence = (replace(DRAFT, title=part, abstract="") for part in ("Draft 0", text))
    assert np.allclose(vectors, encoder.encode([title, sentence]), atol=1e-5)


def test_what_was_tuned_is_used_until_the_index_is_embedded_by_another(
    build: Build, tiny_model: str
) -> None:
    index = build([{"id": "a", "title": "A paper"}], encoder=tiny_model)
    tuned = FuseConfig(method=FuseMethod.WEIGHTED, bm25_weight=0.25, dense_weight=0.75)
    write_tuned(index, tuned, {"split": "dev"})

    assert tuned_fusion(index) == tuned
    assert open_hybrid(index, RecommendConfig()).config == tuned
    assert open_hybrid(index, RecommendConfig(fuse=FuseConfig())).config == FuseConfig()
    of_another = replace(
        index, manifest=replace(index.manifest, settings={"encoder": {"weights": "others"}})
    )
    assert tuned_fusion(of_another) is None


def test_a_tuning_that_cannot_be_made_out_is_named(build: Build, tiny_model: str) -> None:
    index = build([{"id": "a", "title": "A paper"}], encoder=tiny_model)
    file = write_tuned(index, FuseConfig(), {})
    file.write_text("{}")

    with pytest.raises(BadInputError, match="cannot be read; tune again"):
        tuned_fusion(index)
