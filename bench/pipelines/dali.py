"""NVIDIA DALI on the CPU."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.pipelines.jpeg_records import AREA_RANGE, ASPECT_RATIO_RANGE
from bench.pipelines.variants import Task
from pipeline import tfrecord
from pipeline.data_source import open_data_source


def open_batches(task: Task) -> Iterator[int]:
    """Yields the number of images of each batch, for ever."""
    import nvidia.dali.tfrecord as features
    from nvidia.dali import fn, pipeline_def, types

    source = open_data_source(task.data_dir, task.split)
    with tempfile.TemporaryDirectory() as folder:
        indices = [_write_index(shard.path, Path(folder) / f"{shard.name}.idx") for shard in source.shards]

        @pipeline_def  # type: ignore[untyped-decorator]
        def feed() -> Any:
            records = fn.readers.tfrecord(
                path=[shard.path for shard in source.shards],
                index_path=indices,
                features={
                    "image/encoded": features.FixedLenFeature((), features.string, ""),
                    "image/class/label": features.FixedLenFeature([1], features.int64, -1),
                },
                random_shuffle=True,
                initial_fill=1000,
            )
            images = fn.decoders.image_random_crop(
                records["image/encoded"],
                device="cpu",
                output_type=types.RGB,
                random_aspect_ratio=list(ASPECT_RATIO_RANGE),
                random_area=list(AREA_RANGE),
                num_attempts=100,
            )
            images = fn.resize(
                images,
                resize_x=task.image_size,
                resize_y=task.image_size,
                interp_type=types.INTERP_LINEAR,
                antialias=False,
            )
            images = fn.flip(images, horizontal=fn.random.coin_flip(probability=0.5))
            return images, records["image/class/label"]

        pipe = feed(
            batch_size=task.batch_size, num_threads=task.cores, device_id=None, prefetch_queue_depth=2
        )
        pipe.build()
        while True:
            images, _ = pipe.run()
            yield len(images.as_array())


def _write_index(shard: str, path: Path) -> str:
    """Writes DALI's index of a shard: offset and length of each record with its frame."""
    lines = [f"{span.offset_bytes} {span.length_bytes + 16}\n" for span in tfrecord.walk(shard)]
    path.write_text("".join(lines), encoding="ascii")
    return str(path)
