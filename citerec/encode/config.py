"""How a model is run, which depends on user and machine; how it reads and pools text is in `spec`."""

import os
from dataclasses import dataclass
from enum import StrEnum

from citerec.errors import ConfigError
from citerec.machine import about_cpu, processor

DTYPE_VARIABLE = "CITEREC_DTYPE"
# Parts of the names of instruction sets with bfloat16, by which ONEDNN_MAX_CPU_ISA limits oneDNN.
BF16_LIMITS = ("BF16", "FP16", "AMX", "AVX10", "DEFAULT")
# without one of them float32 is faster
BF16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16", "feat_bf16"}


class Precision(StrEnum):
    """The number format of a model's computation; vectors and scores are always float32."""

    # The one that CITEREC_DTYPE names; else bfloat16 if processor or GPU have it, else float16 on a GPU, else float32.
    AUTO = "auto"
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


DTYPES = (Precision.AUTO, Precision.FLOAT32, Precision.BFLOAT16)  # allowed values of CITEREC_DTYPE


class Backend(StrEnum):
    """The library that runs the model."""

    AUTO = "auto"  # openvino for a cross-encoder on a processor, if installed; else torch
    TORCH = "torch"
    OPENVINO = "openvino"  # on a processor; faster in our benchmark, but takes seconds to prepare


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeConfig:
    """How an encoder or a cross-encoder is run; the results hardly depend on it (vectors: cosine > 0.999)."""

    device: str = "auto"  # or cpu, cuda, cuda:1, mps
    precision: Precision = Precision.AUTO
    threads: int = 0  # 0 for one per processor
    batch_tokens: int = 0  # 0 for a size that suits the device
    backend: Backend = Backend.TORCH
    few_texts: bool = False  # for so few texts that importing torch takes longer: NumPy runs the model, in float32

    def __post_init__(self) -> None:
        if self.threads < 0:
            raise ConfigError(f"threads must not be negative, got {self.threads}")
        if self.batch_tokens < 0:
            raise ConfigError(f"batch_tokens must not be negative, got {self.batch_tokens}")
        if self.backend is Backend.OPENVINO and self.device not in {"auto", "cpu"}:
            raise ConfigError(f"OpenVINO runs on the processor, not on {self.device!r}; say cpu")
        if self.backend is Backend.OPENVINO and self.precision is Precision.FLOAT16:
            raise ConfigError("OpenVINO runs in bfloat16 or float32 here, not in float16")

    @property
    def thread_count(self) -> int:
        """The number of threads in use."""
        return self.threads or os.cpu_count() or 1


def requested_precision(precision: Precision) -> Precision:
    """Replace `auto` by the precision in the environment variable CITEREC_DTYPE, if it is set.

    With `CITEREC_DTYPE=float32` every model runs in float32, so results agree between processors up to rounding.

    Raises:
        ConfigError: If the variable is set to another value than auto, float32 or bfloat16.
    """
    named = os.environ.get(DTYPE_VARIABLE)
    if precision is not Precision.AUTO or not named:
        return precision
    if named not in DTYPES:
        raise ConfigError(f"{DTYPE_VARIABLE} is {named!r}; set it to one of {', '.join(DTYPES)}")
    return Precision(named)


def has_bfloat16() -> bool:
    """Whether this processor computes in bfloat16 and oneDNN, which runs the models, is allowed to use it.

    Source: https://uxlfoundation.github.io/oneDNN/dev_guide_cpu_dispatcher_control.html
    """
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper()
    if limit and not any(part in limit for part in BF16_LIMITS):
        return False
    return bool(BF16_FLAGS & processor(about_cpu())[1])
