"""Writes the folder of a trained encoder, which transformers, sentence-transformers and citerec open."""

from importlib.metadata import version
from pathlib import Path

from citerec.encode.model import Parts
from citerec.encode.spec import EncoderSpec, Pooling, Separator, Similarity, write_spec
from citerec.manifest import seal_model
from citerec.train.modelfolder import TrainingRecord, cell, finish_folder, write_json

MEASURES = ("loss", "dev_loss", "dev_mrr", "dev_f1")  # columns of the model card


def write_model(folder: Path, parts: Parts, record: TrainingRecord) -> None:
    """Write a model, its training record and its model card into a folder."""
    parts.model.config._name_or_path = ""  # otherwise the local path of the base model
    parts.model.save_pretrained(folder)
    parts.tokenizer.save_pretrained(folder)
    write_spec(folder, parts.spec)
    _write_sentence_transformers(folder, parts.spec, parts.dim)
    training = record.to_json() | {"best_epoch": record.best}
    finish_folder(folder, training, model_card(record, parts))
    seal_model(folder)


def _write_sentence_transformers(folder: Path, spec: EncoderSpec, dim: int) -> None:
    """Write the files of sentence-transformers; every version knows these module names."""
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
    write_json(folder / "modules.json", modules)
    modes = {
        "pooling_mode_cls_token": spec.pooling is Pooling.CLS,
        "pooling_mode_mean_tokens": spec.pooling is Pooling.MEAN,
        "pooling_mode_max_tokens": spec.pooling is Pooling.MAX,
        "pooling_mode_mean_sqrt_len_tokens": False,
    }
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": dim, **modes})
    length = {"max_seq_length": spec.max_tokens, "do_lower_case": False}
    write_json(folder / "sentence_bert_config.json", length)
    named = "cosine" if normalize else "euclidean"
    write_json(folder / "config_sentence_transformers.json", {"similarity_fn_name": named})


def model_card(record: TrainingRecord, parts: Parts) -> str:
    """Return README.md: the model, its use, its data, its measures and its settings."""
    spec = parts.spec
    between = f'"{parts.tokenizer.sep_token}"' if spec.separator is Separator.TOKEN else "a space"
    tags = "\n".join(
        ["- sentence-transformers", "- feature-extraction", "- citation-recommendation"]
    )
    rows = [
        f"| {e['epoch']} | {' | '.join(cell(e[name]) for name in MEASURES)} |"
        for e in record.history
    ]
    return f"""---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
base_model: {record.base}
tags:
{tags}
---

# An encoder of papers, trained on the citations of {record.index}

It maps title and abstract to a vector of {parts.dim} numbers; papers that cite each other have similar vectors.
Trained by citerec {version("citerec")} from {record.base}.

## Use

With citerec: `citerec index CORPUS --encoder FOLDER`, or `citerec encode --index DIR --encoder FOLDER`.

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("FOLDER")
vectors = model.encode([title + {_joint(spec, parts)} + abstract])
```

The input of a paper is {spec.form}, with {between} between the parts, at most {spec.max_tokens} tokens;
pooling: {spec.pooling}; similarity: {_compared(spec)}.

## Data

Index {record.index}, corpus sha256 {record.corpus}.

{record.counts_markdown}

The training papers contain no dev or test query of the index.

## Measures

On a sample of the dev queries, before training (0) and after each epoch; the weights are those of epoch {record.best}.

| epoch | loss | dev loss | dev MRR | dev F1@20 |
|---|---|---|---|---|
{chr(10).join(rows)}

## Settings

```
{record.settings_text}
```
"""


def _joint(spec: EncoderSpec, parts: Parts) -> str:
    return f'"{parts.tokenizer.sep_token}"' if spec.separator is Separator.TOKEN else '" "'


def _compared(spec: EncoderSpec) -> str:
    return "cosine" if spec.similarity is Similarity.COSINE else "Euclidean distance"
