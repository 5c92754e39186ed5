"""The reliability of probabilities."""

import numpy as np
import pytest

from citerec.evaluate.calibration import Reliability, reliability


def test_reliability_is_the_gap_between_probability_and_share() -> None:
    # Two bins of two papers: .1 and .3 beside no citation, .6 and .8 beside two.
    found = reliability(
        np.array([0.8, 0.1, 0.6, 0.3]), np.array([True, False, True, False]), bins=2
    )

    assert (found.papers, found.cited, found.mean) == (4, 0.5, pytest.approx(0.45))
    assert found.ece == pytest.approx((0.2 + 0.3) / 2)
    assert found.brier == pytest.approx((0.2**2 + 0.1**2 + 0.4**2 + 0.3**2) / 4)
    assert reliability(np.array([]), np.array([], np.bool_)) == Reliability(0, 0, 0, 0, 0)
