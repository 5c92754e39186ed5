"""Writes the folder of a trained cross-encoder, which transformers, sentence-transformers and citerec open."""

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
    """Write a cross-encoder, its training record and its model card into a folder.

    Args:
        folder: The folder.
        parts: The model and its specification.
        record: The training record.
        more: Further keys of training.json.
    """
    model = parts.model
    model.config._name_or_path = ""  # otherwise the local path of the base model
    # By default sentence-transformers applies a sigmoid to the score of a single label.
    model.config.sentence_transformers = {"activation_fn": "torch.nn.modules.linear.Identity"}
    model.save_pretrained(folder)
    parts.tokenizer.model_max_length = parts.spec.tokens
    parts.tokenizer.save_pretrained(folder)
    write_reranker_spec(folder, parts.spec)
    training = record.to_json() | {"best_step": record.best, **more}
    finish_folder(folder, training, model_card(record, parts))
    seal_model(folder)


def model_card(record: TrainingRecord, parts: RerankerParts) -> str:
    """Return README.md: the model, its use, its data, its measures and its settings."""
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

It reads a draft and a paper together; its score is high if the draft should cite the paper.
Trained by citerec {version("citerec")} from {record.base}.

## Use

With citerec: `citerec recommend --query FILE --reranker FOLDER`.

```python
from sentence_transformers import CrossEncoder

model = CrossEncoder("FOLDER")
scores = model.predict([(draft_title + " " + draft_abstract, title + " " + abstract)])
```

citerec truncates each side separately: at most {spec.query_tokens} tokens of the query with [CLS] and [SEP],
{spec.candidate_tokens} of the candidate with its [SEP].
Libraries that truncate the pair as a whole give long pairs other scores.
The probability of a citation is sigmoid({spec.scale:.4g} * score + {spec.offset:.4g}), fitted on the dev queries.

## Data

Index {record.index}, corpus sha256 {record.corpus}.

{record.counts_markdown}

The training papers contain no dev or test query of the index.

## Measures

On a sample of the dev queries: the first-stage ranking (0), and the ranking of the model after so many updates. Mixed
is the F1@20 of the best interpolation of both. The weights are those of update {record.best}.

| update | loss | dev loss | dev MRR | dev F1@20 | mixed |
|---|---|---|---|---|---|
{chr(10).join(rows)}

## Settings

```
{record.settings_text}
```
"""
