"""Adapters of SPECTER2's kind, of random weights."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

# what adapter_config.json of allenai/specter2 says of the bottleneck
SPECTER2 = json.loads("""{
"adapter_residual_before_ln": false, "cross_adapter": false, "inv_adapter": null, "is_parallel": false,
"leave_out": [], "ln_after": false, "ln_before": false, "mh_adapter": false, "non_linearity": "relu",
"original_ln_after": true, "original_ln_before": true, "output_adapter": true, "phm_layer": false,
"reduction_factor": 16, "residual_before_ln": true, "scaling": 1.0, "use_gating": false
}""")


def write_adapter(
    folder: Path,
    *,
    layers: int = 2,
    hidden: int = 32,
    plain: bool = False,
    **changes: object,
) -> dict[str, torch.Tensor]:
    """Write an adapter of random weights, a quarter as wide as the model."""
    folder.mkdir(exist_ok=True)
    config = {"config": {**SPECTER2, **changes}, "hidden_size": hidden, "name": "[PRX]"}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    generator = torch.Generator().manual_seed(3)
    shapes = {
        "down.0.weight": (hidden // 4, hidden),
        "down.0.bias": (hidden // 4,),
        "up.weight": (hidden, hidden // 4),
        "up.bias": (hidden,),
    }
    tensors = {
        f"bert.encoder.layer.{n}.output.adapters.[PRX].adapter_{part}": torch.randn(
            shape, generator=generator
        )
        for n in range(layers)
        for part, shape in shapes.items()
    }
    if plain:
        torch.save(tensors, folder / "pytorch_adapter.bin")
    else:
        save_file(tensors, folder / "adapter.safetensors")
    return tensors
