"""Writes the folder of a trained encoder, which transformers, sentence-transformers and citerec open."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from citerec.encode.model import Parts
from citerec.encode.projection import Matrix, write_projection
from citerec.encode.spec import EncoderSpec, Pooling, Separator, Similarity, write_spec
from citerec.train.job import TrainingResult
from citerec.train.record import data_section, finish_folder, model_card, table, write_json


def write_model(
    parts: Parts,
    result: TrainingResult,
    projection: Matrix | None,
    folder: Path,
    record: Mapping[str, Any],
) -> None:
    """Write a model with the linear map of its vectors, if any, its training record and its model card."""
    parts.model.config._name_or_path = ""  # otherwise the local path of the base model
    parts.model.save_pretrained(folder)
    parts.tokenizer.save_pretrained(folder)
    write_spec(folder, parts.spec)
    _write_sentence_transformers(folder, parts.spec, parts.dim, projection)
    finish_folder(folder, record, _card(parts, result, record))


def _write_sentence_transformers(
    folder: Path, spec: EncoderSpec, dim: int, projection: Matrix | None
) -> None:
    """Write the files of sentence-transformers; every version knows these module names."""
    normalize = spec.similarity is Similarity.COSINE
    dense = [] if projection is None else ["Dense"]
    kinds = ["Transformer", "Pooling", *dense, *(["Normalize"] if normalize else [])]
    modules = [
        {
            "idx": number,
            "name": str(number),
            "path": f"{number}_{kind}" if number else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for number, kind in enumerate(kinds)
    ]
    # Normalize has no files, and an empty folder would be lost in archives and in git.
    (folder / "1_Pooling").mkdir()
    if projection is not None:
        write_projection(folder, projection)
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


def _card(parts: Parts, result: TrainingResult, record: Mapping[str, Any]) -> str:
    rows = [
        (
            str(point.number(result.spec.unit)),
            point.loss,
            point.dev_loss,
            point.dev_mrr,
            point.dev_f1,
        )
        for point in result.history
    ]
    measures = table(("epoch", "loss", "dev loss", "dev MRR", "dev F1@20"), rows)
    return model_card(
        f"An encoder of papers, trained on the citations of {record['index']}",
        f"It maps title and abstract to a vector of {parts.dim} numbers; papers that cite each other have similar "
        "vectors.",
        {
            "Use": _use(parts),
            "Data": data_section(record),
            "Measures": "On a sample of the dev queries, before training (0) and after each epoch; the weights are "
            f"those of epoch {record['best_epoch']}.\n\n{measures}",
        },
        record["provenance"]["settings"],
        base=record["base"],
        hub=("sentence-similarity", "feature-extraction"),
    )


def _use(parts: Parts) -> str:
    spec, separator = parts.spec, f'"{parts.tokenizer.sep_token}"'
    by_token = spec.separator is Separator.TOKEN
    similarity = "cosine" if spec.similarity is Similarity.COSINE else "Euclidean distance"
    return f"""With citerec: `citerec index CORPUS --encoder FOLDER`, or `citerec encode --index DIR --encoder FOLDER`.

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("FOLDER")
vectors = model.encode([title + {separator if by_token else '" "'} + abstract])
```

The input of a paper is {spec.form}, with {separator if by_token else "a space"} between the parts,
at most {spec.max_tokens} tokens; pooling: {spec.pooling}; similarity: {similarity}."""
