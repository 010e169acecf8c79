"""Why did the pipeline fail? Finds the record, which TensorFlow's message does not name."""

from __future__ import annotations

import time
from collections.abc import Callable

import tensorflow as tf

from echoing.errors import DataError, PipebenchError, RecordError
from pipeline import tfrecord
from pipeline.data_source import DataSource, Shard
from pipeline.datasets.check_report import PROBLEM
from pipeline.datasets.record_check import check_record
from pipeline.decode import Decode
from pipeline.element import SERIALIZED
from pipeline.image_decoding import DecodeOptions

PIPELINE_ERRORS = (tf.errors.OpError, UnicodeDecodeError)
"""What a failing pipeline raises. TensorFlow quotes the bytes of a record that is no example in its message,
and where they are not UTF-8 its Python binding fails on the message itself."""

DIAGNOSIS_SECONDS = 60.0
"""How long to look for the bad record before giving up; about 20,000 images."""

ADVICE = "Mend or remove it, or give --on-bad-record skip to leave such records out."
"""What to do about a bad record that ends a run."""


def explain_failure(
    error: Exception,
    source: DataSource,
    use_annotated_boxes: bool,
    budget_seconds: float = DIAGNOSIS_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    advice: str = ADVICE,
    decoding: DecodeOptions | None = None,
) -> PipebenchError:
    """Returns the user error behind an error of the pipeline.

    Reads the shards again, one record after another, as the pipeline does, until one fails.

    Args:
        error: what the pipeline raised.
        source: the shards that it read.
        use_annotated_boxes: whether it looked at boxes.
        budget_seconds: time to look for the record.
        clock: monotonic seconds.
        advice: what to do about a bad record, for the message.
        decoding: how it decoded images; None for the defaults.

    Returns:
        A `RecordError` that names the record, or a `DataError` with TensorFlow's words where none was found.
    """
    decode = Decode(use_annotated_boxes, decoding=decoding or DecodeOptions())
    deadline = clock() + budget_seconds
    searched = "in all of the records"
    for shard in source.shards:
        try:
            found = _first_bad_record(shard, decode, advice, lambda: clock() >= deadline)
        except DataError as damaged:
            # Cut or unreadable since it was opened.
            return damaged
        if found is not None:
            return found
        if clock() >= deadline:
            searched = f"in {budget_seconds:g} s of looking"
            break
    words = _first_line(error)
    return DataError(
        f"The pipeline failed, and no bad record was found {searched}: {words}. "
        f"`pipebench data check {source.data_dir}` reads all of them."
    )


def _first_bad_record(
    shard: Shard, decode: Decode, advice: str, is_late: Callable[[], bool]
) -> RecordError | None:
    for index, record in enumerate(tfrecord.read_records(shard.path, shard.compression)):
        if is_late():
            return None
        reason = ""
        if not record.is_intact:
            reason = f"the checksum of its {record.span.length_bytes} bytes is wrong: the record is damaged"
        else:
            try:
                decode.decode_record({SERIALIZED: record.payload})
            except PIPELINE_ERRORS as error:
                reason = _reason(record.payload, decode.decoding) or _first_line(error)
        if reason:
            return RecordError(shard.name, index, f"{reason}. {advice}", record.span.offset_bytes)
    return None


def _reason(payload: bytes, decoding: DecodeOptions) -> str:
    remarks = check_record(payload, None, decoding).remarks
    problems = [remark.text for remark in remarks if remark.severity == PROBLEM]
    return "; ".join(problems)


def _first_line(error: Exception) -> str:
    text = getattr(error, "message", None) or str(error)
    return str(text).strip().splitlines()[0].rstrip(".")
