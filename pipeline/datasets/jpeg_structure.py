"""The markers of a JPEG, read without decoding: what it is, and damage that decoders pass over in silence.

Layout: ITU-T T.81, annex B. Seen is: no end, a stray marker in the data of a JPEG with one scan, restart
markers that are lost, doubled or out of order. Not seen are changed bytes that make no marker.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_MARKER = re.compile(rb"\xff([^\x00\xff])", re.DOTALL)
_MARKER_IN_DATA = re.compile(rb"\xff([^\x00\xff\xd0-\xd7])", re.DOTALL)
_RESTART = re.compile(rb"\xff([\xd0-\xd7])")
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PROGRESSIVE = (0xC2, 0xC6, 0xCA, 0xCE)
_STANDALONE = frozenset(range(0xD0, 0xD9)) | {0x01}
_END, _SCAN, _RESTART_INTERVAL = 0xD9, 0xDA, 0xDD
_RESTARTS = 8


@dataclass
class JpegStructure:
    """What the markers of a JPEG say.

    Attributes:
        height: as the frame header states it, pixels; 0 without one.
        width: the same.
        bits: of a sample; 0 without a frame header.
        has_one_scan: whether all of the data is in one scan and not progressive.
        data_start: position of the first byte of the first scan's data; 0 without one.
        data_end: position of the marker that ends it.
        ends: whether there is an end-of-image marker, wherever it stands.
        damage: what is wrong with the markers, in words; empty if nothing.
    """

    height: int = 0
    width: int = 0
    bits: int = 0
    has_one_scan: bool = False
    data_start: int = 0
    data_end: int = 0
    ends: bool = False
    damage: str = ""


def read_structure(encoded: bytes) -> JpegStructure:
    """Returns the structure of a JPEG, as far as it can be followed.

    Bytes between two segments that belong to none are passed over, as decoders do.

    Args:
        encoded: the bytes, which start like a JPEG.
    """
    jpeg = JpegStructure()
    interval = units = 0
    frame, components = 0, 0
    position = 2
    while (found := _MARKER.search(encoded, position)) is not None:
        marker, position = found.group(1)[0], found.end()
        if marker == _END:
            jpeg.ends = True
            return jpeg
        if marker in _STANDALONE:
            continue
        length = int.from_bytes(encoded[position : position + 2], "big")
        segment = encoded[position + 2 : position + length]
        if length < 2 or len(segment) != length - 2:
            break
        position += length
        if marker in _FRAMES and len(segment) >= 6 and not jpeg.bits:
            frame, components = marker, segment[5]
            jpeg.bits = segment[0]
            jpeg.height = int.from_bytes(segment[1:3], "big")
            jpeg.width = int.from_bytes(segment[3:5], "big")
            units = _coded_units(jpeg, segment[7::3][:components])
        elif marker == _RESTART_INTERVAL:
            interval = int.from_bytes(segment[:2], "big")
        elif marker == _SCAN:
            end = _MARKER_IN_DATA.search(encoded, position)
            if not jpeg.data_start:
                jpeg.data_start = position
                jpeg.data_end = len(encoded) if end is None else end.start()
                jpeg.has_one_scan = frame not in _PROGRESSIVE and segment[:1] == bytes([components])
            if end is None:
                break
            if jpeg.has_one_scan:
                jpeg.ends = encoded.find(b"\xff\xd9", end.start()) >= 0
                jpeg.damage = _damage(encoded, jpeg, end.group(1)[0], interval, units)
                return jpeg
            position = end.start()
    if not jpeg.damage:
        jpeg.damage = "it is truncated: it has no end-of-image marker"
    return jpeg


def _coded_units(jpeg: JpegStructure, factors: bytes) -> int:
    """Returns how many minimum coded units an interleaved scan has (T.81, A.2.3)."""
    if len(factors) < 2:
        return math.ceil(jpeg.height / 8) * math.ceil(jpeg.width / 8)
    across = max(factor >> 4 for factor in factors) or 1
    down = max(factor & 15 for factor in factors) or 1
    return math.ceil(jpeg.height / (8 * down)) * math.ceil(jpeg.width / (8 * across))


def _damage(encoded: bytes, jpeg: JpegStructure, marker: int, interval: int, units: int) -> str:
    if marker != _END:
        return f"the marker FF{marker:02X} stands in the middle of its data, at byte {jpeg.data_end}"
    restarts = [found.group(1)[0] & 7 for found in _RESTART.finditer(encoded, jpeg.data_start, jpeg.data_end)]
    expected = max(math.ceil(units / interval) - 1, 0) if interval else 0
    if len(restarts) != expected:
        return f"it has {len(restarts)} restart markers in place of {expected}"
    if restarts != [number % _RESTARTS for number in range(expected)]:
        return "its restart markers are out of order"
    return ""
