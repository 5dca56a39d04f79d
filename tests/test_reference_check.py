"""Codes that cannot be a clip's are refused before they are stored."""

import numpy as np
import pytest
from counting_engine import CODEC, HOP

from studio.errors import DegenerateCodes
from studio.reference_check import check_codes

GOOD = np.random.default_rng(0).integers(0, 1024, (4, 5)).astype(np.int16)


def test_good_codes_pass() -> None:
    check_codes(GOOD, 5 * HOP, CODEC)
    check_codes(GOOD[:, :1], HOP, CODEC)


@pytest.mark.parametrize(
    ("codes", "num_samples", "reason"),
    [
        (GOOD.T, 5 * HOP, "shape"),
        (GOOD[:3], 5 * HOP, "shape"),
        (GOOD, 6 * HOP, "shape"),
        (GOOD, 4 * HOP, "shape"),
        (GOOD[:, :0], 0, "shape"),
        (GOOD - 1024, 5 * HOP, "values"),
        (GOOD + 1024, 5 * HOP, "values"),
        (np.repeat(GOOD[:, :1], 5, axis=1), 5 * HOP, "every frame"),
    ],
)
def test_degenerate_codes_are_refused_with_the_reason(codes: np.ndarray, num_samples: int, reason: str) -> None:
    with pytest.raises(DegenerateCodes, match=reason):
        check_codes(codes, num_samples, CODEC)
