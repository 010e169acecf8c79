from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoing.errors import OptionError
from trainer.emulation.presets import PRESETS, get_preset


@pytest.mark.parametrize(
    ("name", "batch_size", "step_seconds"),
    [("tpu-v2-8", 1024, 0.815), ("v100", 64, 0.195), ("a100", 400, 0.435), ("h100", 400, 0.224)],
)
def test_preset_gives_its_source_step_time_at_its_own_batch(
    name: str, batch_size: int, step_seconds: float
) -> None:
    assert get_preset(name).step_seconds_for(batch_size) == step_seconds


def test_tpu_preset_at_an_eighth_of_the_batch_takes_an_eighth_of_the_time() -> None:
    assert get_preset("tpu-v2-8").step_seconds_for(128) == pytest.approx(0.101875)


def test_tpu_preset_says_that_its_batch_is_not_the_guides() -> None:
    assert "guide does not name the batch" in get_preset("tpu-v2-8").provenance


def test_name_in_upper_case_is_found() -> None:
    assert get_preset("A100").name == "a100"


def test_unknown_name_is_refused_with_all_names() -> None:
    with pytest.raises(OptionError) as raised:
        get_preset("tpu-v9")
    message = str(raised.value)
    assert "'tpu-v9'" in message
    assert all(name in message for name in PRESETS)


@pytest.mark.parametrize("batch_size", [0, -1, 2.5, True])
def test_batch_size_that_is_no_positive_integer_is_refused(batch_size: object) -> None:
    with pytest.raises(OptionError, match="batch_size"):
        get_preset("a100").step_seconds_for(batch_size)  # type: ignore[arg-type]


@given(st.sampled_from(sorted(PRESETS)), st.integers(1, 100_000))
def test_rate_of_images_is_the_same_for_every_batch(name: str, batch_size: int) -> None:
    preset = get_preset(name)
    rate = preset.batch_size / preset.step_seconds
    assert batch_size / preset.step_seconds_for(batch_size) == pytest.approx(rate)


def test_presets_import_no_tensorflow() -> None:
    code = (
        "import sys, trainer.emulation.presets; "
        "sys.exit('tensorflow' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
