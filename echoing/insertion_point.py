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
        return self is InsertionPoint.AFTER_BATCH

    @property
    def stage_name(self) -> str:
        """Name of the stage that ends at this point."""
        return _STAGE_BEFORE[self]


ALIASES = {
    "before_decode": "after_read",
    "before_augment": "after_decode",
    "before_batch": "after_augment",
    "before_transfer": "after_batch",
}
"""The second spelling of each point; the first, the value of the enumeration, is canonical."""

_STAGE_BEFORE = {
    InsertionPoint.AFTER_READ: "storage",
    InsertionPoint.AFTER_DECODE: "decode",
    InsertionPoint.AFTER_AUGMENT: "augment",
    InsertionPoint.AFTER_BATCH: "batch",
}
