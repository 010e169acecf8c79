"""The boundaries of the host pipeline where an echo may stand."""

from __future__ import annotations

import enum

from echoing.errors import OptionError


class InsertionPoint(enum.Enum):
    """A boundary between two stages, in pipeline order.

    Everything before it is upstream, everything after it, the training step included, is downstream.
    """

    AFTER_READ = "after_read"
    AFTER_DECODE = "after_decode"
    AFTER_AUGMENT = "after_augment"
    AFTER_BATCH = "after_batch"
    AFTER_TRANSFER = "after_transfer"

    @classmethod
    def parse(cls, name: str | InsertionPoint) -> InsertionPoint:
        """Returns the point that `name` denotes, in either spelling.

        Args:
            name: a canonical name such as `after_decode` or its alias, `before_augment`.

        Raises:
            OptionError: no such point.
        """
        if isinstance(name, cls):
            return name
        try:
            return cls(ALIASES.get(str(name), str(name)))
        except ValueError:
            allowed = "one of " + ", ".join([*(point.value for point in cls), *ALIASES])
            raise OptionError("insert_point", name, allowed) from None

    @property
    def echoes_batches(self) -> bool:
        """Whether the elements that pass this point are batches, not examples."""
        return self in (InsertionPoint.AFTER_BATCH, InsertionPoint.AFTER_TRANSFER)

    @property
    def is_on_device(self) -> bool:
        """Whether the echo stands on the device, just before the step: the trainer serves the repeats."""
        return self is InsertionPoint.AFTER_TRANSFER

    @property
    def stage_name(self) -> str:
        """Name of the stage that ends at this point."""
        return _STAGE_BEFORE[self]


ALIASES = {
    "before_decode": "after_read",
    "before_augment": "after_decode",
    "before_batch": "after_augment",
    "before_transfer": "after_batch",
    "before_step": "after_transfer",
}
"""The second spelling of each point; the first, the value of the enumeration, is canonical."""

_STAGE_BEFORE = {
    InsertionPoint.AFTER_READ: "storage",
    InsertionPoint.AFTER_DECODE: "decode",
    InsertionPoint.AFTER_AUGMENT: "augment",
    InsertionPoint.AFTER_BATCH: "batch",
    InsertionPoint.AFTER_TRANSFER: "transfer",
}
