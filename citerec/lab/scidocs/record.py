"""What a run of a suite leaves as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from citerec.lab.scidocs.published import TABLE_1
from citerec.lab.scidocs.suite import SuiteResult
from citerec.lab.scidocs.topics import TopicMap
from citerec.provenance import provenance


@dataclass(frozen=True, slots=True)
class EncoderResult:
    """What an encoder is worth."""

    encoder: str  # as the user named it
    fingerprint: str
    result: SuiteResult
    topics: TopicMap | None  # if a map was wanted


def as_json(
    of: str,
    judged: Sequence[EncoderResult],
    seed: int,
    settings: Mapping[str, Any],
    *,
    published: bool,
) -> str:
    """Return the figures of some encoders, and what it takes to get them again.

    Args:
        of: What they were judged by: the published folder, or the name of an index.
        judged: The encoders.
        seed: Of all draws.
        settings: For the provenance.
        published: Whether it is the published suite; then the paper's table 1 is there, too.
    """
    record = {
        "suite": "published" if published else "index",
        "of": of,
        "seed": seed,
        "encoders": [_encoder(each) for each in judged],
        **({"published": TABLE_1} if published else {}),
        "provenance": provenance({**settings}),
    }
    return orjson.dumps(record, option=orjson.OPT_INDENT_2).decode() + "\n"


def _encoder(judged: EncoderResult) -> dict[str, Any]:
    topics = judged.topics
    quality = topics and {"homogeneity": topics.homogeneity, "completeness": topics.completeness}
    return {
        "encoder": judged.encoder,
        "fingerprint": judged.fingerprint,
        "metrics": judged.result.metrics,
        "counts": judged.result.counts,
        "left_out": judged.result.left_out,
        "map": quality,
    }
