"""Echo at `after_transfer`: the device keeps a batch and uses it again. Imports no TensorFlow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from echoing.checks import check_integer
from echoing.errors import DataError, OptionError

if TYPE_CHECKING:
    import numpy as np

DEVICE_USES = "device_uses"
"""int64 []: on how many consecutive steps the device uses the batch that carries it, >= 1. It is no tag."""


@dataclass(frozen=True)
class DeviceEcho:
    """What the device does with a batch beyond its `device_uses`, and how its repeats differ.

    Batches with `device_uses` are repeated without these options too.

    Attributes:
        reaugment: flip, shift and recolour the images of each repeat anew (see `trainer.reaugment`); the
            first use of a batch is never changed.
        opportunistic_max_uses: elastic echo: where the next batch has not arrived when a step ends, the batch
            held is used again, until it has been used so often; then the device waits. Never when the next
            batch has arrived. 1 repeats nothing; None is off. `device_uses` is the least that such a batch is
            used, and may not exceed it.
        seed: of the re-augmentation, together with the step's number.

    Raises:
        OptionError: a value is not allowed.
    """

    reaugment: bool = False
    opportunistic_max_uses: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.reaugment, bool):
            raise OptionError("reaugment", self.reaugment, "True or False")
        if self.opportunistic_max_uses is not None:
            check_integer("opportunistic_max_uses", self.opportunistic_max_uses, minimum=1)
        check_integer("seed", self.seed, minimum=0)

    def max_uses(self, device_uses: int) -> int:
        """Returns the most uses of a batch that asks for `device_uses`.

        Raises:
            DataError: the batch asks for more than `opportunistic_max_uses`.
        """
        if self.opportunistic_max_uses is None:
            return device_uses
        if device_uses > self.opportunistic_max_uses:
            raise DataError(
                f"A batch has {DEVICE_USES} {device_uses}, more than opportunistic_max_uses, which is "
                f"{self.opportunistic_max_uses}. Raise the latter, or lower the echo factor."
            )
        return self.opportunistic_max_uses


def check_uses(uses: np.ndarray[Any, Any]) -> int:
    """Returns the value of a batch's `device_uses`.

    Raises:
        DataError: it is no single integer >= 1.
    """
    check_uses_kind(uses.shape, uses.dtype.kind in "iu", str(uses.dtype))
    return check_uses_value(int(uses))


def check_uses_kind(shape: Any, is_integer: bool, dtype: str) -> None:
    """Checks the shape and the dtype of `device_uses`.

    Raises:
        DataError: it is no single integer.
    """
    if tuple(shape) != () or not is_integer:
        raise DataError(
            f"{DEVICE_USES} has the shape {list(shape)} and the dtype {dtype}, but must be one int64 for the "
            "whole batch. Add it after the batch stage."
        )


def check_uses_value(uses: int) -> int:
    """Returns `uses`.

    Raises:
        DataError: it is below 1.
    """
    if uses < 1:
        raise DataError(
            f"A batch has {DEVICE_USES} {uses}, but must be used at least once. "
            "Filter batches that are not wanted out of the dataset."
        )
    return uses
