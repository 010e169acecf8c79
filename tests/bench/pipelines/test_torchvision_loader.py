from itertools import islice

import pytest

from bench.pipelines.torchvision_loader import EndlessSampler

pytest.importorskip("torch", reason="a peer library that is not installed")


def test_epochs_follow_one_another_each_with_every_image():
    indices = list(islice(EndlessSampler(5), 15))
    for epoch in (indices[:5], indices[5:10], indices[10:]):
        assert sorted(epoch) == [0, 1, 2, 3, 4]
