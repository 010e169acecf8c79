from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoing.errors import DataError, OptionError
from trainer.checkpoint_manifest import (
    DamagedError,
    Manifest,
    StoredFile,
    check_averages,
    check_facts,
)

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
)


@given(st.integers(0, 2**63), st.dictionaries(st.text(), SCALARS), st.dictionaries(st.text(), SCALARS))
def test_json_keeps_every_value(step: int, position: dict[str, Any], facts: dict[str, Any]) -> None:
    manifest = Manifest(step, position, facts, True, (StoredFile("state.index", 7, "ab"),), 0.5)
    assert Manifest.from_json(manifest.to_json()) == manifest


def test_every_flipped_bit_of_the_file_is_noticed() -> None:
    content = Manifest(20, {"batch": 40}, {"num_classes": 5}).to_json()
    unnoticed = []
    for position in range(len(content) * 8):
        flipped = bytearray(content)
        flipped[position // 8] ^= 1 << position % 8
        try:
            manifest = Manifest.from_json(bytes(flipped))
        except DamagedError:
            continue
        # White space outside the values may change.
        if manifest != Manifest(20, {"batch": 40}, {"num_classes": 5}):
            unnoticed.append(position)
    assert unnoticed == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"3", b'{"sha256": ""}', b"\x00\xff", b"null"])
def test_anything_else_is_damage(content: bytes) -> None:
    with pytest.raises(DamagedError):
        Manifest.from_json(content)


def test_later_format_is_named_and_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.checkpoint_manifest.FORMAT", 2)
    content = Manifest(1, {}, {}).to_json()
    monkeypatch.undo()
    with pytest.raises(DataError, match=r"format 2.*knows format 1"):
        Manifest.from_json(content)


def test_numpy_numbers_become_plain_ones() -> None:
    manifest = Manifest(np.int64(3), {"batch": np.int32(4)}, {"width": np.float32(0.5)})  # type: ignore[arg-type]
    assert json.loads(manifest.to_json())["checkpoint"]["position"] == {"batch": 4}
    assert manifest.facts == {"width": 0.5}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [1], {"a": 1}, b"bytes", np.zeros(2)])
def test_value_that_json_does_not_keep_is_refused_with_its_name(value: Any) -> None:
    with pytest.raises(OptionError, match=r"position\['epoch'\] is"):
        Manifest(1, {"epoch": value}, {})


@pytest.mark.parametrize("step", [-1, 1.5, None])
def test_step_is_a_count(step: Any) -> None:
    with pytest.raises(OptionError, match="step"):
        Manifest(step, {}, {})


def test_other_number_of_classes_is_said_in_words() -> None:
    manifest = Manifest(2, {}, {"num_classes": 5, "model": "inception_v3"})
    with pytest.raises(
        DataError, match=r"Checkpoint has 5 classes, you asked for 7. The checkpoint is run1/c"
    ):
        check_facts(manifest, {"num_classes": 7, "model": "inception_v3"}, "run1/c")


def test_every_difference_is_named() -> None:
    manifest = Manifest(2, {}, {"model": "resnet18", "image_size": 75})
    with pytest.raises(DataError) as error:
        check_facts(manifest, {"model": "resnet50", "image_size": 80, "optimizer": "sgd"}, "c")
    assert str(error.value).startswith(
        "Checkpoint has model resnet18, you asked for resnet50; checkpoint has image_size 75, you asked for "
        "80; checkpoint has no optimizer on record, you asked for sgd."
    )


def test_facts_that_are_not_asked_for_are_not_compared() -> None:
    check_facts(Manifest(2, {}, {"num_classes": 5, "optimizer": "sgd"}), {"num_classes": 5}, "c")
    check_facts(Manifest(2, {}, {}), {}, "c")


def test_missing_averages_are_one_message_with_the_way_out() -> None:
    with pytest.raises(DataError, match="checkpoint has no EMA weights; use raw weights with `--raw`"):
        check_averages(Manifest(2, {}, {}), "c", "--raw")
    check_averages(Manifest(2, {}, {}, has_averages=True), "c", "--raw")
