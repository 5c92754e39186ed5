"""Runs models by ONNX Runtime: for the few texts that a user waits for, as importing torch takes seconds.

torch exports a model once on a machine: a fused graph, its weights and its tokenizer go to the user's cache, under a
key of the model's files. If it cannot be exported, or the cache cannot be written, torch runs the model.
"""

import hashlib
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from citerec.encode.models import files_of
from citerec.encode.torch_backend import Net, Tokens, TorchBackend, batches, padded
from citerec.files.arrays import Scores
from citerec.files.atomic import building
from citerec.files.cache import (
    cache_folder,
    is_private,
    private_folder,
    sha256_of_files,
)
from citerec.files.checksums import model_faults, seal_model

FORMAT = 2  # of what is exported
FOLDER = "onnx"  # in the cache
# exports in the cache, 90 MB of MiniLM, 440 MB of a BERT; older ones are removed
KEPT = 4
RAW = "raw"
GRAPH = "graph.onnx"
WEIGHTS = "weights"
TOKENIZER = "tokenizer.json"
FACTS = "facts.json"
OPSET = 17  # the first with layer normalisation as one operation
# Tokens per batch, with padding. 50 pairs of 192 tokens took 2.0 s in batches of 512, 2.8 s in a single one.
BATCH_TOKENS = 512


@dataclass(frozen=True, slots=True)
class Export:
    """An exported model: its folder, and what its texts need besides the tokenizer."""

    folder: Path
    facts: Mapping[str, Any]

    def tokenizer(self, at_most: int) -> Any:
        """Open the tokenizer, which cuts each text to `at_most` ids; several threads may use it."""
        from tokenizers import Tokenizer

        tokenizer: Any = Tokenizer.from_file(str(self.folder / TOKENIZER))
        tokenizer.no_padding()
        tokenizer.enable_truncation(at_most)
        return tokenizer


def export_key(folder: Path, adapter: Path | None, spec: object) -> str:
    """Return the key of a model: two models of one key give the same numbers.

    ModelError if the folder has no weights.
    """
    import onnxruntime

    digest = sha256_of_files(files_of(folder, adapter))
    parts = (FORMAT, onnxruntime.__version__, digest, spec)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def exported(key: str) -> Export | None:
    """Return the export of a model; None if there is none in the cache, or it was changed."""
    folder = cache / FOLDER / key if (cache := cache_folder()) else None
    if (
        folder
        and not model_faults(folder, whole=False)
        and all(map(is_private, folder.iterdir()))
    ):
        return Export(folder, orjson.loads((folder / FACTS).read_bytes()))
    return None


def export(
    key: str, net: Net, tokenizer: Any, facts: Mapping[str, Any]
) -> Export | None:
    """Export a net that torch opened, in float32 on the CPU, unless the cache has it; None if that is not possible.

    `key` is that of `export_key`; `facts` are JSON values that `Export.facts` has.
    """
    cache = cache_folder()
    found = exported(key)
    if found or cache is None or not private_folder(cache / FOLDER):
        return found
    new = cache / FOLDER / key
    # tracing a model may raise anything
    with (
        suppress(Exception),
        building(new) as folder,
    ):
        (folder / TOKENIZER).write_text(
            tokenizer.backend_tokenizer.to_str(), encoding="utf-8"
        )
        _write_graph(folder, net)
        more = {
            "padding": net.padding,
            "max_tokens": net.max_tokens,
            "typed": net.typed,
        }
        (folder / FACTS).write_bytes(orjson.dumps({**facts, **more}))
        seal_model(folder)
        for file in folder.iterdir():
            file.chmod(0o600)
    others = [folder for folder in (cache / FOLDER).iterdir() if folder.name != key]
    for old in sorted(others, key=lambda folder: -folder.stat().st_mtime)[KEPT - 1 :]:
        shutil.rmtree(old, ignore_errors=True)
    return exported(key)


def _write_graph(folder: Path, net: Net) -> None:
    """Write the fused graph of a net, and its weights in a file of their own, which is mapped."""
    import torch
    from onnxruntime.transformers.optimizer import optimize_model

    ids = torch.arange(16).reshape(2, 8)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0  # otherwise the trace would be of a model without a mask
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if net.typed else [])]
    inputs = (ids, mask, torch.zeros_like(ids))[: len(names)]
    model = net.module.model
    config = net.module.model.config
    attention = config._attn_implementation
    try:
        with torch.no_grad(), warnings.catch_warnings():
            # about values that the trace treats as constants, which they are here, and about the exporter
            warnings.simplefilter("ignore")
            expected = net.module.eval()(*inputs).numpy()
            model.set_attn_implementation("eager")  # which the optimiser knows
            torch.onnx.export(
                net.module,
                inputs,
                str(folder / RAW),
                input_names=names,
                output_names=["outputs"],
                dynamic_axes={name: {0: "texts", 1: "tokens"} for name in names}
                | {"outputs": {0: "texts"}},
                opset_version=OPSET,
                dynamo=False,  # the newer exporter takes 15 s for MiniLM, this one 2 s
            )
        # a third of the operations, so that the graph opens in 13 ms, not 60
        fused = optimize_model(
            str(folder / RAW),
            model_type="bert",
            num_heads=config.num_attention_heads,
            hidden_size=config.hidden_size,
            opt_level=0,
        )
        fused.save_model_to_file(str(folder / RAW))
        options = _options(1)
        options.optimized_model_filepath = str(folder / GRAPH)
        prefix = "session.optimized_model_external_initializers_"
        options.add_session_config_entry(f"{prefix}file_name", WEIGHTS)
        options.add_session_config_entry(f"{prefix}min_size_in_bytes", "1024")
        session = _session(folder / RAW, options)
        [outputs] = session.run(
            None, {n: i.numpy() for n, i in zip(names, inputs, strict=True)}
        )
        (folder / RAW).unlink()
        np.testing.assert_allclose(outputs, expected, rtol=1e-3, atol=1e-4)
    finally:
        model.set_attn_implementation(attention)


class OnnxBackend:
    """Runs an export, in float32; several threads may use it at once."""

    precision = "float32"
    device = "cpu"

    def __init__(self, export: Export, threads: int) -> None:
        """Open the graph; a computation uses so many threads."""
        import onnxruntime

        self._facts = export.facts
        options = _options(threads)
        options.graph_optimization_level = (
            onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        )
        # Packing weights takes .06 s and memory that other processes do not share, and saves 5 % of a query's time.
        options.add_session_config_entry("session.disable_prepacking", "1")
        self._session = _session(export.folder / GRAPH, options)

    def run(
        self, tokens: Tokens, firsts: Sequence[int] | None = None
    ) -> Iterator[tuple[list[int], Scores]]:
        """Yield batch by batch the positions of texts in `tokens`, and their outputs; as `TorchBackend`."""
        for rows in batches([len(ids) for ids in tokens], BATCH_TOKENS):
            facts = self._facts
            inputs = padded(tokens, rows, facts["padding"], facts["max_tokens"], firsts)
            yield rows, np.asarray(self._session.run(None, inputs)[0], np.float32)


Runner = TorchBackend | OnnxBackend  # runs a model batch by batch


def _options(threads: int) -> Any:
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options: Any = onnxruntime.SessionOptions()
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    )
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # errors
    options.enable_mem_pattern = False  # batches differ in shape
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def _session(graph: Path, options: Any) -> Any:
    import onnxruntime

    return onnxruntime.InferenceSession(
        str(graph), options, providers=["CPUExecutionProvider"]
    )
