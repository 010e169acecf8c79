"""Naming the record that a pipeline failed on."""

from __future__ import annotations

import pytest
import tensorflow as tf

from echoing.errors import RecordError
from pipeline import InputPipeline, PipelineConfig, schema
from pipeline.data_source import open_data_source
from pipeline.diagnosis import PIPELINE_ERRORS, explain_failure
from pipeline.image_decoding import DecodeOptions
from pipeline.schema import Box


def fail(folder: str, **options) -> Exception:
    """Runs the pipeline over a folder until it fails and returns the explanation."""
    pipeline = InputPipeline(PipelineConfig(folder, batch_size=1, image_size=16, epochs=1, **options))
    with pytest.raises(PIPELINE_ERRORS) as caught:
        for _ in pipeline():
            pass
    return explain_failure(caught.value, pipeline.source, pipeline.config.use_annotated_boxes)


def without(serialized: bytes, *keys: str) -> bytes:
    example = tf.train.Example.FromString(serialized)
    for key in keys:
        del example.features.feature[key]
    return example.SerializeToString()


@pytest.mark.parametrize("position", [0, 2, 4])
def test_record_without_its_keys_is_named_with_the_keys_missing_and_found(
    write_records, good_record, position
):
    records = [good_record(index) for index in range(4)]
    records.insert(position, without(good_record(9), schema.ENCODED, schema.LABEL))  # SC-01
    error = fail(write_records(records))
    assert isinstance(error, RecordError)
    assert (error.shard, error.record_index) == ("train-00000-of-00001", position)
    assert error.offset_bytes == sum(len(record) + 16 for record in records[:position])
    for name in (schema.ENCODED, schema.LABEL, schema.FILENAME, "--on-bad-record skip"):
        assert name in str(error)


@pytest.mark.parametrize("payload", [b"\x0a\xffnot an example", b"\xff\xfe\xfd"])
def test_record_that_is_no_example_is_named_even_if_its_bytes_are_no_text(
    write_records, good_record, payload
):
    error = fail(write_records([good_record(0), payload]))
    assert isinstance(error, RecordError)
    assert error.record_index == 1


def test_undecodable_image_is_named(write_records, good_record):
    example = tf.train.Example.FromString(good_record(0))
    example.features.feature[schema.ENCODED].bytes_list.value[0] = b"no image"
    error = fail(write_records([good_record(1), example.SerializeToString()]))
    assert isinstance(error, RecordError)
    assert error.record_index == 1


def test_the_limit_of_the_pipeline_is_that_of_the_explanation(write_records, good_record):
    source = open_data_source(write_records([good_record(0), good_record(1, height=50, width=60)]))
    decoding = DecodeOptions(max_pixels=40 * 60)
    error = explain_failure(ValueError("x"), source, False, decoding=decoding)
    assert isinstance(error, RecordError)
    assert error.record_index == 1
    assert "'1.jpg'" in str(error)
    assert "the image claims 60 x 50 pixels; at most 2,400 are decoded" in str(error)


def test_damaged_payload_is_named(write_records, good_record):
    folder = write_records([good_record(0), good_record(1)])
    path = f"{folder}/train-00000-of-00001"
    with open(path, "r+b") as file:
        file.seek(len(good_record(0)) + 16 + 12 + 5)
        file.write(b"\x00\x01\x02\x03")
    error = fail(folder)
    assert isinstance(error, RecordError)
    assert error.record_index == 1
    assert "checksum" in str(error)


def test_boxes_count_only_where_the_pipeline_looks_at_them(write_records, good_record):
    bad = good_record(0, boxes=[Box(0, 0, 30, 1)])
    error = fail(write_records([bad]), use_annotated_boxes=True)
    assert isinstance(error, RecordError)
    assert "ymax is 30" in str(error)


def test_without_a_bad_record_the_words_of_tensorflow_are_kept(make_data):
    source = open_data_source(make_data(2))
    error = explain_failure(ValueError("out of luck\nand more"), source, use_annotated_boxes=False)
    assert "out of luck" in str(error)
    assert "pipebench data check" in str(error)


def test_gives_up_when_the_time_is_over(write_records):
    source = open_data_source(write_records([b"bad"]))
    ticks = iter(range(100))
    error = explain_failure(ValueError("x"), source, False, budget_seconds=1, clock=lambda: next(ticks))
    assert not isinstance(error, RecordError)
