import numpy as np
import pytest

from bench.pipelines.grain_loader import random_window


def test_windows_lie_inside_and_cover_the_area_and_ratio_of_the_reference():
    generator = np.random.default_rng(0)
    windows = np.array([random_window(400, 600, generator) for _ in range(500)])
    tops, lefts, heights, widths = windows.T
    assert (tops >= 0).all() and (lefts >= 0).all()
    assert (tops + heights <= 400).all() and (lefts + widths <= 600).all()
    shares, ratios = heights * widths / 240_000, widths / heights
    assert 0.045 < shares.min() < 0.1 and 0.8 < shares.max() <= 1.0
    assert 0.74 < ratios.min() < 0.8 and 1.27 < ratios.max() < 1.35


@pytest.mark.parametrize("height, width", [(1, 1000), (1000, 1)])
def test_image_that_holds_no_such_window_is_taken_whole(height, width):
    assert random_window(height, width, np.random.default_rng(0)) == (0, 0, height, width)
