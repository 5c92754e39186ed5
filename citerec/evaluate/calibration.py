"""The reliability of probabilities: how well they agree with citations."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from citerec.evaluate.significance import Floats

BINS = 10  # with equally many papers


@dataclass(frozen=True, slots=True)
class Reliability:
    """The agreement of probabilities and citations; all values are in [0, 1]."""

    papers: int
    cited: float  # share of the papers that are cited
    mean: float  # of the probabilities
    ece: float  # expected calibration error; 0 is best
    brier: float  # mean squared difference of probability and outcome; 0 is best


def reliability(
    probabilities: Floats, cited: npt.NDArray[np.bool_], bins: int = BINS
) -> Reliability:
    """Measure probabilities against citations, both of shape (papers,); all values are 0 without a paper.

    The expected calibration error is the mean, over bins with equally many papers, of the difference between the mean
    probability and the share of cited papers.

    Source: Naeini et al., AAAI 2015, https://doi.org/10.1609/aaai.v29i1.9602.
    """
    if not len(cited):
        return Reliability(0, 0.0, 0.0, 0.0, 0.0)
    parts = np.array_split(np.argsort(probabilities, kind="stable"), min(bins, len(cited)))
    gaps = [abs(probabilities[part].mean() - cited[part].mean()) * len(part) for part in parts]
    return Reliability(
        papers=len(cited),
        cited=float(cited.mean()),
        mean=float(probabilities.mean()),
        ece=float(sum(gaps)) / len(cited),
        brier=float(((probabilities - cited) ** 2).mean()),
    )
