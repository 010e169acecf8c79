"""The framing of TFRecord files: where each record lies, without TensorFlow and without reading payloads.

A record is its length (8 bytes, little-endian), the masked CRC-32C of these 8 bytes (4 bytes), the payload,
and the masked CRC-32C of the payload (4 bytes): the format that tensorflow/core/lib/io/record_writer.h
describes.
Nothing marks the start of a record, so behind a damaged length the rest of a shard cannot be found.
"""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, Protocol

from echoing.errors import DataError, RecordError
from pipeline import filesystem
from pipeline.crc32c import masked_crc32c

PLAIN = ""
GZIP = "GZIP"

_HEADER = struct.Struct("<QI")
_FOOTER = struct.Struct("<I")
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW_BITS = 31  # zlib: the largest window, with a gzip header
_CHUNK_BYTES = 64 * 1024  # deflate expands at most 1032 times, to 66 MB
_REMEDY = "Copy or make the shard again."


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
        return GZIP if _inflates(head, _GZIP_WINDOW_BITS) else PLAIN
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
        RecordError: the file ends inside a record, or the length of a record is damaged.
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
        RecordError: as for `walk`; the records before it were yielded.
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


class _Source(Protocol):
    """A stream of bytes. `failure` says why it ended too early; it is empty at a proper end."""

    failure: str

    def read(self, count: int) -> bytes:
        """Returns the next `count` bytes, fewer at the end."""

    def skip(self, count: int) -> int:
        """Passes over the next `count` bytes and returns how many there were."""

    def may_hold(self, count: int) -> bool:
        """Whether that many more bytes can be there; spares an absurd length its memory."""


def _open_source(path: str, file: IO[Any], compression: str) -> _Source:
    if compression == GZIP:
        return _GzipSource(file)
    if compression == PLAIN:
        return _PlainSource(file, filesystem.size_bytes(path))
    raise ValueError(f"compression is {compression!r}, but must be {PLAIN!r} or {GZIP!r}")


def _headers(source: _Source, shard: str) -> Iterator[RecordSpan]:
    """Reads one header after the other; the caller takes the payload and the footer in between."""
    offset = 0
    index = 0
    while header := source.read(_HEADER.size):
        if len(header) < _HEADER.size:
            reason = source.failure or (
                f"the file ends inside the record's header, {len(header)} of {_HEADER.size} bytes are there"
            )
            raise RecordError(shard, index, f"{reason}. {_REMEDY}", offset)
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
        raise RecordError(shard, index, f"{source.failure}. {_REMEDY}", offset)


def _length_of(header: bytes) -> int | None:
    """Returns the length in a header, or None if it does not agree with its checksum."""
    length, crc = _HEADER.unpack(header)
    return int(length) if masked_crc32c(header[:8]) == crc else None


def _truncated(shard: str, index: int, span: RecordSpan, source: _Source) -> RecordError:
    reason = source.failure or f"the file ends inside the record, whose payload has {span.length_bytes} bytes"
    return RecordError(shard, index, f"{reason}. {_REMEDY}", span.offset_bytes)


def _inflates(head: bytes, window_bits: int) -> bool:
    try:
        zlib.decompressobj(window_bits).decompress(head, 1)
    except zlib.error:
        return False
    return True


class _PlainSource:
    failure = ""

    def __init__(self, file: IO[Any], size_bytes: int) -> None:
        self._file = file
        self._size_bytes = size_bytes
        self._position = 0

    def read(self, count: int) -> bytes:
        content = bytes(self._file.read(count))
        self._position += len(content)
        return content

    def skip(self, count: int) -> int:
        count = min(count, self._size_bytes - self._position)
        self._position += count
        self._file.seek(self._position)
        return count

    def may_hold(self, count: int) -> bool:
        return count <= self._size_bytes - self._position


class _GzipSource:
    """Decompresses a file of one or more gzip members.

    `gzip.GzipFile` raises at a damaged place before it hands out the bytes in front of it, so that the index
    of the damaged record would be wrong.
    """

    def __init__(self, file: IO[Any]) -> None:
        self._file = file
        self._inflater = zlib.decompressobj(_GZIP_WINDOW_BITS)
        self._input = b""
        self._ready = bytearray()
        self.failure = ""

    def read(self, count: int) -> bytes:
        while len(self._ready) < count and self._fill():
            pass
        content = bytes(self._ready[:count])
        del self._ready[:count]
        return content

    def skip(self, count: int) -> int:
        skipped = 0
        while skipped < count and (content := self.read(min(count - skipped, _CHUNK_BYTES))):
            skipped += len(content)
        return skipped

    def may_hold(self, count: int) -> bool:
        return True

    def _fill(self) -> bool:
        """Decompresses some more; returns False at the end."""
        while not self._input:
            chunk = bytes(self._file.read(_CHUNK_BYTES))
            if not chunk and not self._inflater.eof:
                self.failure = self.failure or "the gzip stream ends before its end mark"
            if not chunk or self.failure:
                return False
            self._input = self._behind_member(chunk) if self._inflater.eof else chunk
        if self._inflater.eof:
            self._inflater = zlib.decompressobj(_GZIP_WINDOW_BITS)
        before = self._inflater.copy()
        try:
            self._ready += self._inflater.decompress(self._input)
        except zlib.error as error:
            self.failure = f"the gzip stream is damaged ({error})"
            self._inflate_up_to_damage(before)
            return False
        self._input = self._behind_member(self._inflater.unused_data)
        return True

    def _inflate_up_to_damage(self, inflater: Any) -> None:
        # The call that met the damage returned nothing: again, byte by byte, to keep what lies before it.
        with contextlib.suppress(zlib.error):
            for byte in self._input:
                self._ready += inflater.decompress(bytes([byte]))
        self._input = b""

    @staticmethod
    def _behind_member(content: bytes) -> bytes:
        return content.lstrip(b"\0")  # gzip allows padding with zeros there
