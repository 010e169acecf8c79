"""Decode and augment in one stage: only the crop is decoded, and examples go in blocks.

What makes it faster than the two stages one after the other, with the same images to rounding:

- the crop is drawn from the size in the image's header, and only the crop is decoded;
- where uint8 goes to the device, the shift of colours and the scaling are left to it, and three numbers
  travel with the image instead;
- a block of examples is one call of one function: calls, draws and parsing are paid once a block, and images
  are copied once, into the batch.

Where an echo or a cache of whole images stands in between, `AugmentDecoded` does the second half alone.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from pipeline.element import BOXES, IMAGE, LABEL, REPEAT_INDEX, SERIALIZED
from pipeline.image_decoding import (
    DecodeOptions,
    are_plain_jpegs,
    decode_plain_window,
    decode_window,
    image_size,
    plain_sizes,
)
from pipeline.preprocessing.crop import cut
from pipeline.preprocessing.fast import FastPreprocessing
from pipeline.record_parsing import parse_record, parse_records
from pipeline.skipping import SkipCounter

MAX_BLOCK_EXAMPLES = 32
"""Examples of a block at most. Measured on two cores: with 16 the pipeline is 6 % slower, and 128 fall out of
the caches."""


@dataclass(frozen=True)
class DecodeAndAugment:
    """Takes the place of the stages `decode` and `augment` where no echo stands between them.

    Length and order stay as they are, unless bad records are skipped; errors are those of `Decode`. Draws are
    those of `Augment`: the same seed gives the same crop, mirror image and colours.

    With blocks, every element of the result holds `block_examples` consecutive examples, the last one what is
    left, and `Batch` cuts batches out of them.

    Attributes:
        pixels: what is done to the images.
        decoding: how they are decoded.
        use_annotated_boxes: crop around the record's boxes where it has any.
        block_examples: examples of an element of the result, > 1; 1 delivers examples one by one.
        parse_after_batch: parse the records of a block in one call; not with boxes.
        num_parallel_calls: blocks or examples worked on at the same time; None lets tf.data choose.
        skip_counter: counts bad records that are skipped, one by one; None fails on them.
    """

    pixels: FastPreprocessing = field(default_factory=FastPreprocessing)
    decoding: DecodeOptions = field(default_factory=DecodeOptions)
    use_annotated_boxes: bool = False
    block_examples: int = 1
    parse_after_batch: bool = True
    num_parallel_calls: int | None = None
    skip_counter: SkipCounter | None = None
    name: str = "decode_and_augment"

    def __call__(self, records: tf.data.Dataset) -> tf.data.Dataset:
        """Returns `image` and `label` in place of `serialized`, and what is left over to the device.

        `image` is [image_size, image_size, 3], `label` int32 [], `color_shift` float32 [3]; with blocks all
        features have a leading axis.
        """
        if self.skip_counter is not None:
            return self.skip_counter.map(
                records,
                self.prepare_example,
                is_fresh=lambda record: record[REPEAT_INDEX] == 0,
                parallel_calls=self.num_parallel_calls or os.cpu_count() or 1,
            )
        calls = self.num_parallel_calls or tf.data.AUTOTUNE
        if self.block_examples == 1:
            return records.map(self.prepare_example, num_parallel_calls=calls)
        # Endless data has whole blocks only; knowing so saves making up for a smaller last one.
        endless = int(records.cardinality()) == tf.data.INFINITE_CARDINALITY
        blocks = records.batch(self.block_examples, drop_remainder=endless)
        return blocks.map(self.prepare_block, num_parallel_calls=calls)

    def prepare_example(self, record: dict[str, Any]) -> dict[str, Any]:
        """Prepares one example; the features beside `serialized` pass through."""
        parsed = parse_record(record[SERIALIZED], self.use_annotated_boxes)
        words = self.pixels.words(record)
        image = self._prepare_image(parsed.encoded, parsed.boxes, words)
        return self._element(record, image, parsed.label, words)

    def prepare_block(self, records: dict[str, Any]) -> dict[str, Any]:
        """Prepares a block of examples; every feature has a leading axis."""
        block = self.block_examples
        serialized = records[SERIALIZED]
        count = tf.shape(serialized)[0]
        is_whole = serialized.shape[0] == block
        words = self.pixels.words(records)

        def rows(values: Any) -> list[Any]:
            # The function has a fixed number of rows: a smaller last block repeats its last one.
            full = values if is_whole else tf.gather(values, tf.minimum(tf.range(block), count - 1))
            return tf.unstack(full, num=block)

        if self.parse_after_batch and not self.use_annotated_boxes:
            parsed = parse_records(serialized)
            images = self._prepare_images(parsed.encoded, rows(parsed.encoded), rows(words))
            label = parsed.label
        else:
            each = [parse_record(one, self.use_annotated_boxes) for one in rows(serialized)]
            pairs = zip(each, rows(words), strict=True)
            images = tf.stack([self._prepare_image(one.encoded, one.boxes, word) for one, word in pairs])
            label = tf.stack([one.label for one in each])[:count]
        return self._element(records, images if is_whole else images[:count], label, words)

    def _prepare_images(self, encoded: Any, encoded_rows: list[Any], word_rows: list[Any]) -> Any:
        """Prepares the images of a block, of which nearly always all are plain JPEGs: checked together."""

        def plain() -> Any:
            sizes = tf.unstack(plain_sizes(encoded_rows, self.decoding))
            images = []
            for one, size, word in zip(encoded_rows, sizes, word_rows, strict=True):
                window = self.pixels.window(size, None, word)
                images.append(self.pixels.finish(decode_plain_window(one, window, self.decoding), word))
            return tf.stack(images)

        def one_by_one() -> Any:
            side = self.pixels.image_size
            return tf.map_fn(
                lambda row: self._prepare_image(row[0], None, row[1]),
                (tf.stack(encoded_rows), tf.stack(word_rows)),
                parallel_iterations=self.block_examples,
                fn_output_signature=tf.TensorSpec(
                    [side, side, 3], tf.uint8 if self.pixels.uint8 else tf.float32
                ),
            )

        return tf.cond(are_plain_jpegs(encoded), plain, one_by_one)

    def _prepare_image(self, encoded: Any, boxes: Any | None, words: Any) -> Any:
        window = self.pixels.window(image_size(encoded, self.decoding), boxes, words)
        return self.pixels.finish(decode_window(encoded, window, self.decoding), words)

    def _element(self, record: dict[str, Any], image: Any, label: Any, words: Any) -> dict[str, Any]:
        passed = {key: value for key, value in record.items() if key != SERIALIZED}
        return {**passed, IMAGE: image, LABEL: label, **self.pixels.left_over(words)}


@dataclass(frozen=True)
class AugmentDecoded:
    """The second half of `DecodeAndAugment`, on images that were decoded whole.

    Length and order stay as they are.

    Attributes:
        pixels: what is done to the images.
        num_parallel_calls: images worked on at the same time; None lets tf.data choose.
    """

    pixels: FastPreprocessing = field(default_factory=FastPreprocessing)
    num_parallel_calls: int | None = None
    name: str = "augment"

    def __call__(self, images: tf.data.Dataset) -> tf.data.Dataset:
        """Returns what `DecodeAndAugment` does, from `image` uint8 of any size; `boxes` are dropped."""
        return images.map(self.augment, num_parallel_calls=self.num_parallel_calls or tf.data.AUTOTUNE)

    def augment(self, element: dict[str, Any]) -> dict[str, Any]:
        """Augments one element."""
        words = self.pixels.words(element)
        window = self.pixels.window(tf.shape(element[IMAGE])[:2], element.get(BOXES), words)
        image = self.pixels.finish(cut(element[IMAGE], window), words)
        passed = {key: value for key, value in element.items() if key != BOXES}
        return {**passed, IMAGE: image, **self.pixels.left_over(words)}
