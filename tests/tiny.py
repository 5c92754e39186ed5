"""A real BERT, tiny: made in a moment, opened and trained as any other."""

from collections.abc import Sequence
from pathlib import Path

from citerec.encode.spec import EncoderSpec, write_spec

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
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    folder.mkdir(parents=True, exist_ok=True)
    pieces = [*LETTERS, *(f"##{letter}" for letter in LETTERS), *(words or WORDS)]
    vocabulary = list(dict.fromkeys([*SPECIAL, *pieces]))
    ids = {piece: number for number, piece in enumerate(vocabulary)}
    tokenizer = BertTokenizer(vocab=ids, model_max_length=positions)
    tokenizer.save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=2 * hidden,
        max_position_embeddings=positions,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = BertModel(config)
    model.save_pretrained(folder)
    if spec:
        write_spec(folder, spec)
    return folder
