"""The folder of a trained model: its training record, its model card, and whether it may be replaced."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from citerec.encode.model import weights_files
from citerec.encode.source import ModelSource, find_model, is_name, recorded_folder
from citerec.errors import ConfigError, ModelError, ModelExistsError
from citerec.folder import IndexFolder
from citerec.io import TRAINING, check_name, seal_model, sha256_of_files
from citerec.machine import provenance, versions
from citerec.rules.held_out import BASES, data_of, recorded_indexes
from citerec.types import Log

LOCAL = frozenset({"model"})  # settings that may name a folder
PACKAGES = ("torch", "transformers", "sentence-transformers", "accelerate")
_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


def check_target(output: Path, spec: str, *, force: bool) -> None:
    """Refuse to replace a folder that is no model of this kind, and a model without `force`.

    Args:
        output: The model folder to write.
        spec: The name of the file that every model of this kind holds.
        force: Whether a model may be replaced.

    Raises:
        ConfigError: If the folder holds something else.
        ModelExistsError: If the folder holds a model and `force` is false.
        OutputError: If the name is too long.
    """
    check_name(output)
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return
    if not (output / spec).is_file() or not (output / TRAINING).is_file():
        raise ConfigError(
            f"{output} exists and is no model that citerec trained; choose another folder with --output"
        )
    if not force:
        raise ModelExistsError(output)


def corpus_facts(index: IndexFolder) -> dict[str, Any]:
    """Return the facts of a training record that identify the papers and splits of an index."""
    corpus, splits = data_of(index)
    return {"corpus_sha256": corpus, "splits_sha256": splits}


def encoder_of(index: IndexFolder) -> str | None:
    """Return the sha256 of the weights of the encoder of an index; None without vectors."""
    recorded = index.manifest.settings.get("encoder")
    return recorded["weights"] if recorded else None


def encoder_folder(index: IndexFolder) -> Path | None:
    """Return the folder of the model that an index was embedded by; None without vectors or if it has only a name."""
    recorded = index.manifest.settings.get("encoder")
    return recorded_folder(str(recorded["source"]), base=index.path) if recorded else None


def training_record(
    facts: Mapping[str, Any], settings: Mapping[str, Any], packages: Iterable[str] = PACKAGES
) -> dict[str, Any]:
    """Return the content of training.json.

    Args:
        facts: The data and the measures of the training, as JSON values.
        settings: The settings, without local paths.
        packages: The packages whose versions are recorded.
    """
    shared = {"packages": versions(packages), "provenance": provenance(dict(settings))}
    return {**facts, **shared}


def read_training(model: Path) -> dict[str, Any]:
    """Return the content of training.json; empty if it cannot be read."""
    try:
        return orjson.loads((model / TRAINING).read_bytes())
    except (OSError, ValueError):
        return {}


def was_trained_so(model: Path, settings: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    """Return whether the record of a model has some settings and facts; of a base in a folder it has only the name."""
    record = read_training(model)
    try:
        recorded = dict(record["provenance"]["settings"])
    except (KeyError, TypeError):
        return False
    expected = orjson.loads(orjson.dumps(dict(settings)))
    for name in LOCAL & expected.keys():
        if recorded.get(name) == Path(expected[name]).name:
            expected[name] = recorded[name]
    return recorded == expected and _includes(record, facts)


def _includes(recorded: Any, facts: Any) -> bool:
    if isinstance(facts, Mapping):
        entries: Mapping[str, Any] = facts
        return all(_includes(recorded.get(name), value) for name, value in entries.items())
    if isinstance(facts, list):
        values: list[Any] = facts
        same_length = isinstance(recorded, list) and len(recorded) == len(values)  # pyright: ignore
        return same_length and all(map(_includes, recorded, values))  # pyright: ignore
    return recorded == facts


def has_weights(name: str, index: IndexFolder, sha256: str | None) -> bool:
    """Return whether a model has these weights; true if they are unknown or the model is in no local folder.

    Args:
        name: A folder, here or in the index, or any other name of a model.
        index: An index that may contain the folder.
        sha256: The checksum of the weights; None if it is unknown.
    """
    folders = [folder for folder in (Path(name), index.path / name) if folder.is_dir()]
    if sha256 is None or is_name(name) or not folders:
        return True
    try:
        return sha256_of_files(weights_files(folders[0])) == sha256
    except ModelError:
        return False


def find_base(model: str, index: IndexFolder, log: Log) -> ModelSource:
    """Return the base model of a training.

    Raises:
        ConfigError: If it has an adapter.
        ModelError: If it cannot be found.
    """
    source = find_model(model, base=index.path, log=log)
    if source.adapter:
        raise ConfigError(
            f"{model} has an adapter, which cannot be trained further; choose its base model with --model"
        )
    return source


def base_facts(
    source: ModelSource, weights: str, index: IndexFolder, teachers: Sequence[Path] = ()
) -> dict[str, Any]:
    """Return the entries of a training record for the base model and the index.

    What base model and teachers were trained on is recorded, too: the new model may know their queries.

    Args:
        source: The base model; of one in a folder, the name is recorded without its path.
        weights: The sha256 of its weights.
        index: The training data.
        teachers: The folders of the models whose scores the new model learned.
    """
    local = recorded_folder(source.location, base=index.path) is not None
    base = source.folder.name if local else source.name
    named = {"base": base, "weights": weights, "index": index.manifest.name}
    earlier = recorded_indexes([source.folder, *teachers])
    return named | corpus_facts(index) | ({BASES: earlier} if earlier else {})


def finish_folder(folder: Path, record: Mapping[str, Any], card: str) -> None:
    """Write training.json and the model card, give the weights the same file mode, and seal the folder.

    `save_pretrained` makes the weights readable by their owner only.
    """
    write_json(folder / TRAINING, record)
    (folder / "README.md").write_text(card, encoding="utf-8")
    for weights in folder.glob("*.safetensors"):
        weights.chmod((folder / TRAINING).stat().st_mode)
    seal_model(folder)


def write_json(file: Path, content: Any) -> None:
    """Write indented JSON."""
    file.write_bytes(orjson.dumps(content, option=_OPTIONS))


def model_card(
    title: str,
    about: str,
    sections: Mapping[str, str],
    settings: Mapping[str, Any],
    base: str = "",
    hub: tuple[str, ...] = (),
) -> str:
    """Return README.md of a model.

    Args:
        title: The heading.
        about: What the model does.
        sections: Use, Data, Measures and others: Markdown by heading.
        settings: The settings of the training, the last section.
        base: The base model, if there is one.
        hub: For a model that sentence-transformers opens: the pipeline of the hub, and a tag.
    """
    trained = f"Trained by citerec {version('citerec')}{base and f' from {base}'}."
    values = "\n".join(f"{name} = {value}" for name, value in settings.items())
    parts = {**sections, "Settings": f"```\n{values}\n```"}
    body = "\n\n".join(f"## {heading}\n\n{text.strip()}" for heading, text in parts.items())
    return f"{_front_matter(base, *hub) if hub else ''}# {title}\n\n{about}\n{trained}\n\n{body}\n"


def _front_matter(base: str, pipeline: str, tag: str) -> str:
    return f"""---
library_name: sentence-transformers
pipeline_tag: {pipeline}
base_model: {base}
tags:
- sentence-transformers
- {tag}
- citation-recommendation
---

"""


def data_section(record: Mapping[str, Any]) -> str:
    """Return the section of a model card on the training data: the index, and the counts of a training record."""
    lines = [f"- {count:,} {name.replace('_', ' ')}" for name, count in record["counts"].items()]
    return f"""Index {record["index"]}, corpus sha256 {record["corpus_sha256"]}.

{chr(10).join(lines)}

The training papers contain no dev or test query of the data."""


def table(heading: Sequence[str], rows: Iterable[Sequence[str | float | None]]) -> str:
    """Return a Markdown table; numbers have four decimals, None is an empty cell."""
    lines = [heading, ["---"] * len(heading), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: str | float | None) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else f"{value:.4f}"
