"""From a configuration to its preprocessing."""

from __future__ import annotations

import pytest

from pipeline.config import PipelineConfig
from pipeline.preprocessing.inception import Inception
from pipeline.preprocessing.selection import select_preprocessing
from pipeline.preprocessing.vgg import Vgg


@pytest.mark.parametrize("preprocess", ["inception", "fused"])
def test_every_option_of_inception_is_passed_on(preprocess):
    config = PipelineConfig(
        data_dir="data",
        preprocess=preprocess,
        image_size=75,
        cb_distortion_range=0.2,
        cr_distortion_range=0.3,
        use_fast_color_distort=False,
        fast_mode=False,
        half_pixel_centers=True,
    )
    assert select_preprocessing(config) == Inception(75, 0.2, 0.3, False, False, True)


def test_every_option_of_vgg_is_passed_on():
    config = PipelineConfig(
        data_dir="data", preprocess="vgg", image_size=75, vgg_reference_scaling=True, half_pixel_centers=True
    )
    assert select_preprocessing(config) == Vgg(75, True, True)


def test_the_defaults_are_the_references():
    assert select_preprocessing(PipelineConfig(data_dir="data")) == Inception(
        299, 0.1, 0.1, True, True, False
    )
