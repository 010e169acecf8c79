"""The framing of TFRecord files: where each record lies, without TensorFlow and without reading payloads.

A record is its length (8 bytes, little-endian), the masked CRC-32C of these 8 bytes (4 bytes), the payload,
and the masked CRC-32C of the payload (4 bytes): the format that tensorflow/core/lib/io/record_writer.h
describes.
Nothing marks the start of a record, so behind a damaged length the rest of a shard cannot be found.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from echoing.errors import DataError, RecordError
from pipeline import filesystem
from pipeline.byte_source import GZIP_WINDOW_BITS, ByteSource, GzipSource, PlainSource
from pipeline.crc32c import masked_crc32c

PLAIN = ""
GZIP = "GZIP"

_HEADER = struct.Struct("<QI")
_FOOTER = struct.Struct("<I")
_GZIP_MAGIC = b"\x1f\x8b"
_REMEDY = "Copy or make the shard again."


class TruncatedShardError(RecordError):
    """The shard ends inside a record, or its compressed stream ends early."""


@dataclass(frozen=True)
class RecordSpan:
    """Where a record lies.

    Attributes:
        offset_bytes: position of its first byte, that of the header; in a gzip shard, after decompression.
        length_bytes: length of the payload.
    """

    offset_bytes: int
    length_bytes: int


@dataclass(frozen=True)
class RawRecord:
    """One record as it was read.

    Attributes:
        span: where it lies.
        payload: its content.
        is_intact: whether the payload agrees with its checksum.
    """

    span: RecordSpan
    payload: bytes
    is_intact: bool


def detect_compression(path: str) -> str:
    """Returns `""` for a plain TFRecord file and `"GZIP"` for a compressed one, by its first bytes.

    A plain file whose first record has a fitting length (35,615 bytes, say) starts with gzip's magic bytes
    1f 8b too; the checksum of the length tells the two apart.

    Raises:
        DataError: the file is zlib-compressed, which is not supported, or cannot be read.
    """
    with filesystem.reading(path), filesystem.open_file(path, "rb") as file:
        head = bytes(file.read(512))
    if len(head) >= _HEADER.size and _length_of(head[: _HEADER.size]) is not None:
        return PLAIN
    if head.startswith(_GZIP_MAGIC):
        return GZIP if _inflates(head, GZIP_WINDOW_BITS) else PLAIN
    if len(head) > 2 and _inflates(head, zlib.MAX_WBITS):
        raise DataError(
            f"{path} is zlib-compressed. Only plain and gzip-compressed shards are read: write it again with "
            'compression "" or "GZIP".'
        )
    return PLAIN


def walk(path: str, compression: str = PLAIN) -> Iterator[RecordSpan]:
    """Yields where each record lies; reads the headers alone and checks that every record is whole.

    A plain file costs one short read a record; a gzip file must be decompressed from end to end. Payloads are
    not checked. A file cut exactly between two records cannot be told from a shorter one, unless it is gzip.

    Raises:
        TruncatedShardError: the file ends inside a record.
        RecordError: the length of a record is damaged, or the compressed stream is.
        DataError: the file cannot be read.
    """
    with filesystem.reading(path), filesystem.open_file(path, "rb") as file:
        source = _open_source(path, file, compression)
        shard = filesystem.base_name(path)
        for index, span in enumerate(_headers(source, shard)):
            if source.skip(span.length_bytes + _FOOTER.size) < span.length_bytes + _FOOTER.size:
                raise _truncated(shard, index, span, source)
            yield span


def read_records(path: str, compression: str = PLAIN) -> Iterator[RawRecord]:
    """Yields every record with its payload, also those whose payload does not agree with its checksum.

    Raises:
        TruncatedShardError, RecordError: as for `walk`; the records before it were yielded.
        DataError: the file cannot be read.
    """
    with filesystem.reading(path), filesystem.open_file(path, "rb") as file:
        source = _open_source(path, file, compression)
        shard = filesystem.base_name(path)
        for index, span in enumerate(_headers(source, shard)):
            needed_bytes = span.length_bytes + _FOOTER.size
            content = source.read(needed_bytes) if source.may_hold(needed_bytes) else b""
            if len(content) < needed_bytes:
                raise _truncated(shard, index, span, source)
            payload = content[: span.length_bytes]
            (crc,) = _FOOTER.unpack(content[span.length_bytes :])
            yield RawRecord(span, payload, masked_crc32c(payload) == crc)


def _open_source(path: str, file: IO[Any], compression: str) -> ByteSource:
    if compression == GZIP:
        return GzipSource(file)
    if compression == PLAIN:
        return PlainSource(file, filesystem.size_bytes(path))
    raise ValueError(f"compression is {compression!r}, but must be {PLAIN!r} or {GZIP!r}")


def _headers(source: ByteSource, shard: str) -> Iterator[RecordSpan]:
    """Reads one header after the other; the caller takes the payload and the footer in between."""
    offset = 0
    index = 0
    while header := source.read(_HEADER.size):
        if len(header) < _HEADER.size:
            reason = source.failure or (
                f"the file ends inside the record's header, {len(header)} of {_HEADER.size} bytes are there"
            )
            raise _ended(shard, index, reason, offset, source)
        length = _length_of(header)
        if length is None:
            where = "the file is damaged here" if index else "this is no TFRecord file, or it is damaged"
            raise RecordError(
                shard, index, f"the checksum of the record's length is wrong: {where}. {_REMEDY}", offset
            )
        yield RecordSpan(offset, length)
        offset += _HEADER.size + length + _FOOTER.size
        index += 1
    if source.failure:
        raise _ended(shard, index, source.failure, offset, source)


def _length_of(header: bytes) -> int | None:
    """Returns the length in a header, or None if it does not agree with its checksum."""
    length, crc = _HEADER.unpack(header)
    return int(length) if masked_crc32c(header[:8]) == crc else None


def _truncated(shard: str, index: int, span: RecordSpan, source: ByteSource) -> RecordError:
    reason = source.failure or f"the file ends inside the record, whose payload has {span.length_bytes} bytes"
    return _ended(shard, index, reason, span.offset_bytes, source)


def _ended(shard: str, index: int, reason: str, offset: int, source: ByteSource) -> RecordError:
    kind = RecordError if source.is_damaged else TruncatedShardError
    return kind(shard, index, f"{reason}. {_REMEDY}", offset)


def _inflates(head: bytes, window_bits: int) -> bool:
    try:
        zlib.decompressobj(window_bits).decompress(head, 1)
    except zlib.error:
        return False
    return True
