"""With deterministic kernels it is tested in `test_session_replicas`: the switch is for a whole process."""

from __future__ import annotations

import time

import pytest
import tensorflow as tf

from trainer import time_stamp as module
from trainer.time_stamp import time_stamp


@pytest.mark.parametrize("deterministic", [False, True])
def test_time_is_read_each_time_that_a_function_runs(
    deterministic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module.config, "is_op_determinism_enabled", lambda: deterministic)
    compiled = tf.function(time_stamp)
    before, first, second, after = time.time(), compiled(), compiled(), time.time()
    assert first.dtype == tf.float64 and first.shape == ()
    assert before - 1e-3 <= float(first) <= float(second) <= after + 1e-3
