import numpy as np
import pytest

from bench.pipelines.ffcv_loader import endless_enough


@pytest.mark.parametrize("images, times", [(1024, 98), (60_000, 2), (100_000, 1), (100_001, 1)])
def test_epoch_is_long_and_holds_every_image_as_often(images, times):
    assert (np.bincount(endless_enough(images)) == [times] * images).all()
