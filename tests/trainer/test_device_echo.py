from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from echoing.errors import DataError, OptionError
from trainer.device_echo import DeviceEcho, check_uses


def test_defaults_change_nothing_and_leave_the_uses_to_the_batch() -> None:
    echo = DeviceEcho()
    assert (echo.reaugment, echo.opportunistic_max_uses, echo.seed) == (False, None, 0)
    assert echo.max_uses(1) == 1
    assert echo.max_uses(7) == 7


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("reaugment", 1),
        ("opportunistic_max_uses", 0),
        ("opportunistic_max_uses", 2.0),
        ("opportunistic_max_uses", True),
        ("seed", -1),
    ],
)
def test_option_that_is_not_allowed_is_refused_by_name(option: str, value: Any) -> None:
    with pytest.raises(OptionError, match=option):
        DeviceEcho(**{option: value})


def test_batch_may_be_used_up_to_the_opportunistic_maximum() -> None:
    echo = DeviceEcho(opportunistic_max_uses=3)
    assert [echo.max_uses(uses) for uses in (1, 2, 3)] == [3, 3, 3]
    with pytest.raises(DataError, match="device_uses 4, more than opportunistic_max_uses, which is 3"):
        echo.max_uses(4)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_uses_are_one_integer_of_any_width(dtype: Any) -> None:
    assert check_uses(np.array(2, dtype)) == 2


@pytest.mark.parametrize(
    ("uses", "message"),
    [
        (np.array(0), "device_uses 0, but must be used at least once"),
        (np.array(-3), "device_uses -3"),
        (np.array([1, 1]), r"the shape \[2\] and the dtype int64"),
        (np.array(1.0), r"the shape \[\] and the dtype float64"),
        (np.array(True), "the dtype bool"),
    ],
)
def test_uses_that_are_no_count_are_refused(uses: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_uses(uses)
