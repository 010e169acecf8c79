"""Which stages stand between storage and batch: fused where the echo allows it, else decode and augment."""

from __future__ import annotations

from echoing.insertion_point import InsertionPoint
from pipeline.augment import Augment
from pipeline.config import PipelineConfig
from pipeline.decode import Decode
from pipeline.fused import MAX_BLOCK_EXAMPLES, AugmentDecoded, DecodeAndAugment
from pipeline.image_decoding import DecodeOptions
from pipeline.preprocessing.fast import FastPreprocessing
from pipeline.preprocessing.selection import select_preprocessing
from pipeline.skipping import SkipCounter
from pipeline.stage import Stage


def preprocessing_stages(
    config: PipelineConfig, is_training: bool, seed: int, skip_counter: SkipCounter | None, block: int
) -> tuple[Stage, ...]:
    """Returns the stages in order.

    Args:
        config: the pipeline's options.
        is_training: training or evaluation.
        seed: key of the draws.
        skip_counter: counts bad records that are skipped; None fails on them.
        block: from `block_examples`, or 1.
    """
    calls = config.num_parallel_calls
    if config.decodes_crops:
        return (
            DecodeAndAugment(
                _fast(config, is_training, seed),
                decoding_options(config),
                config.use_annotated_boxes,
                block,
                config.parse_after_batch is not False,
                calls,
                skip_counter,
            ),
        )
    decode = () if config.cache == "images" else (decode_stage(config, skip_counter),)
    if config.preprocess == "fused":
        return *decode, AugmentDecoded(_fast(config, is_training, seed), calls)
    return *decode, Augment(select_preprocessing(config), is_training, seed, calls, config.dtype)


def decode_stage(config: PipelineConfig, skip_counter: SkipCounter | None) -> Decode:
    """Returns the stage that decodes whole images.

    Args:
        config: the pipeline's options.
        skip_counter: as in `preprocessing_stages`.
    """
    return Decode(
        config.use_annotated_boxes, config.num_parallel_calls, skip_counter, decoding_options(config)
    )


def block_examples(config: PipelineConfig, is_training: bool, batch_size: int) -> int:
    """Returns how many examples the stages before the batch may hand on together; 1 for one by one.

    Not where single examples are wanted: by an echo right before the batch, or to skip bad ones.
    """
    one_by_one = (
        not config.decodes_crops
        or config.use_data == "fake"
        or config.on_bad_record == "skip"
        or (
            is_training
            and config.echoes_examples
            and config.parsed_insert_point is InsertionPoint.AFTER_AUGMENT
        )
    )
    if one_by_one:
        return 1
    # The largest that a batch is a whole number of, so that batches are put together in parallel.
    divisors = (size for size in range(MAX_BLOCK_EXAMPLES, 0, -1) if batch_size % size == 0)
    return next(divisors)


def _fast(config: PipelineConfig, is_training: bool, seed: int) -> FastPreprocessing:
    return FastPreprocessing(
        image_size=config.image_size,
        is_training=is_training,
        seed=seed,
        uint8=config.dtype == "uint8",
        cb_distortion_range=config.cb_distortion_range,
        cr_distortion_range=config.cr_distortion_range,
        use_fast_color_distort=config.use_fast_color_distort,
        fast_mode=config.fast_mode,
        half_pixel_centers=config.half_pixel_centers,
    )


def decoding_options(config: PipelineConfig) -> DecodeOptions:
    """Returns how the configuration has images decoded."""
    fancy = config.fancy_upscaling
    return DecodeOptions(
        dct_method=config.dct_method,
        fancy_upscaling=not config.decodes_crops if fancy is None else fancy,
        max_pixels=config.max_image_pixels,
        recover_truncated=config.recover_truncated,
    )
