"""Sizes of examples at the insertion points."""

from __future__ import annotations

import pytest

from echoing.errors import DataError
from echoing.insertion_point import InsertionPoint
from pipeline import InputPipeline, PipelineConfig
from pipeline.data_source import open_data_source
from pipeline.element_bytes import example_bytes


@pytest.fixture
def source(write_records, good_record):
    # 40 x 60 and 80 x 20 pixels.
    return open_data_source(write_records([good_record(0), good_record(1, height=80, width=20)]))


def test_compressed_records_after_the_read(source, good_record):
    mean = (len(good_record(0)) + len(good_record(1, height=80, width=20))) / 2
    assert example_bytes(InsertionPoint.AFTER_READ, source, 299) == pytest.approx(mean, abs=16)


def test_decoded_images_are_learned_from_the_headers(source):
    assert example_bytes(InsertionPoint.AFTER_DECODE, source, 299) == (40 * 60 + 80 * 20) * 3 / 2


def test_augmented_images_are_floats_of_a_fixed_size(source):
    assert example_bytes(InsertionPoint.AFTER_AUGMENT, source, 75) == 75 * 75 * 3 * 4


def test_bad_records_are_left_out_and_data_of_bad_ones_alone_is_an_error(write_records, good_record):
    mixed = open_data_source(write_records([b"bad", good_record(0)]))
    assert example_bytes(InsertionPoint.AFTER_DECODE, mixed, 299) == 40 * 60 * 3
    bad = open_data_source(write_records([b"bad"]))
    with pytest.raises(DataError, match="No readable record"):
        example_bytes(InsertionPoint.AFTER_DECODE, bad, 299)


@pytest.mark.parametrize(
    ("options", "size"),
    [
        # Three records of at most 9,000 bytes and no more; repeats do not matter before the echo.
        ({"echo_factor": 1}, None),
        # 16 x 16 x 3 floats are 3,072 bytes: 100 of them. S places behind an echo of 4 hold m = S x 25/48
        # different ones on average, and m + 3 sqrt(m) + 1 <= 100 for S up to 140.
        ({"echo_factor": 4, "insert_point": "after_augment", "shuffle_buffer_bytes": 307_200}, 140),
        ({"echo_factor": "elastic", "insert_point": "after_augment", "shuffle_buffer_bytes": 307_200}, 100),
    ],
)
def test_buffer_in_bytes_becomes_examples_where_it_stands(source, options, size):
    pipeline = InputPipeline(
        PipelineConfig(source.data_dir, image_size=16, **{"shuffle_buffer_bytes": 20_000, **options}),
        source=source,
    )
    if size is None:
        size = int(20_000 / source.mean_record_bytes)
    assert pipeline.example_shuffle_size == size
