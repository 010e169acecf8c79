"""NVIDIA DALI on the CPU: its TFRecord reader, fused decode of a random crop, resize and flip; uint8 out."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.pipelines.jpeg_records import AREA_RANGE, ASPECT_RATIO_RANGE, ENCODED, LABEL, plain_shards
from bench.pipelines.variants import Task
from pipeline import tfrecord

FRAME_BYTES = 16
"""Of a record beside its payload: length and two checksums."""


def open_batches(task: Task) -> Iterator[int]:
    """Yields the number of images of each batch, for ever."""
    import nvidia.dali.tfrecord as features
    from nvidia.dali import fn, pipeline_def, types

    shards = plain_shards(task.data_dir, task.split)
    with tempfile.TemporaryDirectory() as folder:
        indices = [write_index(shard.path, Path(folder) / f"{shard.name}.idx") for shard in shards]

        @pipeline_def
        def feed() -> Any:
            records = fn.readers.tfrecord(
                path=[shard.path for shard in shards],
                index_path=indices,
                features={
                    ENCODED: features.FixedLenFeature((), features.string, ""),
                    LABEL: features.FixedLenFeature([1], features.int64, -1),
                },
                random_shuffle=True,
                initial_fill=1000,
            )
            images = fn.decoders.image_random_crop(
                records[ENCODED],
                device="cpu",
                output_type=types.RGB,
                random_aspect_ratio=list(ASPECT_RATIO_RANGE),
                random_area=list(AREA_RANGE),
                num_attempts=100,
                # As TensorFlow does it by default.
                use_fast_idct=True,
            )
            images = fn.resize(
                images,
                resize_x=task.image_size,
                resize_y=task.image_size,
                interp_type=types.INTERP_LINEAR,
                antialias=False,
            )
            images = fn.flip(images, horizontal=fn.random.coin_flip(probability=0.5))
            return images, records[LABEL]

        pipe = feed(
            batch_size=task.batch_size, num_threads=task.cores, device_id=None, prefetch_queue_depth=2
        )
        pipe.build()
        while True:
            images, _ = pipe.run()
            # One tensor without a copy: all images have one size.
            yield int(images.as_tensor().shape()[0])


def write_index(shard: str, path: Path) -> str:
    """Writes DALI's index of a shard, as its `tfrecord2idx` does: offset and length of each framed record."""
    lines = [f"{span.offset_bytes} {span.length_bytes + FRAME_BYTES}\n" for span in tfrecord.walk(shard)]
    path.write_text("".join(lines), encoding="ascii")
    return str(path)
