"""Write the mean of several cross-encoders that were trained from the same base model.

    python experiments/reranker/mean.py indexes/rerankers/first indexes/rerankers/second indexes/rerankers/mean

The folder is a copy of the first one with other weights: a base model for `citerec train-reranker --model`.

Source: Wortsman et al., ICML 2022, Model soups, https://arxiv.org/abs/2203.05482.
"""

import argparse
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from citerec.manifest import seal_model

WEIGHTS = "model.safetensors"


def main() -> None:
    """Average, and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", type=Path, nargs="+", help="the folders of the models")
    parser.add_argument("output", type=Path, help="the folder to create")
    options = parser.parse_args()
    loaded = [load_file(model / WEIGHTS) for model in options.models]
    mean = {
        name: torch.stack([tensors[name].float() for tensors in loaded]).mean(0)
        for name in loaded[0]
    }
    shutil.copytree(options.models[0], options.output)
    save_file(mean, options.output / WEIGHTS, metadata={"format": "pt"})
    seal_model(options.output)


if __name__ == "__main__":
    main()
