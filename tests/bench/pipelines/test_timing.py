import pytest

from bench.pipelines.timing import Timing
from echoing.errors import OptionError


def test_an_answer_is_waited_for_ten_times_its_length_and_the_patience():
    timing = Timing(measured_seconds=4.0, settle_seconds=1.0, answer_patience_seconds=60.0)
    assert timing.answer_seconds == 110.0


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_measured_time_must_be_above_zero(value):
    with pytest.raises(OptionError, match="measured_seconds"):
        Timing(measured_seconds=value)


@pytest.mark.parametrize(
    "name",
    [
        "warm_up_seconds",
        "settle_seconds",
        "start_patience_seconds",
        "answer_patience_seconds",
        "stop_patience_seconds",
    ],
)
def test_other_times_may_be_zero_but_not_less(name):
    Timing(**{name: 0.0})
    with pytest.raises(OptionError, match=name):
        Timing(**{name: -0.1})
