"""The model folder that a training leaves: it opens in transformers, in sentence-transformers and here."""

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from citerec.manifest import seal_model
from citerec.rerank.model import RerankerParts
from citerec.rerank.spec import write_reranker_spec
from citerec.train.modelfolder import TrainingRecord, cell, finish_folder

MEASURES = ("loss", "dev_loss", "dev_mrr", "dev_f1", "dev_mixed")  # columns of the model card


def write_model(
    folder: Path, parts: RerankerParts, record: TrainingRecord, more: Mapping[str, Any]
) -> None:
    """Write a cross-encoder and all that is said of it into a folder.

    Args:
        folder: Where to.
        parts: The model, and how it reads.
        record: How it was trained.
        more: What else training.json tells.
    """
    model = parts.model
    model.config._name_or_path = ""  # else the place of the base model on this machine
    # sentence-transformers would squash the score of a single label, unless told not to.
    model.config.sentence_transformers = {"activation_fn": "torch.nn.modules.linear.Identity"}
    model.save_pretrained(folder)
    parts.tokenizer.model_max_length = parts.spec.tokens
    parts.tokenizer.save_pretrained(folder)
    write_reranker_spec(folder, parts.spec)
    training = record.to_json() | {"best_step": record.best, **more}
    finish_folder(folder, training, model_card(record, parts))
    seal_model(folder)


def model_card(record: TrainingRecord, parts: RerankerParts) -> str:
    """Return README.md: what the model is, what it learned from, how good it is, how to use it."""
    spec = parts.spec
    rows = [
        f"| {e['step']} | {' | '.join(cell(e[name]) for name in MEASURES)} |"
        for e in record.history
    ]
    return f"""---
library_name: sentence-transformers
pipeline_tag: text-ranking
base_model: {record.base}
tags:
- sentence-transformers
- cross-encoder
- citation-recommendation
---

# A reranker of citations, trained on {record.index}

It reads a draft and a paper together, and its score says whether the one should cite the other.
Trained by citerec {version("citerec")} from {record.base}.

## Use

With citerec: `citerec recommend --query FILE --reranker FOLDER`.

```python
from sentence_transformers import CrossEncoder

model = CrossEncoder("FOLDER")
scores = model.predict([(draft_title + " " + draft_abstract, title + " " + abstract)])
```

citerec cuts each side on its own: at most {spec.query_tokens} tokens of the query with [CLS] and [SEP],
{spec.candidate_tokens} of the candidate with its [SEP]; what cuts a pair as a whole gives long ones another score.
The probability of a citation is sigmoid({spec.scale:.4g} * score + {spec.offset:.4g}), fitted on the dev queries.

## Data

Index {record.index}, corpus sha256 {record.corpus}.

{record.counted}

Neither dev nor test queries of the index are among the papers that it was trained on.

## Measures

On a sample of the dev queries, in the order in which the candidates were found (0) and as the model orders them after
so many updates; mixed is F1@20 of the best mixture of both. The weights are those of update {record.best}.

| update | loss | dev loss | dev MRR | dev F1@20 | mixed |
|---|---|---|---|---|---|
{chr(10).join(rows)}

## Settings

```
{record.set_to}
```
"""
