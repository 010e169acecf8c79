from pathlib import Path

import pytest

from echoing.errors import DataError
from pipeline.datasets.class_list import known_classes, missing_classes_warning, settle_classes


def test_without_a_list_the_classes_found_are_the_list() -> None:
    assert settle_classes(None, ["a", "b"], "out") == ["a", "b"]


def test_a_known_list_decides_and_keeps_classes_that_were_not_found() -> None:
    assert settle_classes(["c", "a", "b"], ["a", "c"], "out") == ["c", "a", "b"]


def test_a_class_that_the_list_does_not_know_is_an_error_that_names_it() -> None:
    with pytest.raises(DataError, match=r"Class 'dogs' is not in the class list .*'cats'"):
        settle_classes(["cats"], ["cats", "dogs"], "out")


def test_labels_of_the_folder_count_unless_all_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("b\na\n")
    assert known_classes(str(tmp_path), None, fresh=False) == ["b", "a"]
    assert known_classes(str(tmp_path), None, fresh=True) is None


def test_a_labels_file_counts_and_must_agree_with_the_folder(tmp_path: Path) -> None:
    given = tmp_path / "given.txt"
    given.write_text("a\nb\n")
    assert known_classes(str(tmp_path / "new"), str(given), fresh=False) == ["a", "b"]
    (tmp_path / "labels.txt").write_text("b\na\n")
    with pytest.raises(DataError, match="lists other classes"):
        known_classes(str(tmp_path), str(given), fresh=False)
    (tmp_path / "labels.txt").write_text("a\nb\n")
    assert known_classes(str(tmp_path), str(given), fresh=False) == ["a", "b"]


def test_a_missing_labels_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.txt does not exist"):
        known_classes(str(tmp_path), str(tmp_path / "none.txt"), fresh=False)


def test_the_warning_names_the_missing_classes_and_is_absent_without_any() -> None:
    (warning,) = missing_classes_warning(["a", "b", "c"], {"a", "c"}, "validation")
    assert "1 class has no picture in split 'validation'" in warning and "'b'" in warning
    assert missing_classes_warning(["a"], {"a"}, "train") == []
