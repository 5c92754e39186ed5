"""A local cache of the model hub, as huggingface_hub leaves it, with tiny models in the layouts of real ones."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.tiny import tiny_bert

SPECTER, SCIBERT = "allenai/specter", "allenai/scibert_scivocab_uncased"
COMMIT = "24f92d32b1bfb0bcaf9ab193ff3ad01e87732fc1"


def cached(cache: Path, repo: str, model: Path) -> Path:
    """Move a model folder into a cache: its files are blobs, which a snapshot links to. Return the snapshot."""
    home = cache / f"models--{repo.replace('/', '--')}"
    snapshot = home / "snapshots" / COMMIT
    for folder in (snapshot, home / "blobs", home / "refs"):
        folder.mkdir(parents=True)
    (home / "refs" / "main").write_text(COMMIT)
    for file in sorted(model.iterdir()):
        blob = home / "blobs" / hashlib.sha256(file.read_bytes()).hexdigest()
        file.rename(blob)
        (snapshot / file.name).symlink_to(Path("..", "..", "blobs", blob.name))
    return snapshot


def cached_specter(cache: Path, scratch: Path, words: Sequence[str]) -> Path:
    """Put a tiny SPECTER into a cache: PyTorch's weights of a bare BERT, `vocab.txt`, and the tokenizer's settings."""
    from transformers import BertModel

    folder = _published(scratch / "specter", BertModel, words)
    special = {
        f"{name}_token": f"[{name.upper()}]"
        for name in ("unk", "sep", "pad", "cls", "mask")
    }
    (folder / "special_tokens_map.json").write_text(json.dumps(special))
    settings = {
        "do_lower_case": True,
        "model_max_length": 512,
        "tokenizer_class": "BertTokenizer",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(special | settings))
    return cached(cache, SPECTER, folder)


def cached_scibert(cache: Path, scratch: Path, words: Sequence[str]) -> Path:
    """Put a tiny SciBERT into a cache: PyTorch's weights with the heads of the pretraining, and `vocab.txt` alone."""
    from transformers import BertForPreTraining

    folder = _published(scratch / "scibert", BertForPreTraining, words)
    config = json.loads((folder / "config.json").read_text())
    del config["architectures"]
    (folder / "config.json").write_text(json.dumps(config))
    return cached(cache, SCIBERT, folder)


def _published(folder: Path, kind: Any, words: Sequence[str]) -> Path:
    """Write a model as it was published in 2019 to 2021: no safetensors, no tokenizer.json, weights of Flax, too."""
    import torch
    from transformers import AutoConfig

    tiny_bert(folder, words=words, positions=512, layers=1)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    (folder / "vocab.txt").write_text(
        "".join(f"{piece}\n" for piece in tokenizer["model"]["vocab"])
    )
    for name in ("tokenizer.json", "tokenizer_config.json", "model.safetensors"):
        (folder / name).unlink()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = kind(AutoConfig.from_pretrained(folder))
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    (folder / "flax_model.msgpack").write_bytes(b"\x80")
    (folder / "README.md").write_text("# A model\n")
    return folder
