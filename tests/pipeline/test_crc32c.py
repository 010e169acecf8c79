import random
import struct

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.crc32c import crc32c, masked_crc32c


def bit_by_bit(data: bytes) -> int:
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = (register >> 1) ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0x00000000),
        (b"123456789", 0xE3069283),  # the check value in catalogues of checksums
        (bytes(32), 0x8A9136AA),  # RFC 3720, appendix B.4, and the three below
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_published_vectors(data, expected):
    assert crc32c(data) == expected


@given(size=st.integers(0, 2500), seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_every_length_equals_the_definition_bit_by_bit(size, seed):
    data = random.Random(seed).randbytes(size)
    assert crc32c(data) == bit_by_bit(data)


@pytest.mark.parametrize("size", [255, 256, 257, 319, 320, 321, 4096, 100_001])
@pytest.mark.parametrize("fill", [b"\0", b"\xff"])
def test_constant_content_around_the_block_borders(size, fill):
    assert crc32c(fill * size) == bit_by_bit(fill * size)


@pytest.mark.parametrize("size", [0, 1, 300, 110_000])
def test_the_masked_checksum_is_the_one_that_tensorflow_writes(tmp_path, size):
    payload = random.Random(size).randbytes(size)
    path = str(tmp_path / "shard")
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(payload)
    content = (tmp_path / "shard").read_bytes()
    assert masked_crc32c(content[:8]) == struct.unpack("<I", content[8:12])[0]
    assert masked_crc32c(payload) == struct.unpack("<I", content[-4:])[0]
