import gzip
import random
import struct
import zlib

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from echoing.errors import DataError, RecordError
from pipeline.tfrecord import RecordSpan, TruncatedShardError, detect_compression, read_records, walk

PAYLOADS = [b"first" * 10, b"", b"third" * 30]  # 50, 0 and 150 bytes
OFFSETS = [0, 66, 82]  # each record has 16 bytes beside its payload
SIZE = 248
SPANS = [RecordSpan(0, 50), RecordSpan(66, 0), RecordSpan(82, 150)]


def shard_bytes(tmp_path, payloads, compression=""):
    path = tmp_path / "source"
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for payload in payloads:
            writer.write(payload)
    content = path.read_bytes()
    path.unlink()
    return content


@pytest.fixture
def content(tmp_path):
    return shard_bytes(tmp_path, PAYLOADS)


def put(tmp_path, content, name="train-00000-of-00001"):
    (tmp_path / name).write_bytes(content)
    return str(tmp_path / name)


def consume(iterator):
    """Returns what came before the error, and the error."""
    got = []
    with pytest.raises(RecordError) as caught:
        for item in iterator:
            got.append(item)
    return got, caught.value


def test_walk_tells_where_each_record_lies(tmp_path, content):
    assert len(content) == SIZE
    assert list(walk(put(tmp_path, content))) == SPANS


def test_read_records_gives_the_payloads(tmp_path, content):
    records = list(read_records(put(tmp_path, content)))
    assert [record.payload for record in records] == PAYLOADS
    assert [record.span for record in records] == SPANS
    assert all(record.is_intact for record in records)


def test_an_empty_file_has_no_records(tmp_path):
    assert list(walk(put(tmp_path, b""))) == []


@pytest.mark.parametrize("reader", [walk, read_records])
@pytest.mark.parametrize("record", [0, 1, 2])
@pytest.mark.parametrize("place", ["header", "payload", "footer"])
def test_a_cut_inside_a_record_names_shard_index_and_offset(tmp_path, content, reader, record, place):
    ends = [*OFFSETS[1:], SIZE]
    cut = {"header": OFFSETS[record] + 7, "payload": OFFSETS[record] + 12, "footer": ends[record] - 1}[place]
    got, error = consume(reader(put(tmp_path, content[:cut], "train-00003-of-00008")))
    assert len(got) == record
    assert (error.shard, error.record_index, error.offset_bytes) == (
        "train-00003-of-00008",
        record,
        OFFSETS[record],
    )
    assert "ends inside the record" in error.reason
    assert isinstance(error, TruncatedShardError)


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_a_cut_at_a_record_border_leaves_whole_records_and_no_error(tmp_path, content, kept):
    path = put(tmp_path, content[: [*OFFSETS, SIZE][kept]])
    assert list(walk(path)) == SPANS[:kept]


@given(cut=st.integers(0, SIZE))
@settings(max_examples=50, deadline=None)
def test_any_cut_yields_exactly_the_whole_records_before_it(tmp_path_factory, cut):
    tmp_path = tmp_path_factory.mktemp("cut")
    path = put(tmp_path, shard_bytes(tmp_path, PAYLOADS)[:cut])
    ends = [66, 82, 248]
    whole = sum(end <= cut for end in ends)
    if cut in (0, *ends):
        assert len(list(walk(path))) == whole
    else:
        got, error = consume(walk(path))
        assert len(got) == error.record_index == whole


@pytest.mark.parametrize("reader", [walk, read_records])
@pytest.mark.parametrize("record", [0, 1, 2])
def test_a_damaged_length_ends_the_walk_there(tmp_path, content, reader, record):
    damaged = bytearray(content)
    damaged[OFFSETS[record] + 1] ^= 0x40
    got, error = consume(reader(put(tmp_path, bytes(damaged))))
    assert len(got) == record
    assert (error.record_index, error.offset_bytes) == (record, OFFSETS[record])
    assert "checksum of the record's length" in error.reason
    assert not isinstance(error, TruncatedShardError)


def test_an_absurd_length_with_a_right_checksum_is_not_read_into_memory(tmp_path):
    from pipeline.crc32c import masked_crc32c

    length = struct.pack("<Q", 2**62)
    path = put(tmp_path, length + struct.pack("<I", masked_crc32c(length)) + bytes(100))
    for reader in (walk, read_records):
        got, error = consume(reader(path))
        assert got == []
        assert "4611686018427387904 bytes" in error.reason


@pytest.mark.parametrize("record", [0, 2])
def test_a_damaged_payload_is_marked_and_the_records_behind_it_are_read(tmp_path, content, record):
    damaged = bytearray(content)
    damaged[OFFSETS[record] + 20] ^= 1
    records = list(read_records(put(tmp_path, bytes(damaged))))
    assert [r.is_intact for r in records] == [index != record for index in range(3)]
    assert list(walk(str(tmp_path / "train-00000-of-00001"))) == SPANS


def test_a_damaged_payload_checksum_is_a_damaged_record(tmp_path, content):
    damaged = bytearray(content)
    damaged[80] ^= 1  # the footer of the empty record in the middle
    records = list(read_records(put(tmp_path, bytes(damaged))))
    assert [r.is_intact for r in records] == [True, False, True]


@given(place=st.integers(0, SIZE - 1), bit=st.integers(0, 7))
@settings(max_examples=100, deadline=None)
def test_any_flipped_bit_is_noticed_in_its_record_and_no_other(tmp_path_factory, place, bit):
    tmp_path = tmp_path_factory.mktemp("flip")
    damaged = bytearray(shard_bytes(tmp_path, PAYLOADS))
    damaged[place] ^= 1 << bit
    path = put(tmp_path, bytes(damaged))
    record = 0 if place < 66 else 1 if place < 82 else 2
    if place - OFFSETS[record] < 12:
        got, error = consume(read_records(path))
        assert [r.is_intact for r in got] == [True] * record
        assert error.record_index == record
    else:
        assert [r.is_intact for r in read_records(path)] == [i != record for i in range(3)]


def test_a_file_of_another_kind_is_said_to_be_no_tfrecord_file(tmp_path):
    got, error = consume(walk(put(tmp_path, b"name,label\ncat,1\ndog,2\n")))
    assert got == []
    assert "no TFRecord file" in error.reason


def test_gzip_is_detected_and_read(tmp_path):
    path = put(tmp_path, shard_bytes(tmp_path, PAYLOADS, "GZIP"))
    assert detect_compression(path) == "GZIP"
    assert list(walk(path, "GZIP")) == SPANS
    assert [record.payload for record in read_records(path, "GZIP")] == PAYLOADS


def test_a_gzip_file_of_several_members_and_padding_is_read_as_one(tmp_path, content):
    members = [gzip.compress(content[a:b]) for a, b in ((0, 30), (30, 30), (30, SIZE))]
    path = put(tmp_path, b"".join([members[0], bytes(512), *members[1:], bytes(70_000)]))
    assert list(walk(path, detect_compression(path))) == SPANS


def test_a_large_gzip_file_is_read_in_pieces(tmp_path):
    payloads = [random.Random(index).randbytes(90_000) for index in range(5)] + [bytes(5_000_000)]
    path = put(tmp_path, shard_bytes(tmp_path, payloads, "GZIP"))
    assert [span.length_bytes for span in walk(path, "GZIP")] == [90_000] * 5 + [5_000_000]
    assert [record.payload for record in read_records(path, "GZIP")] == payloads


@pytest.mark.parametrize("record", [0, 1, 2])
def test_a_truncated_record_inside_a_gzip_file_is_named(tmp_path, content, record):
    path = put(tmp_path, gzip.compress(content[: OFFSETS[record] + 13]))
    got, error = consume(walk(path, "GZIP"))
    assert len(got) == error.record_index == record
    assert "ends inside the record" in error.reason


def test_a_gzip_file_that_ends_early_names_the_first_record_that_is_not_whole(tmp_path):
    payloads = [random.Random(index).randbytes(1000) for index in range(3)]
    compressed = shard_bytes(tmp_path, payloads, "GZIP")
    got, error = consume(walk(put(tmp_path, compressed[:-500]), "GZIP"))
    assert len(got) == error.record_index == 2
    assert "ends before its end mark" in error.reason
    assert isinstance(error, TruncatedShardError)


def test_a_gzip_file_without_its_last_bytes_is_noticed_though_all_records_are_there(tmp_path, content):
    got, error = consume(walk(put(tmp_path, gzip.compress(content)[:-4]), "GZIP"))
    assert len(got) == error.record_index == 3
    assert "ends before its end mark" in error.reason


def test_a_gzip_file_damaged_inside_is_noticed(tmp_path):
    payloads = [random.Random(index).randbytes(1000) for index in range(3)]
    damaged = bytearray(shard_bytes(tmp_path, payloads, "GZIP"))
    damaged[-6] ^= 1  # gzip's own checksum
    got, error = consume(walk(put(tmp_path, bytes(damaged)), "GZIP"))
    assert len(got) == 3
    assert "damaged" in error.reason
    assert not isinstance(error, TruncatedShardError)


def test_a_plain_file_is_detected(tmp_path, content):
    assert detect_compression(put(tmp_path, content)) == ""
    assert detect_compression(put(tmp_path, b"")) == ""
    assert detect_compression(put(tmp_path, b"\x1f")) == ""


def test_a_plain_file_that_starts_with_the_magic_bytes_of_gzip_is_plain(tmp_path):
    payload = bytes(0x8B1F)  # the length is stored little-endian: 1f 8b 00 ...
    path = put(tmp_path, shard_bytes(tmp_path, [payload]))
    assert (tmp_path / "train-00000-of-00001").read_bytes()[:2] == b"\x1f\x8b"
    assert detect_compression(path) == ""
    assert list(walk(path)) == [RecordSpan(0, 35_615)]


def test_a_damaged_plain_file_that_starts_with_the_magic_bytes_is_plain_and_damaged(tmp_path):
    damaged = bytearray(shard_bytes(tmp_path, [bytes(0x8B1F)]))
    damaged[9] ^= 1
    path = put(tmp_path, bytes(damaged))
    assert detect_compression(path) == ""
    assert "checksum" in consume(walk(path))[1].reason


def test_zlib_compression_is_refused_by_name(tmp_path):
    path = put(tmp_path, shard_bytes(tmp_path, PAYLOADS, "ZLIB"))
    with pytest.raises(DataError, match=r"zlib-compressed\. Only plain and gzip"):
        detect_compression(path)
    assert zlib.decompress((tmp_path / "train-00000-of-00001").read_bytes())


def test_an_unknown_compression_is_a_programming_error(tmp_path, content):
    with pytest.raises(ValueError, match="ZIP"):
        list(walk(put(tmp_path, content), "ZIP"))


def test_a_missing_file_is_named(tmp_path):
    for operation in (detect_compression, lambda path: list(walk(path))):
        with pytest.raises(DataError, match=r"Cannot read .*absent"):
            operation(str(tmp_path / "absent"))


def test_a_remote_file_works_the_same(tmp_path):
    for name, compression in (("plain", ""), ("packed", "GZIP")):
        path = f"ram://tfrecord_test/{name}"
        with tf.io.TFRecordWriter(path, compression) as writer:
            for payload in PAYLOADS:
                writer.write(payload)
        assert detect_compression(path) == compression
        assert list(walk(path, compression)) == SPANS
        assert [record.payload for record in read_records(path, compression)] == PAYLOADS
    with pytest.raises(DataError, match=r"Cannot re.* ram://tfrecord_test/absent"):
        list(walk("ram://tfrecord_test/absent"))
