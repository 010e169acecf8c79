"""A folder of checkpoints: which are there, where one is written, and how the rest is removed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from echoing.errors import DataError
from trainer import checkpoint_files, model_folder
from trainer.checkpoint_manifest import Manifest, Scalar


@dataclass(frozen=True)
class Restored:
    """A checkpoint that is whole and belongs to the model asked for.

    Attributes:
        path: its folder.
        manifest: its step, position, facts and score.
        passed_over: newer checkpoints that were not whole, each with its fault.
    """

    path: str
    manifest: Manifest
    passed_over: tuple[str, ...] = ()

    @property
    def step(self) -> int:
        """Training steps done when it was made."""
        return self.manifest.step

    @property
    def position(self) -> Mapping[str, Scalar]:
        """The state of the input, as it was given to `save`."""
        return self.manifest.position

    @property
    def has_averages(self) -> bool:
        """Whether it holds moving averages (EMA weights)."""
        return self.manifest.has_averages

    def read(self, objects: Mapping[str, Any], partial: bool = False) -> None:
        """Assigns its values to the variables of `objects`, which have the names that they were saved by.

        Args:
            objects: trackable objects with their variables made.
            partial: whether it may hold more than `objects`, as for an evaluation. For exact resumption it
                must not: a forgotten object would go on from its initial values.

        Raises:
            DataError: it does not fit.
        """
        checkpoint_files.read_values(self.path, objects, partial)


class CheckpointFolder:
    """The checkpoints in one folder, each in a folder of its own, named by its step.

    Args:
        path: the folder. It need not exist; it is made by the first `write`.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def checkpoint(self, step: int) -> str:
        """Returns the folder of a step's checkpoint."""
        return model_folder.join(self.path, checkpoint_files.folder_name(step))

    def steps(self, complete: bool = True) -> list[int]:
        """Returns the steps of the checkpoints, ascending.

        Args:
            complete: whether to leave out those without a manifest.

        Raises:
            DataError: the folder cannot be read.
        """
        found = [checkpoint_files.step_of(name) for name in model_folder.names(self.path)]
        steps = sorted(step for step in found if step is not None)
        return [step for step in steps if self.is_complete(step)] if complete else steps

    def is_complete(self, step: int) -> bool:
        """Whether a step's checkpoint has a manifest."""
        return checkpoint_files.MANIFEST_NAME in model_folder.names(self.checkpoint(step))

    def write(self, step: int, write: Callable[[str], Any]) -> None:
        """Calls `write` with the folder of a step's checkpoint.

        Raises:
            DataError: it could not be written. What there was of it is removed, and the others are as they
                were.
        """
        path = self.checkpoint(step)
        try:
            write(path)
        except model_folder.FILE_ERRORS as error:
            with contextlib.suppress(*model_folder.FILE_ERRORS):
                model_folder.remove_folder(path)
            left = ", ".join(str(other) for other in self.steps() if other != step)
            kept = f"The earlier ones are whole (steps {left})" if left else "There are no earlier ones"
            raise DataError(
                f"Cannot save the checkpoint of step {step} in {path}: {model_folder.reason(error)}. {kept}. "
                "Make room, or name a folder that you may write to."
            ) from error

    def remove_all_but(self, kept: Collection[int]) -> None:
        """Removes the checkpoints of other steps, and what interrupted saves have left.

        Raises:
            DataError: one cannot be removed.
        """
        for step in self.steps(complete=False):
            if step not in kept:
                path = self.checkpoint(step)
                with model_folder.naming("remove", path):
                    # First what makes it visible: a kill in between leaves no complete checkpoint in pieces.
                    with contextlib.suppress(tf.errors.NotFoundError):
                        tf.io.gfile.remove(model_folder.join(path, checkpoint_files.MANIFEST_NAME))
                    model_folder.remove_folder(path)
