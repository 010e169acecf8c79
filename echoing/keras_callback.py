"""Echo accounts in `keras.Model.fit`."""

from __future__ import annotations

from typing import Any

import keras

from echoing.measured_echo import MeasuredEcho


class EchoCallback(keras.callbacks.Callback):
    """Takes in every training batch and adds the echo's accounts to the logs of each epoch.

    The logs gain `echo_fresh` and `echo_trained` (examples so far), `echo_duplicates` (further copies of an
    example within one batch, so far) and, with an elastic factor, `echo_factor`. Put it before callbacks that
    write logs.

    Args:
        measured: the echo of the dataset that is fitted.
    """

    def __init__(self, measured: MeasuredEcho) -> None:
        super().__init__()
        self._measured = measured

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Takes in the batch, and sets the elastic factor."""
        self._measured.on_step()

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Leaves out what happened since the last epoch."""
        self._measured.pause()

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        """Leaves out the evaluation."""
        self._measured.pause()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Adds the accounts to the logs."""
        if logs is None:
            return
        report = self._measured.report()
        logs["echo_fresh"] = report.fresh
        logs["echo_trained"] = report.trained
        logs["echo_duplicates"] = report.duplicates_within_batches
        if self._measured.controller is not None:
            logs["echo_factor"] = self._measured.controller.factor
