"""From the flags of a command to the configuration of the pipeline."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from bench.pipeline_flags import pipeline_config, pipeline_options
from pipeline.config import PipelineConfig


def configure(*flags: str) -> PipelineConfig:
    found = []

    @click.command()
    @pipeline_options
    def command(**given):
        fixed = {"data_dir": given.pop("data_dir") or "made", "batch_size": given.pop("batch_size") or 8}
        found.append(pipeline_config(given, train_split=given.pop("split"), **fixed))
        assert list(given) == ["precision"]  # the command's own

    result = CliRunner().invoke(command, flags, standalone_mode=False, catch_exceptions=False)
    assert result.exit_code == 0
    return found[0]


def test_crops_are_decoded_and_uint8_travels_by_default():
    config = configure()
    assert (config.preprocess, config.dtype, config.fancy_upscaling) == ("fused", "uint8", None)
    # Everything else is the configuration's own default, which is the reference's.
    assert config == PipelineConfig("made", batch_size=8, dtype="uint8")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--parity"], ("inception", "float32", True)),
        (["--parity", "--precision", "bfloat16"], ("inception", "bfloat16", True)),
        (["--preprocess", "inception", "--image-dtype", "uint8"], ("inception", "uint8", None)),
        (["--preprocess", "vgg"], ("vgg", "float32", None)),
        (["--image-dtype", "float32", "--plain-upscaling"], ("fused", "float32", False)),
        (["--precision", "bfloat16"], ("fused", "uint8", None)),
    ],
)
def test_type_and_preprocessing_go_together(flags, expected):
    config = configure(*flags)
    assert (config.preprocess, config.dtype, config.fancy_upscaling) == expected


def test_every_other_flag_reaches_its_field():
    flags = (
        "--full-mode --half-pixel-centers --no-fast-color-distort --use-annotated-boxes --layout hwcn "
        "--dct-method INTEGER_ACCURATE --max-image-pixels 99 --recover-truncated --parse-one-by-one "
        "--private-threads 3 --max-intra-op-parallelism 1 --cache images --cache-dir kept --use-data fake"
    )
    config = configure(*flags.split())
    assert not config.fast_mode
    assert config.half_pixel_centers
    assert not config.use_fast_color_distort
    assert config.use_annotated_boxes
    assert (config.layout, config.dct_method, config.max_image_pixels) == ("hwcn", "INTEGER_ACCURATE", 99)
    assert config.recover_truncated
    assert config.parse_after_batch is False
    assert (config.private_threads, config.max_intra_op_parallelism) == (3, 1)
    assert (config.cache, config.cache_dir, config.use_data) == ("images", "kept", "fake")
