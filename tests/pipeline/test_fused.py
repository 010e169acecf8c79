"""The fused stage: the images of the step by step preprocessing, decoded and resized in fewer passes."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from pipeline import InputPipeline, PipelineConfig, schema
from pipeline.image_decoding import DecodeOptions


def deliver(folder: str, is_training: bool = True, **options) -> dict[str, np.ndarray]:
    """Returns all features of one epoch, in the order of the examples' numbers; without a shuffle."""
    defaults = {
        "batch_size": 5,
        "image_size": 40,
        "epochs": 1,
        "seed": 7,
        "keep_tags": True,
        "drop_remainder": False,
        "deterministic": True,
        "shuffle_buffer_size": 0,
    }
    pipeline = InputPipeline(
        PipelineConfig(folder, eval_split="train", **{**defaults, **options}), is_training
    )
    batches = list(pipeline().as_numpy_iterator())
    columns = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    order = np.lexsort((columns["repeat_index"], columns["example_id"]))
    return {name: column[order] for name, column in columns.items()}


def finished(columns: dict[str, np.ndarray]) -> np.ndarray:
    """Returns images in [-1, 1]: what the device makes of uint8 and the shift of colours, by NumPy."""
    images = columns["image"].astype(np.float64)
    if columns["image"].dtype != np.uint8:
        return images
    shift = columns.get("color_shift", np.zeros((len(images), 3)))
    return np.clip(images / 127.5 - 1 + 2 * shift[:, np.newaxis, np.newaxis], -1, 1)


def grey_levels(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> np.ndarray:
    """Returns the mean absolute difference of each pair of images, in grey levels of 0 to 255."""
    np.testing.assert_array_equal(one["example_id"], other["example_id"])
    return np.abs(finished(one) - finished(other)).mean(axis=(1, 2, 3)) * 127.5


@pytest.fixture(scope="module")
def folder(tmp_path_factory, make_shards) -> str:
    # As large as photographs: in small ones the chroma changes too fast to leave its interpolation out.
    return make_shards(tmp_path_factory.mktemp("fused") / "data", records=18, shards=2, height=270, width=360)


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("options", [{}, {"use_fast_color_distort": False}, {"half_pixel_centers": True}])
def test_float_images_are_those_of_the_reference_to_rounding(folder, options, is_training):
    # But for the rim of a crop, whose chroma is interpolated without its neighbours outside.
    parity = deliver(folder, is_training, preprocess="inception", **options)
    fused = deliver(folder, is_training, fancy_upscaling=True, **options)
    assert grey_levels(fused, parity).max() < 0.1
    np.testing.assert_array_equal(fused["label"], parity["label"])


@pytest.mark.parametrize("is_training", [True, False])
def test_uint8_images_are_within_a_grey_level_of_the_reference_on_average(folder, is_training):
    parity = deliver(folder, is_training, preprocess="inception")
    # As it is by default: the chroma planes are not interpolated either.
    fused = deliver(folder, is_training, dtype="uint8")
    assert fused["image"].dtype == np.uint8
    assert ("color_shift" in fused) == is_training
    assert grey_levels(fused, parity).max() < 1.0
    rounded = deliver(folder, is_training, dtype="uint8", fancy_upscaling=True)
    assert grey_levels(rounded, parity).max() < 0.5


def test_images_of_an_echo_after_decode_are_those_of_the_crop_decode(folder):
    options = {"dtype": "uint8", "fancy_upscaling": True}
    fused = deliver(folder, **options)
    echoed = deliver(folder, echo_factor=2, insert_point="after_decode", **options)
    fresh = {name: column[echoed["repeat_index"] == 0] for name, column in echoed.items()}
    assert grey_levels(fresh, fused).max() < 0.1
    repeats = {name: column[echoed["repeat_index"] == 1] for name, column in echoed.items()}
    assert grey_levels(repeats, fused).min() > 1  # another crop, another colour


def test_the_full_distortion_without_fast_mode_stays_on_the_host(folder):
    options = {
        "use_fast_color_distort": False,
        "fast_mode": False,
        "deterministic": True,
        "fancy_upscaling": True,
    }
    parity = deliver(folder, preprocess="inception", **options)
    fused = deliver(folder, **options)
    as_uint8 = deliver(folder, dtype="uint8", **options)
    assert grey_levels(fused, parity).max() < 0.2
    assert "color_shift" not in as_uint8
    assert grey_levels(as_uint8, fused).max() < 0.5


def test_boxes_are_cropped_around_in_blocks_too(tmp_path, make_shards):
    box = {"boxes": [schema.Box(0.0, 0.0, 0.25, 0.25)]}
    folder = make_shards(tmp_path / "boxes", records=20, height=80, width=80, **box)
    options = {"use_annotated_boxes": True, "fancy_upscaling": True}
    parity = deliver(folder, preprocess="inception", **options)
    assert grey_levels(deliver(folder, **options), parity).max() < 0.2


def test_parsing_one_by_one_gives_the_same(folder):
    together = deliver(folder, parse_after_batch=True)
    one_by_one = deliver(folder, parse_after_batch=False)
    for name, column in together.items():
        np.testing.assert_array_equal(column, one_by_one[name])


def test_chroma_of_crops_is_interpolated_only_if_asked_for(folder):
    def decoding(**options) -> DecodeOptions:
        stages = InputPipeline(PipelineConfig(folder, batch_size=4, **options)).stages()
        return next(stage.decoding for stage in stages.stages if hasattr(stage, "decoding"))

    assert not decoding().fancy_upscaling
    assert decoding(fancy_upscaling=True).fancy_upscaling
    assert decoding(echo_factor=2, insert_point="after_decode").fancy_upscaling
    assert decoding(preprocess="inception").fancy_upscaling


def test_shapes_are_static_in_blocks(folder):
    spec = InputPipeline(PipelineConfig(folder, batch_size=18, image_size=40, dtype="uint8"))().element_spec
    assert spec[0]["image"].shape.as_list() == [18, 40, 40, 3]
    assert spec[0]["image"].dtype == tf.uint8
    assert spec[0]["color_shift"].shape.as_list() == [18, 3]
