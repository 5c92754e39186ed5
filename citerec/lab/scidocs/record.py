"""The JSON output of a suite."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from citerec.lab.scidocs.published import TABLE_1
from citerec.lab.scidocs.suite import SuiteResult
from citerec.lab.scidocs.topics import TopicMap
from citerec.machine import provenance


@dataclass(frozen=True, slots=True)
class EncoderResult:
    """The results of an encoder."""

    encoder: str  # as the user named it
    fingerprint: str
    result: SuiteResult
    topics: TopicMap | None  # None without a map


def as_json(
    of: str,
    results: Sequence[EncoderResult],
    seed: int,
    settings: Mapping[str, Any],
    *,
    published: bool,
) -> str:
    """Return the results of some encoders, with the facts to reproduce them, as JSON text.

    Args:
        of: The published folder, or the name of an index.
        results: The results.
        seed: Of all samples.
        settings: For the provenance.
        published: Whether it is the published suite; then table 1 of the paper is included.
    """
    record = {
        "suite": "published" if published else "index",
        "of": of,
        "seed": seed,
        "encoders": [_encoder(each) for each in results],
        **({"published": TABLE_1} if published else {}),
        "provenance": provenance({**settings}),
    }
    return orjson.dumps(record, option=orjson.OPT_INDENT_2).decode() + "\n"


def _encoder(results: EncoderResult) -> dict[str, Any]:
    topics = results.topics
    quality = topics and {"homogeneity": topics.homogeneity, "completeness": topics.completeness}
    return {
        "encoder": results.encoder,
        "fingerprint": results.fingerprint,
        "metrics": results.result.metrics,
        "counts": results.result.counts,
        "left_out": results.result.left_out,
        "map": quality,
    }
