"""Decides whether NumPy runs a model instead of torch.

It is decided by settings, machine and expected work alone, so that a server and a command decide alike.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from citerec.encode.config import EncodeConfig, Precision, requested_precision
from citerec.encode.light import UnsupportedError
from citerec.encode.light.bert import read_config
from citerec.machine import may_have_gpu
from citerec.text import contents
from citerec.types import Paper, Query

# Operations that NumPy does on two cores while torch and transformers are imported, which takes 2 to 3 seconds: MiniLM
# reads 14,000 tokens, BERT 1,700.
AFFORDABLE = 3e11
CHARACTERS = 4  # per token, about
LONGEST = 512  # tokens of a text


def chosen(config: EncodeConfig, folder: Path) -> EncodeConfig:
    """Return the configuration of an encoder with `few_texts` decided by the expected tokens.

    Args:
        config: How to run it.
        folder: Its model folder.
    """
    if config.few_texts or not config.tokens:
        return replace(config, tokens=0)
    try:
        work = config.tokens * read_config(folder).token_flops
    except UnsupportedError:
        return replace(config, tokens=0)
    few = work <= AFFORDABLE and is_free(config)
    return replace(config, tokens=0, few_texts=few)


def config_for(queries: Sequence[Query], threads: int) -> EncodeConfig:
    """Return how an encoder is run for queries that are all known before it is opened."""
    return EncodeConfig(threads=threads, tokens=expected_tokens(queries))


def is_free(config: EncodeConfig) -> bool:
    """Whether neither device nor precision is requested, except float32 by the environment, and there is no GPU."""
    precisions = {Precision.AUTO, Precision.FLOAT32}
    return (
        config.device == "auto"
        and config.precision is Precision.AUTO
        and requested_precision(config.precision) in precisions
        and not may_have_gpu()
    )


def expected_tokens(texts: Sequence[Paper | Query]) -> int:
    """Return about how many tokens an encoder reads of all texts together."""
    return sum(min(len(contents(text)) // CHARACTERS + 2, LONGEST) for text in texts)
