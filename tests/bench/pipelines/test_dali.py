from pathlib import Path

from bench.pipelines.dali import write_index


def test_index_names_each_record_with_its_frame(small_data, tmp_path):
    shard = min(Path(small_data).glob("train-*"))
    path = write_index(str(shard), tmp_path / "shard.idx")
    spans = [tuple(map(int, line.split())) for line in Path(path).read_text().splitlines()]
    # Length (8 bytes), its checksum (4), the payload and its checksum (4), one record after the other.
    content, expected, offset = shard.read_bytes(), [], 0
    while offset < len(content):
        length = int.from_bytes(content[offset : offset + 8], "little") + 16
        expected.append((offset, length))
        offset += length
    assert spans == expected
    assert len(spans) == 4
