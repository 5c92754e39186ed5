"""The model folder that a training leaves: it opens in transformers, in sentence-transformers and here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from citerec.encode.model import Parts
from citerec.encode.spec import NAME as SPEC
from citerec.encode.spec import EncoderSpec, Pooling, Separator, Similarity, write_spec
from citerec.errors import ConfigError, ModelExistsError
from citerec.manifest import seal_model
from citerec.train.encoder.loop import Epoch

TRAINING = "training.json"
PACKAGES = ("torch", "transformers", "accelerate")
_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What is told of a training: in training.json whole, in the model card in short."""

    base: str
    index: str
    corpus: str  # sha256
    splits: str  # sha256
    counts: Mapping[str, int]
    settings: Mapping[str, Any]
    history: Sequence[Epoch]
    best: int  # the epoch whose weights these are
    provenance: Mapping[str, Any]


def check_target(output: Path, *, force: bool) -> None:
    """Refuse to replace what is no model of ours, and a model unless that is wanted.

    Raises:
        ConfigError: If something else is there.
        ModelExistsError: If a model is there, and nobody said so.
    """
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return
    if not (output / SPEC).is_file() or not (output / TRAINING).is_file():
        raise ConfigError(
            f"{output} is there and is no model that citerec trained; name another folder with --output"
        )
    if not force:
        raise ModelExistsError(output)


def write_model(folder: Path, parts: Parts, story: Story) -> None:
    """Write a model and all that is said of it into a folder."""
    parts.model.config._name_or_path = ""  # else the place of the base model on this machine
    parts.model.save_pretrained(folder)
    parts.tokenizer.save_pretrained(folder)
    write_spec(folder, parts.spec)
    _write_sentence_transformers(folder, parts.spec, parts.dim)
    _write(folder / TRAINING, _training(story))
    (folder / "README.md").write_text(model_card(story, parts), encoding="utf-8")
    for weights in folder.glob("*.safetensors"):  # written for their owner's eyes only
        weights.chmod((folder / TRAINING).stat().st_mode)
    seal_model(folder)


def _write_sentence_transformers(folder: Path, spec: EncoderSpec, dim: int) -> None:
    """Write what sentence-transformers reads; the names of its modules are those that every version knows."""
    normalize = spec.similarity is Similarity.COSINE
    kinds = ["Transformer", "Pooling", *(["Normalize"] if normalize else [])]
    modules = [
        {
            "idx": number,
            "name": str(number),
            "path": f"{number}_{kind}" if number else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for number, kind in enumerate(kinds)
    ]
    for module in modules[1:]:
        (folder / str(module["path"])).mkdir()
    _write(folder / "modules.json", modules)
    modes = {
        "pooling_mode_cls_token": spec.pooling is Pooling.CLS,
        "pooling_mode_mean_tokens": spec.pooling is Pooling.MEAN,
        "pooling_mode_max_tokens": spec.pooling is Pooling.MAX,
        "pooling_mode_mean_sqrt_len_tokens": False,
    }
    _write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": dim, **modes})
    length = {"max_seq_length": spec.max_tokens, "do_lower_case": False}
    _write(folder / "sentence_bert_config.json", length)
    named = "cosine" if normalize else "euclidean"
    _write(folder / "config_sentence_transformers.json", {"similarity_fn_name": named})


def _training(story: Story) -> dict[str, Any]:
    history = [
        {name: getattr(e, name) for name in Epoch.__dataclass_fields__} for e in story.history
    ]
    return {
        "base": story.base,
        "index": story.index,
        "corpus_sha256": story.corpus,
        "splits_sha256": story.splits,
        "counts": dict(story.counts),
        "best_epoch": story.best,
        "history": history,
        "packages": {name: version(name) for name in PACKAGES},
        "provenance": dict(story.provenance),
    }


def model_card(story: Story, parts: Parts) -> str:
    """Return README.md: what the model is, what it learned from, how good it is, how to use it."""
    spec = parts.spec
    between = f'"{parts.tokenizer.sep_token}"' if spec.separator is Separator.TOKEN else "a space"
    tags = "\n".join(
        ["- sentence-transformers", "- feature-extraction", "- citation-recommendation"]
    )
    rows = [
        f"| {e.epoch} | {_cell(e.loss)} | {_cell(e.dev_loss)} | {_cell(e.dev_mrr)} | {_cell(e.dev_f1)} |"
        for e in story.history
    ]
    counts = "\n".join(
        f"- {count:,} {name.replace('_', ' ')}" for name, count in story.counts.items()
    )
    settings = "\n".join(f"{name} = {value}" for name, value in story.settings.items())
    return f"""---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
base_model: {story.base}
tags:
{tags}
---

# An encoder of papers, trained on the citations of {story.index}

Papers that cite each other lie close together: it turns title and abstract into {parts.dim} numbers.
Trained by citerec {version("citerec")} from {story.base}.

## Use

With citerec: `citerec index CORPUS --encoder FOLDER`, or `citerec encode --index DIR --encoder FOLDER`.

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("FOLDER")
vectors = model.encode([title + {_joint(spec, parts)} + abstract])
```

A paper is read as {spec.form}, with {between} between the parts, at most {spec.max_tokens} tokens;
pooling: {spec.pooling}; compared by {_compared(spec)}.

## Data

Index {story.index}, corpus sha256 {story.corpus}.

{counts}

Neither dev nor test queries of the index are among the papers that it was trained on.

## Measures

On a sample of the dev queries, before training (0) and after each epoch; the weights are those of epoch {story.best}.

| epoch | loss | dev loss | dev MRR | dev F1@20 |
|---|---|---|---|---|
{chr(10).join(rows)}

## Settings

```
{settings}
```
"""


def _joint(spec: EncoderSpec, parts: Parts) -> str:
    return f'"{parts.tokenizer.sep_token}"' if spec.separator is Separator.TOKEN else '" "'


def _compared(spec: EncoderSpec) -> str:
    return "cosine" if spec.similarity is Similarity.COSINE else "Euclidean distance"


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _write(file: Path, content: Any) -> None:
    file.write_bytes(orjson.dumps(content, option=_OPTIONS))
