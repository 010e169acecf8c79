"""The decode stage: from records to uint8 images with labels."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from pipeline.element import BOXES, IMAGE, LABEL, REPEAT_INDEX, SERIALIZED
from pipeline.image_decoding import DecodeOptions, decode_image
from pipeline.record_parsing import parse_record
from pipeline.skipping import SkipCounter


@dataclass(frozen=True)
class Decode:
    """Parses each record and decodes its image.

    Length and order stay as they are, unless bad records are skipped. A record that cannot be parsed or
    decoded, and a box outside the image, raise `tf.errors.InvalidArgumentError`, or are skipped and counted.

    Attributes:
        use_annotated_boxes: pass the record's boxes on; the whole image stands in where it has none.
        num_parallel_calls: records decoded at the same time; None lets tf.data choose.
        skip_counter: counts bad records that are skipped; None fails on them.
        decoding: how images are decoded, and which are bad.
    """

    use_annotated_boxes: bool = False
    num_parallel_calls: int | None = None
    skip_counter: SkipCounter | None = None
    decoding: DecodeOptions = field(default_factory=DecodeOptions)
    name: str = "decode"

    def __call__(self, records: tf.data.Dataset) -> tf.data.Dataset:
        """Returns `image` uint8 [height, width, 3] and `label` int32 [] in place of `serialized`."""
        if self.skip_counter is not None:
            return self.skip_counter.map(
                records,
                self.decode_record,
                is_fresh=lambda record: record[REPEAT_INDEX] == 0,
                parallel_calls=self.num_parallel_calls or os.cpu_count() or 1,
            )
        return records.map(self.decode_record, num_parallel_calls=self.num_parallel_calls or tf.data.AUTOTUNE)

    def decode_record(self, record: dict[str, Any]) -> dict[str, Any]:
        """Decodes one record; the features beside `serialized` pass through."""
        parsed = parse_record(record[SERIALIZED], self.use_annotated_boxes)
        decoded = {key: value for key, value in record.items() if key != SERIALIZED}
        decoded[IMAGE] = decode_image(parsed.encoded, self.decoding)
        decoded[LABEL] = parsed.label
        if parsed.boxes is not None:
            decoded[BOXES] = parsed.boxes
        return decoded
