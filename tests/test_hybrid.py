"""The first stages together: what each found, fused, and whose vectors they are."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from citerec.encode.encoder import Encoder, open_encoder
from citerec.index.folder import IndexFolder
from citerec.retrieve.dense import DenseRetriever
from citerec.retrieve.hybrid import HybridRetriever
from citerec.rules.eligible import eligible
from citerec.types import Query

DRAFT = Query(
    id="d", title="Retrieval with a language model", abstract="Search.", year=2018
)


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
    queries = [
        replace(DRAFT, id=f"d{i}", title=f"Draft {i}", abstract=text) for i in range(3)
    ]
    encoder = CountingEncoder(open_encoder(tiny_model))
    retriever = HybridRetriever(dense_sample, [DenseRetriever(dense_sample, encoder)])

    first, *others = retriever.candidates(
        queries, eligible(queries, dense_sample.papers), 20
    )
    assert encoder.calls == [3]
    assert first.sentences.vectors
    vectors = first.sentences.vectors()
    assert [
        one.sentences.vectors() is not None for one in others if one.sentences.vectors
    ]

    assert encoder.calls == [3, 4]  # their titles, and the sentence that they share
    title, sentence = (
        replace(DRAFT, title=part, abstract="") for part in ("Draft 0", text)
    )
    assert np.allclose(vectors, encoder.encode([title, sentence]), atol=1e-5)
