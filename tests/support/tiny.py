"""A real BERT, tiny: made in a moment, opened and trained as any other."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from citerec.encode.spec import EncoderSpec, write_spec
from citerec.rerank.pair import RerankerSpec, write_reranker_spec

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
WORDS = tuple(
    "a an and citation document for from graph in index language learning model neural of on paper query "
    "ranking recommendation retrieval search term text the to vector with word".split()
)


def tiny_bert(
    folder: Path,
    *,
    words: Sequence[str] | None = None,
    seed: int = 0,
    positions: int = 128,
    hidden: int = 32,
    layers: int = 2,
    spec: EncoderSpec | None = None,
) -> Path:
    """Write a BERT of random weights and its WordPiece tokenizer; return the folder.

    Args:
        folder: Where to; made if need be.
        words: What is one token; every other word falls into its letters.
        seed: Of the weights.
        positions: The most tokens that it reads.
        hidden: The length of its vectors.
        layers: How many.
        spec: What the folder says of how it reads and pools; nothing by default.
    """
    from transformers import BertModel

    _write(folder, BertModel, _bert(folder, words, positions, hidden, layers), seed)
    if spec:
        write_spec(folder, spec)
    return folder


def tiny_mpnet(folder: Path) -> Path:
    """Write an MPNet of random weights as sentence-transformers does, with mean pooling; return the folder."""
    from transformers import MPNetConfig, MPNetModel, MPNetTokenizer

    special = ("<s>", "<pad>", "</s>", "[UNK]", "<mask>")
    pieces = dict.fromkeys(
        [*special, *LETTERS, *(f"##{letter}" for letter in LETTERS), *WORDS]
    )
    config = MPNetConfig(
        vocab_size=len(pieces),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=130,
        initializer_range=0.5,  # so that positions matter
    )
    _write(folder, MPNetModel, config, seed=0)
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    MPNetTokenizer(vocab=vocabulary, model_max_length=128).save_pretrained(folder)
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [
        {
            "idx": n,
            "name": str(n),
            "path": path,
            "type": f"sentence_transformers.models.{kind}",
        }
        for n, (path, kind) in enumerate(kinds.items())
    ]
    pooling = {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True}
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 120}')
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


def tiny_reranker(
    folder: Path,
    *,
    words: Sequence[str] | None = None,
    seed: int = 0,
    positions: int = 128,
    labels: int = 1,
    tokens: int = 32,
    scale: float = 1.0,
    offset: float = 0.0,
) -> Path:
    """Write a cross-encoder of random weights and its WordPiece tokenizer; return the folder.

    Its head is 100 times as strong as a fresh one's, so that its scores differ by more than rounding.

    Args:
        folder: Where to; made if need be.
        words: What is one token; every other word falls into its letters.
        seed: Of the weights.
        positions: The most tokens that it reads.
        labels: How many logits a pair gets: 1, or 2.
        tokens: That it reads of each side of a pair.
        scale: Of its calibration.
        offset: Likewise.
    """
    from transformers import BertForSequenceClassification

    config = _bert(folder, words, positions, hidden=32, layers=2)
    config.num_labels = labels
    _write(folder, BertForSequenceClassification, config, seed, head=100)
    spec = RerankerSpec(
        query_tokens=tokens, candidate_tokens=tokens, scale=scale, offset=offset
    )
    write_reranker_spec(folder, spec)
    return folder


def _bert(
    folder: Path, words: Sequence[str] | None, positions: int, hidden: int, layers: int
) -> Any:
    """Write the tokenizer; return the configuration of a model that goes with it."""
    from transformers import BertConfig, BertTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    folder.mkdir(parents=True, exist_ok=True)
    pieces = [*LETTERS, *(f"##{letter}" for letter in LETTERS), *(words or WORDS)]
    vocabulary = list(dict.fromkeys([*SPECIAL, *pieces]))
    ids = {piece: number for number, piece in enumerate(vocabulary)}
    BertTokenizer(vocab=ids, model_max_length=positions).save_pretrained(folder)
    return BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=2 * hidden,
        max_position_embeddings=positions,
    )


def _write(folder: Path, kind: Any, config: Any, seed: int, head: float = 1) -> None:
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = kind(config)
    if head != 1:
        with torch.no_grad():
            model.classifier.weight *= head
    model.save_pretrained(folder)
