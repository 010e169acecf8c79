import numpy as np
import pytest

from pipeline.datasets.shapes import FILLS, MAX_CLASSES, SHAPES, draw_shape, signature


def test_all_signatures_and_their_names_differ() -> None:
    signatures = [signature(index) for index in range(MAX_CLASSES)]
    assert MAX_CLASSES == 1080
    assert len(set(signatures)) == 1080
    assert len({what.name for what in signatures}) == 1080


def test_hue_carries_no_information_up_to_120_classes() -> None:
    assert {signature(index).hue for index in range(120)} == {0}
    assert signature(120).hue == 1


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [4, 5, 9, 64])
def test_every_shape_covers_part_of_its_window(shape: str, size: int) -> None:
    for angle in (-0.25, 0.0, 0.25):
        coverage, _ = draw_shape(shape, "plain", size, angle, phase=0.0)
        assert coverage.shape == (size, size)
        assert coverage.min() >= 0 and coverage.max() <= 1
        assert 0.05 < (coverage > 0.5).mean() < 0.95


def test_shapes_are_not_alike() -> None:
    masks = [draw_shape(shape, "plain", 64, 0.0, 0.0)[0] for shape in SHAPES]
    for first in range(len(masks)):
        for second in range(first):
            assert np.abs(masks[first] - masks[second]).mean() > 0.05, (SHAPES[first], SHAPES[second])


@pytest.mark.parametrize("fill", FILLS)
def test_plain_has_one_colour_and_every_other_fill_two(fill: str) -> None:
    _, second = draw_shape("square", fill, 64, 0.1, phase=1.0)
    share = float((second > 0.5).mean())
    assert share == 0 if fill == "plain" else 0.1 < share < 0.9


def test_bars_run_across_and_stripes_down() -> None:
    bars = draw_shape("square", "barred", 64, 0.0, 0.5)[1]
    stripes = draw_shape("square", "striped", 64, 0.0, 0.5)[1]
    assert np.allclose(bars, bars[:, :1])
    assert np.allclose(stripes, stripes[:1, :])
