"""The data of an evaluation: every example once, or the first so many, shared by the hosts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from pipeline.config import PipelineConfig
from pipeline.data_source import DataSource
from pipeline.element import IMAGE
from pipeline.image_decoding import DecodeOptions, decode_image
from pipeline.input_pipeline import InputPipeline
from pipeline.preprocessing.selection import select_preprocessing
from pipeline.preprocessing.value_range import to_dtype
from trainer.placement import Placement


def host_context(placement: Placement) -> Any:
    """Returns which host this is for an `InputPipeline`; None for the only one.

    The pipeline divides the batch by what it is told are the replicas in sync: here by the hosts, because
    each host splits its batch over its replicas itself.
    """
    if placement.worker_count == 1:
        return None
    return tf.distribute.InputContext(
        num_input_pipelines=placement.worker_count,
        input_pipeline_id=placement.worker_index,
        num_replicas_in_sync=placement.worker_count,
    )


def evaluation_dataset(
    config: PipelineConfig, source: DataSource, placement: Placement, batch_size: int, total: int = 0
) -> Any:
    """Returns this host's share of the evaluation, a `tf.data.Dataset` that ends.

    Args:
        config: the pipeline's options.
        source: the evaluation's shards.
        placement: the hosts.
        batch_size: examples of a batch over all hosts.
        total: evaluate the first so many examples; 0 for all.
    """
    pipeline = InputPipeline(config, is_training=False, source=source)
    dataset = pipeline(batch_size, host_context(placement))
    if not total:
        return dataset
    workers = placement.worker_count
    share = total // workers + (placement.worker_index < total % workers)
    return first_examples(dataset, share, batch_size // workers, config.layout)


def first_examples(dataset: Any, count: int, batch_size: int, layout: str = "nhwc") -> Any:
    """Returns the first examples of a dataset of batches; the last batch is cut.

    Args:
        dataset: of dictionaries, with batches of `batch_size` examples but for the last.
        count: how many examples.
        batch_size: examples of its batches.
        layout: of the images, `nhwc`, or `hwcn` with the batch last.
    """

    def cut(number: Any, batch: dict[str, Any]) -> dict[str, Any]:
        wanted = count - number * batch_size
        return {
            name: value[..., :wanted] if name == IMAGE and layout == "hwcn" else value[:wanted]
            for name, value in batch.items()
        }

    return dataset.take(-(-count // batch_size)).enumerate().map(cut)


def serving_preprocessing(config: PipelineConfig) -> Callable[[Any], Any]:
    """Returns what turns an encoded image, string [], into one that the model takes, as in evaluation.

    Args:
        config: the options of the evaluation's pipeline.
    """
    preprocessing = select_preprocessing(config)
    decoding = DecodeOptions(dct_method=config.dct_method, max_pixels=config.max_image_pixels)

    def prepare(encoded: Any) -> Any:
        return to_dtype(preprocessing.for_evaluation(decode_image(encoded, decoding)), config.dtype)

    return prepare
