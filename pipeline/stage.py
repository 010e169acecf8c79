"""What a stage is, and the ordered tuple of stages that a pipeline is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from echoing.errors import OptionError


class Stage(Protocol):
    """A named step from dataset to dataset: usable in a `Pipeline`, with `dataset.apply` and on its own."""

    @property
    def name(self) -> str:
        """The stage's name, as in `storage`, `decode`, `augment`, `batch`, `transfer`."""
        ...

    def __call__(self, dataset: Any, /) -> Any:
        """Returns the transformed `tf.data.Dataset`."""
        ...


@dataclass(frozen=True)
class Pipeline:
    """Stages in order. Applied to a dataset of shards, it gives the dataset that feeds the device.

    Attributes:
        stages: the stages; their names are unique.
    """

    stages: tuple[Stage, ...]

    def __post_init__(self) -> None:
        """Refuses two stages of one name.

        Raises:
            OptionError: a name occurs twice.
        """
        if len(set(self.names)) != len(self.stages):
            raise OptionError("stages", self.names, "stages with different names")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the stages in order."""
        return tuple(stage.name for stage in self.stages)

    def __call__(self, dataset: Any) -> Any:
        """Applies every stage in order."""
        for stage in self.stages:
            dataset = dataset.apply(stage)
        return dataset

    def prefix(self, name: str) -> Pipeline:
        """Returns everything up to and including the stage `name`, for measuring it alone.

        Raises:
            OptionError: no such stage.
        """
        return Pipeline(self.stages[: self._position(name) + 1])

    def with_stage_after(self, name: str, stage: Stage) -> Pipeline:
        """Returns the pipeline with one more stage, right after the stage `name`.

        Raises:
            OptionError: no such stage.
        """
        end = self._position(name) + 1
        return Pipeline((*self.stages[:end], stage, *self.stages[end:]))

    def _position(self, name: str) -> int:
        if name not in self.names:
            raise OptionError("stage", name, f"one of {', '.join(self.names)}")
        return self.names.index(name)
