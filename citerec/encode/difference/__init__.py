"""Models stored as a difference to a base model: small folders that open as the whole model.

A folder has `difference.json` (the base model and the sha256 of its weights), `difference.safetensors`, `config.json`,
and the files that citerec writes into every model: how it reads, `training.json`, `README.md`, `checksums.json`. The
tokenizer is that of the base model.

| tensor of the model | stored as |
| --- | --- |
| a matrix | factors of the difference to the base model, `.left` (out, rank) and `.right` (rank, in), by its SVD |
| a vector, or a matrix whose factors would be larger | the difference, `.added` |
| a tensor that the base model does not have, such as a head | `.whole` |
| a tensor that equals that of the base model | nothing |

All numbers are float16; they are added to the weights of the base model in float32.
"""
