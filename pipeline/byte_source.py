"""Streams of bytes that can be passed over and that tell a cut from damage: plain and gzip files."""

from __future__ import annotations

import contextlib
import zlib
from typing import IO, Any, Protocol

GZIP_WINDOW_BITS = 31
"""What zlib calls a gzip stream: 15 bits of window, the largest, and 16 for the gzip header."""

_CHUNK_BYTES = 64 * 1024  # deflate expands at most 1032 times, to 66 MB


class ByteSource(Protocol):
    """A stream of bytes.

    `failure` says why it ended too early, and is empty at a proper end; `is_damaged` tells damage from a cut.
    """

    failure: str
    is_damaged: bool

    def read(self, count: int) -> bytes:
        """Returns the next `count` bytes, fewer at the end."""

    def skip(self, count: int) -> int:
        """Passes over the next `count` bytes and returns how many there were."""

    def may_hold(self, count: int) -> bool:
        """Whether that many more bytes can be there; spares an absurd length its memory."""


class PlainSource:
    """A file as it is, whose size in bytes is known."""

    failure = ""
    is_damaged = False

    def __init__(self, file: IO[Any], size_bytes: int) -> None:
        self._file = file
        self._size_bytes = size_bytes
        self._position = 0

    def read(self, count: int) -> bytes:
        """Returns the next `count` bytes, fewer at the end."""
        content = bytes(self._file.read(count))
        self._position += len(content)
        return content

    def skip(self, count: int) -> int:
        """Passes over the next `count` bytes and returns how many there were."""
        count = min(count, self._size_bytes - self._position)
        self._position += count
        self._file.seek(self._position)
        return count

    def may_hold(self, count: int) -> bool:
        """Whether that many more bytes can be there."""
        return count <= self._size_bytes - self._position


class GzipSource:
    """Decompresses a file of one or more gzip members.

    `gzip.GzipFile` raises at a damaged place before it hands out the bytes in front of it, so that the index
    of the damaged record would be wrong.
    """

    def __init__(self, file: IO[Any]) -> None:
        self._file = file
        self._inflater = zlib.decompressobj(GZIP_WINDOW_BITS)
        self._input = b""
        self._ready = bytearray()
        self.failure = ""
        self.is_damaged = False

    def read(self, count: int) -> bytes:
        """Returns the next `count` bytes, fewer at the end."""
        while len(self._ready) < count and self._fill():
            pass
        content = bytes(self._ready[:count])
        del self._ready[:count]
        return content

    def skip(self, count: int) -> int:
        """Passes over the next `count` bytes and returns how many there were."""
        skipped = 0
        while skipped < count and (content := self.read(min(count - skipped, _CHUNK_BYTES))):
            skipped += len(content)
        return skipped

    def may_hold(self, count: int) -> bool:
        """Whether that many more bytes can be there."""
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
            self._inflater = zlib.decompressobj(GZIP_WINDOW_BITS)
        before = self._inflater.copy()
        try:
            self._ready += self._inflater.decompress(self._input)
        except zlib.error as error:
            self.failure = f"the gzip stream is damaged ({error})"
            self.is_damaged = True
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
