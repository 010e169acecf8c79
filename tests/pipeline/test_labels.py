import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echoing.errors import DataError
from pipeline.labels import read_labels, write_labels

NAMES = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1).filter(str.strip),
    min_size=1,
    unique=True,
)


def test_an_absent_file_reads_as_none(tmp_path):
    assert read_labels(str(tmp_path)) is None


def test_line_k_is_the_name_of_class_k(tmp_path):
    write_labels(str(tmp_path), ["cat", "dog"])
    assert (tmp_path / "labels.txt").read_bytes() == b"cat\ndog\n"


@pytest.mark.parametrize(
    "name", ["red fox", "a,b", "it's", "#1", '"', "a/b", " x ", "née", "a\tb", "a\u2028b"]
)
def test_any_name_comes_back_the_very_same(tmp_path, name):
    write_labels(str(tmp_path), ["first", name, "last"])
    assert read_labels(str(tmp_path)) == ["first", name, "last"]


@given(names=NAMES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_reading_inverts_writing(tmp_path, names):
    # A byte order mark is an encoding signature at the start of a file, not a part of a name.
    names = [name.lstrip("\ufeff") or "x" for name in names]
    if len(set(names)) == len(names) and all(name.strip() for name in names):
        write_labels(str(tmp_path), names)
        assert read_labels(str(tmp_path)) == names


@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "empty name"),
        (" ", "empty name"),
        ("a\nb", "line break"),
        ("a\rb", "line break"),
        ("\udcff", "UTF-8"),
    ],
)
def test_a_name_that_would_not_come_back_is_refused(tmp_path, position, name, message):
    names = ["one", "two"]
    names.insert(position, name)
    with pytest.raises(DataError, match=message) as caught:
        write_labels(str(tmp_path), names)
    assert f"class {position + 1}" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_name_given_twice_is_refused_with_both_classes(tmp_path):
    with pytest.raises(DataError, match=r"class 3: the name 'a' is that of class 1 too"):
        write_labels(str(tmp_path), ["a", "b", "a"])


def test_no_names_are_refused(tmp_path):
    with pytest.raises(DataError, match="no class names"):
        write_labels(str(tmp_path), [])


def test_files_of_other_editors_are_read(tmp_path):
    (tmp_path / "labels.txt").write_bytes(b"\xef\xbb\xbfcat\r\ndog\r\n\r\n")
    assert read_labels(str(tmp_path)) == ["cat", "dog"]


def test_a_missing_last_line_end_is_forgiven(tmp_path):
    (tmp_path / "labels.txt").write_bytes(b"cat\ndog")
    assert read_labels(str(tmp_path)) == ["cat", "dog"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no class names"),
        (b"\n\n", "no class names"),
        (b"a\n\nb\n", "class 2"),
        (b"a\na\n", "too"),
        (b"\xff\n", "UTF-8"),
    ],
)
def test_a_file_that_would_shift_or_hide_a_class_is_refused(tmp_path, content, message):
    (tmp_path / "labels.txt").write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read_labels(str(tmp_path))
    assert "labels.txt" in str(caught.value)


def test_a_remote_folder_works_the_same():
    write_labels("ram://labels_test", ["cat", "dog"])
    assert read_labels("ram://labels_test") == ["cat", "dog"]
