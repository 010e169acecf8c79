"""The flags of the input pipeline, for every command that reads one, and the configuration that they make."""

from __future__ import annotations

from typing import Any

import click

from bench.option_types import NON_EMPTY
from pipeline.config import MAX_IMAGE_PIXELS, PipelineConfig

PASSED_ON = (
    "batch_shuffle_buffer_bytes", "batch_shuffle_buffer_size", "cache", "cb_distortion_range",
    "cr_distortion_range", "cycle_length", "deterministic", "fast_mode", "file_pattern",
    "half_pixel_centers", "image_size", "layout", "max_image_pixels", "max_intra_op_parallelism",
    "num_parallel_calls", "on_bad_record", "parse_after_batch", "prefetch_batches", "prefetch_examples",
    "private_threads", "read_buffer_bytes", "recover_truncated", "shuffle_buffer_bytes",
    "shuffle_buffer_size", "use_annotated_boxes", "use_data", "vgg_reference_scaling",
)  # fmt: skip
"""Options that have the name and the meaning of a field of the configuration."""

PARITY_DECIDES = ("preprocess", "image_dtype", "fancy_upscaling", "half_pixel_centers", "fast_mode")
"""Options that have no say beside `--parity`."""


def pipeline_config(given: dict[str, Any], **fixed: Any) -> PipelineConfig:
    """Takes the pipeline's options out of those of a command and returns the configuration.

    Args:
        given: options by name; those of `pipeline_options` are taken out, but for `data_dir`, `split`,
            `batch_size` and `precision`, which the commands treat in their own way.
        fixed: further fields of the configuration.

    Raises:
        OptionError: an option has a value that is not allowed.
    """
    parity = given.pop("parity")
    preprocess, dtype = given.pop("preprocess"), given.pop("image_dtype")
    fancy_upscaling = given.pop("fancy_upscaling")
    if parity:
        preprocess, dtype, fancy_upscaling = "inception", "auto", True
    if dtype == "auto":
        dtype = "uint8" if preprocess == "fused" else given["precision"]
    return PipelineConfig(
        preprocess=preprocess,
        dtype=dtype,
        fancy_upscaling=fancy_upscaling,
        use_fast_color_distort=given.pop("fast_color_distort"),
        dct_method=given.pop("dct_method") or "",
        cache_dir=given.pop("cache_dir") or "",
        **{name: given.pop(name) for name in PASSED_ON},
        **fixed,
    )


def pipeline_options(function: Any) -> Any:
    """Adds the options of the input pipeline to a command."""
    positive = click.IntRange(min=1)
    natural = click.IntRange(min=0)
    options = [
        click.option("--data-dir", type=NON_EMPTY, help="Folder of the shards [default: generated ones]."),
        click.option("--split", type=NON_EMPTY, default="train", show_default=True, help="Name prefix."),
        click.option("--file-pattern", type=NON_EMPTY, help="Shell pattern for shard names in the folder."),
        click.option("--batch-size", type=positive, help="Examples a batch [default: 128 or, real, 32]."),
        click.option("--image-size", type=positive, default=299, show_default=True, help="Pixels a side."),
        click.option(
            "--precision", type=click.Choice(["float32", "bfloat16"]), default="float32", show_default=True,
            help="Type of real training's activations, and of float images that go to the device.",
        ),
        click.option(
            "--shuffle-buffer-size", type=natural, default=1000, show_default=True,
            help="Examples in the shuffle buffer, which stands after an echo of examples. 0 leaves it out.",
        ),
        click.option(
            "--shuffle-buffer-bytes", type=positive,
            help="Memory of that buffer, in place of its size; repeats of one example share it.",
        ),
        click.option(
            "--batch-shuffle-buffer-size", type=natural, default=0, show_default=True,
            help="Batches in a shuffle buffer after an echo of batches.",
        ),
        click.option(
            "--batch-shuffle-buffer-bytes", type=positive, help="Memory of that buffer, in place of size.",
        ),
        click.option(
            "--cycle-length", type=positive, default=8, show_default=True, help="Shards read at a time."
        ),
        click.option(
            "--read-buffer-bytes", type=natural, default=8 * 1024 * 1024, show_default=True,
            help="Read buffer of each shard.",
        ),
        click.option(
            "--num-parallel-calls", type=positive,
            help="Parallel decode and augment calls [default: tf.data chooses].",
        ),
        click.option(
            "--prefetch-examples", type=natural, default=64, show_default=True,
            help="Examples held ready before the batch and before an echo of examples.",
        ),
        click.option(
            "--prefetch-batches", type=natural, default=2, show_default=True,
            help="Batches held ready for the device.",
        ),
        click.option(
            "--cache", type=click.Choice(["none", "records", "images"]), default="none", show_default=True,
            help="Keep the compressed records, or the decoded images, after the first pass.",
        ),
        click.option("--cache-dir", type=NON_EMPTY, help="Folder of the cache's files [default: in memory]."),
        click.option("--private-threads", type=positive, help="Threads of a pool for the pipeline alone."),
        click.option("--max-intra-op-parallelism", type=positive, help="Threads within one operation."),
        click.option("--deterministic", is_flag=True, help="Reproducible order (see --seed)."),
        click.option(
            "--use-data", type=click.Choice(["real", "fake"]), default="real", show_default=True,
            help="Fake: one random image for ever, for the rate without reading and decoding.",
        ),
        click.option(
            "--preprocess", type=click.Choice(["fused", "inception", "vgg"]), default="fused",
            show_default=True,
            help="Fused decodes only the crops, inception follows the reference step by step with the same "
            "images, vgg is the reference's other preprocessing.",
        ),
        click.option(
            "--parity", is_flag=True, help="The reference to the letter: inception, float images."
        ),
        click.option(
            "--image-dtype", type=click.Choice(["auto", "uint8", "float32", "bfloat16"]), default="auto",
            show_default=True,
            help="Type of the images that go to the device; auto is uint8 with fused, else --precision.",
        ),
        click.option(
            "--layout", type=click.Choice(["nhwc", "hwcn"]), default="nhwc", show_default=True,
            help="Order of the axes that go to the device (reference: transpose_enabled).",
        ),
        click.option("--use-annotated-boxes", is_flag=True, help="Crop around the records' boxes."),
        click.option(
            "--cb-distortion-range", type=click.FloatRange(min=0), default=0.1, show_default=True,
            help="Largest shift of blue chroma.",
        ),
        click.option(
            "--cr-distortion-range", type=click.FloatRange(min=0), default=0.1, show_default=True,
            help="Largest shift of red chroma.",
        ),
        click.option(
            "--fast-color-distort/--no-fast-color-distort", default=True, show_default=True,
            help="Shift brightness and chroma, or change brightness and saturation.",
        ),
        click.option(
            "--fast-mode/--full-mode", default=True, show_default=True,
            help="Bilinear resizes, no hue and contrast, as the reference's trainer; or the method, and the "
            "order of four distortions, drawn at random.",
        ),
        click.option(
            "--half-pixel-centers", is_flag=True, help="Resize on TensorFlow 2's grid, not the reference's.",
        ),
        click.option(
            "--vgg-reference-scaling", is_flag=True, help="Reproduce the reference's double scaling in vgg.",
        ),
        click.option(
            "--dct-method", type=click.Choice(["INTEGER_FAST", "INTEGER_ACCURATE"]),
            help="Of the JPEG decoder [default: TensorFlow's, the fast one].",
        ),
        click.option(
            "--fancy-upscaling/--plain-upscaling", default=None,
            help="Interpolate the chroma of JPEGs [default: only of whole images].",
        ),
        click.option(
            "--parse-after-batch/--parse-one-by-one", default=None,
            help="Parse records in blocks [default: where crops are decoded].",
        ),
        click.option(
            "--max-image-pixels", type=positive, default=MAX_IMAGE_PIXELS, show_default=True,
            help="Images that claim more in their header are bad.",
        ),
        click.option(
            "--recover-truncated", is_flag=True, help="Use what a truncated image still holds."
        ),
        click.option(
            "--on-bad-record", type=click.Choice(["fail", "skip"]), default="fail", show_default=True,
            help="What to do with a record that cannot be read or decoded; skipped ones are counted.",
        ),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function
