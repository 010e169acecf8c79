"""pipebench's own input pipeline, as `pipebench run` composes it without echo."""

from __future__ import annotations

from collections.abc import Iterator

from bench.pipelines.selection import KEEP_FREED_MEMORY
from bench.pipelines.tensorflow_reference import batch_sizes
from bench.pipelines.variants import Task
from pipeline.allocator import keep_freed_memory
from pipeline.config import PipelineConfig
from pipeline.input_pipeline import InputPipeline


def open_our_batches(task: Task, dtype: str) -> Iterator[int]:
    """Yields the number of images of each batch, for ever.

    Args:
        task: what to read.
        dtype: `uint8` or `float32`.
    """
    settings = dict(task.settings)
    if settings.pop(KEEP_FREED_MEMORY, True):
        # As the command does when it starts.
        keep_freed_memory()
    config = PipelineConfig(
        task.data_dir,
        train_split=task.split,
        batch_size=task.batch_size,
        image_size=task.image_size,
        dtype=dtype,
        **settings,
    )
    return batch_sizes(InputPipeline(config, is_training=True)())
