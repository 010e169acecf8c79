"""The options of the elastic factor check themselves."""

from __future__ import annotations

import math

import pytest

from echoing.elastic_options import ElasticOptions
from echoing.errors import OptionError


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"max_factor": math.nan}, "max_echo_factor"),
        ({"max_factor": math.inf}, "max_echo_factor"),
        ({"max_factor": 0.5}, "max_echo_factor"),
        ({"max_factor": 2, "min_factor": 3}, "max_echo_factor"),
        ({"max_factor": 2e6}, "max_echo_factor"),
        ({"max_factor": 2, "min_factor": 0.5}, "min_echo_factor"),
        ({"max_factor": 2, "initial_factor": 2.5}, "initial_echo_factor"),
        ({"max_factor": 2, "target_waiting": 0}, "target_waiting"),
        ({"max_factor": 2, "target_waiting": 0.6}, "target_waiting"),
        ({"max_factor": 2, "window_steps": 0}, "window_steps"),
        ({"max_factor": 2, "settle_steps": -1}, "settle_steps"),
    ],
)
def test_option_out_of_range_is_refused_by_name(options, name):
    with pytest.raises(OptionError, match=f"^{name} is "):
        ElasticOptions(**options)
