"""Writes the folder of a trained cross-encoder, which transformers, sentence-transformers and citerec open."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from citerec.rerank.model import RerankerParts
from citerec.rerank.spec import RerankerSpec, write_reranker_spec
from citerec.train.job import TrainingResult
from citerec.train.record import data_section, finish_folder, model_card, table


def write_model(
    parts: RerankerParts, result: TrainingResult, folder: Path, record: Mapping[str, Any]
) -> None:
    """Write a cross-encoder, its training record and its model card into a folder."""
    model = parts.model
    model.config._name_or_path = ""  # otherwise the local path of the base model
    # By default sentence-transformers applies a sigmoid to the score of a single label.
    model.config.sentence_transformers = {"activation_fn": "torch.nn.modules.linear.Identity"}
    model.save_pretrained(folder)
    parts.tokenizer.model_max_length = parts.spec.tokens
    parts.tokenizer.save_pretrained(folder)
    write_reranker_spec(folder, parts.spec)
    finish_folder(folder, record, _card(parts.spec, result, record))


def _card(spec: RerankerSpec, result: TrainingResult, record: Mapping[str, Any]) -> str:
    rows = [
        (str(p.step), p.loss, p.dev_loss, p.dev_mrr, p.dev_f1, p.dev_mixed) for p in result.history
    ]
    measures = table(("update", "loss", "dev loss", "dev MRR", "dev F1@20", "mixed"), rows)
    return model_card(
        f"A reranker of citations, trained on {record['index']}",
        "It reads a draft and a paper together; its score is high if the draft should cite the paper.",
        {
            "Use": _use(spec),
            "Data": data_section(record),
            "Measures": f"""\
On a sample of the dev queries: the first-stage ranking (0), and the ranking of the model after so many
updates. Mixed is the F1@20 of the best interpolation of both. The weights are those of update {record["best_step"]}.

{measures}""",
        },
        record["provenance"]["settings"],
        base=record["base"],
        hub=("text-ranking", "cross-encoder"),
    )


def _use(spec: RerankerSpec) -> str:
    return f"""With citerec: `citerec recommend --query FILE --reranker FOLDER`.

```python
from sentence_transformers import CrossEncoder

model = CrossEncoder("FOLDER")
scores = model.predict([(draft_title + " " + draft_abstract, title + " " + abstract)])
```

citerec truncates each side separately: at most {spec.query_tokens} tokens of the query with [CLS] and [SEP],
{spec.candidate_tokens} of the candidate with its [SEP].
Libraries that truncate the pair as a whole give long pairs other scores.
The probability of a citation is sigmoid({spec.scale:.4g} * score + {spec.offset:.4g}), fitted on the dev queries.
{_weight(spec)}"""


def _weight(spec: RerankerSpec) -> str:
    if spec.weight == 1:
        return ""
    return f"""\
It learned to add to the first-stage scores: its rerank weight is {spec.weight:g}, the best on the dev queries."""
