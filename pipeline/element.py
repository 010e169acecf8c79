"""The features of the dictionaries that flow through the pipeline, by the names used everywhere."""

from __future__ import annotations

SERIALIZED = "serialized"
"""string []: the record as it was read; from storage to decode."""

IMAGE = "image"
"""From decode on: uint8 [height, width, 3], then the augmented image, then [batch, height, width, 3]."""

LABEL = "label"
"""int32 [] or [batch]: class number; 0 is the background."""

COLOR_SHIFT = "color_shift"
"""float32 [3] or [batch, 3]: what the device adds to red, green and blue, on a scale of 0 to 1, where colour
and scaling are left to it: in training, with uint8 images."""

BOXES = "boxes"
"""float32 [boxes, 4]: ymin, xmin, ymax, xmax as fractions; between decode and augment, where asked for."""

EXAMPLE_ID = "example_id"
"""int64 [] or [batch]: running number of the read, unique for every fresh example, epoch after epoch."""

RECORD_ID = "record_id"
"""int64 [] or [batch]: shard number x 2**32 + position in the shard; the same in every epoch."""

REPEAT_INDEX = "repeat_index"
"""int64 [] or [batch]: 0 for the fresh use of an example, 1 and up for its repeats."""

DEVICE_USES = "device_uses"
"""int64 []: on how many consecutive steps the device uses the batch; for an echo after the transfer."""

READY_SECONDS = "upstream_ready_seconds"
"""float64 [] or [batch]: when the fresh element left the upstream side, seconds since the Unix epoch."""

RECORD_ID_SHIFT = 32
"""Bits of a record id that hold the position in the shard."""


def split_record_id(record_id: int) -> tuple[int, int]:
    """Returns the shard number and the position in the shard that a record id stands for."""
    return record_id >> RECORD_ID_SHIFT, record_id & ((1 << RECORD_ID_SHIFT) - 1)
