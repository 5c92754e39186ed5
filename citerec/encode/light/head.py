"""A BERT with a head for sequence classification in NumPy: a pair in, one score out.

Source: names and details are those of transformers' BertForSequenceClassification.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from citerec.encode.light import UnsupportedError
from citerec.encode.light.bert import Bert, Ids, TensorReader

BODY = "bert."  # prefix of the names of the tensors below the head
DEFAULT_LABELS = 2  # of transformers, if config.json does not state a number


class ScoringBert:
    """An open BERT with a head of one or two labels."""

    def __init__(self, folder: Path, tensors: TensorReader) -> None:
        """Read the weights of a model folder.

        Raises:
            UnsupportedError: If NumPy cannot run the model exactly as transformers runs it.
        """
        labels = _labels(folder)
        self._bert = Bert(folder, tensors)
        if self._bert.prefix != BODY:
            raise UnsupportedError(f"{folder}: its weights are not named as those below a head are")
        hidden = self._bert.config.hidden_size
        self._pooler = tensors.read(f"{BODY}pooler.dense.weight", (hidden, hidden))
        self._pooler_bias = tensors.read(f"{BODY}pooler.dense.bias", (hidden,))
        self._classifier = tensors.read("classifier.weight", (labels, hidden))
        self._classifier_bias = tensors.read("classifier.bias", (labels,))

    def score(self, ids: Ids, types: Ids | int = 0) -> npt.NDArray[np.float32]:
        """Return the score of one pair, shape (1,): the logit of its only label, or the second logit minus the first.

        Args:
            ids: The ids of the pair, shape (tokens,).
            types: The token type of each, same shape, or that of all.
        """
        first = self._bert.first_state(ids, types)[0]
        pooled = np.tanh(self._pooler @ first + self._pooler_bias)
        logits = self._classifier @ pooled + self._classifier_bias
        return logits if len(logits) == 1 else logits[1:] - logits[:1]


def _labels(folder: Path) -> int:
    """Return how many labels a model has, by its configuration.

    Raises:
        UnsupportedError: If they are not one or two.
    """
    try:
        content: Any = orjson.loads((folder / "config.json").read_bytes())
        names, number = content.get("id2label"), content.get("num_labels")
        found = {len(names)} if names is not None else set[int]()
        found |= {int(number)} if number is not None else set[int]()
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise UnsupportedError(f"{folder / 'config.json'} cannot be parsed") from error
    [labels, *others] = sorted(found) or [DEFAULT_LABELS]
    if others or labels not in {1, 2}:
        raise UnsupportedError(f"{folder} has {sorted(found)} labels, expected 1 or 2")
    return labels
