from __future__ import annotations

import pytest

from trainer.models.inception_v3_architecture import MINIMUM_IMAGE_SIZE, MODULES, STEM, grid_after


@pytest.mark.parametrize(
    ("image_size", "grids"),
    [
        (299, (35, 17, 8)),  # the grids of the paper's table 1
        (MINIMUM_IMAGE_SIZE, (7, 3, 1)),
        (MINIMUM_IMAGE_SIZE - 1, (6, 2, 0)),
    ],
)
def test_grids_are_those_of_the_paper_and_end_below_the_least_size(
    image_size: int, grids: tuple[int, int, int]
) -> None:
    first = grid_after(STEM, image_size)
    second = grid_after(MODULES["Mixed_6a"][0], first)
    third = grid_after(MODULES["Mixed_7a"][0], second)
    assert (first, second, third) == grids


@pytest.mark.parametrize("name", list(MODULES))
def test_branches_of_a_module_leave_the_same_grid(name: str) -> None:
    assert len({grid_after(branch, 17) for branch in MODULES[name]}) == 1
