"""The checkpoints of a training: which to write, which to keep, and which to go on from."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from echoing.checks import check_integer
from echoing.errors import DataError
from trainer import checkpoint_files, model_folder
from trainer.best_checkpoint import BestCheckpoint
from trainer.checkpoint_folder import CheckpointFolder, Restored
from trainer.checkpoint_manifest import DamagedError, Manifest, Scalar, check_facts, check_scalars

CHECKPOINTS_FOLDER = "checkpoints"
BEST_FOLDER = "best"


class CheckpointWarning(UserWarning):
    """A checkpoint was passed over; the message says which and why, and what is done instead."""


def warn(message: str) -> None:
    """Says it as a Python warning."""
    warnings.warn(message, CheckpointWarning, stacklevel=2)


class CheckpointKeeper:
    """Keeps the newest checkpoints of a model folder, and apart from them the best.

    A checkpoint is a folder `checkpoints/step-N` whose manifest is written last. Whatever has no manifest, as
    after a kill, is not there for a reader. No file names a folder, so that the model folder may be moved.
    Nothing is written before the first `save`. One training at a time may write into a folder.

    With several workers on one file system all read, and one, the chief, writes. The variables must then be
    readable without the other workers: mirrored ones are, `ON_READ` ones are not.

    Args:
        folder: the model folder, local or remote.
        facts: what the model at hand is, such as `{"num_classes": 5}`. A checkpoint that differs in one of
            them, or does not record it, is refused. Facts that only the checkpoint has are not compared, so
            that an evaluation leaves out the optimizer.
        keep: how many of the newest to keep, >= 1. One leaves nothing to fall back to.
        writes: whether this process writes; where not, `save` and `keep_best` do nothing.
        say: is told, once each, which checkpoints were passed over.

    Raises:
        OptionError: a value is not allowed.
    """

    def __init__(
        self,
        folder: str,
        facts: Mapping[str, Scalar],
        keep: int = 5,
        writes: bool = True,
        say: Callable[[str], None] = warn,
    ) -> None:
        path = model_folder.join(folder, CHECKPOINTS_FOLDER)
        self._folder = CheckpointFolder(path)
        self._best = BestCheckpoint(CheckpointFolder(model_folder.join(path, BEST_FOLDER)), self._folder)
        self._facts = check_scalars("facts", facts)
        self._keep = check_integer("keep", keep, minimum=1)
        self._writes = writes
        self._say = say
        self._looked = False
        self._whole: set[int] = set()

    def steps(self) -> list[int]:
        """Returns the steps of the complete checkpoints, ascending; whether they are whole is not checked."""
        return self._folder.steps()

    def newest(self) -> Restored | None:
        """Returns the newest checkpoint that is whole, or None if there is none to go on from.

        All bytes of it are read and compared with their checksums. Newer ones that are damaged or half
        written are passed over, and `say` is told.

        Raises:
            DataError: there are checkpoints and none is whole; or one cannot be read, or is of another model.
        """
        self._looked = True
        passed_over: list[str] = []
        for step in reversed(self._folder.steps(complete=False)):
            path = self._folder.checkpoint(step)
            try:
                manifest = checkpoint_files.read_manifest(path)
                if manifest is None:
                    passed_over.append(f"{path}: its writing was interrupted, or goes on")
                    continue
                check_facts(manifest, self._facts, path)
                checkpoint_files.check_files(path, manifest)
            except DamagedError as error:
                if not self._folder.is_complete(step):
                    # Removed by a training while an evaluation was reading it: newer ones are there.
                    return self.newest()
                passed_over.append(f"{path}: {error}")
                continue
            for fault in passed_over:
                self._say(f"Checkpoint passed over, {fault}. The one before, of step {step}, is taken.")
            self._whole.add(step)
            return Restored(path, manifest, tuple(passed_over))
        if self.steps():
            raise DataError(
                f"No checkpoint in {self._folder.path} is whole: {'; '.join(passed_over)}. Bring back one of "
                "them from a copy, or remove the folder to train from the beginning."
            )
        # A kill during the first save leaves no checkpoint, and nothing is lost by beginning anew.
        for fault in passed_over:
            self._say(f"Checkpoint passed over, {fault}. There is none before it: training begins anew.")
        return None

    def restore_latest(self, objects: Mapping[str, Any]) -> Restored | None:
        """Reads the newest whole checkpoint into `objects`, all of it; see `newest` and `Restored.read`."""
        restored = self.newest()
        if restored is not None:
            restored.read(objects)
        return restored

    def best(self) -> Restored | None:
        """Returns the checkpoint with the best evaluation, or None if none has been kept.

        Raises:
            DataError: it is damaged, cannot be read, or is of another model.
        """
        manifest = self._best.manifest()
        if manifest is None:
            return None
        return self._checked(self._best.path(manifest), manifest, "The best checkpoint,")

    def at(self, step: int) -> Restored | None:
        """Returns the checkpoint of a step, or None if it is not kept.

        Raises:
            DataError: it is damaged, cannot be read, or is of another model.
        """
        path = self._folder.checkpoint(step)
        try:
            manifest = checkpoint_files.read_manifest(path)
        except DamagedError as error:
            raise DataError(f"The checkpoint {path} is damaged: {error}. Use the newest.") from error
        return None if manifest is None else self._checked(path, manifest, "The checkpoint")

    def save(
        self,
        objects: Mapping[str, Any],
        step: int,
        position: Mapping[str, Scalar],
        has_averages: bool = False,
    ) -> str:
        """Writes a checkpoint, then removes those that are not kept and what interrupted saves have left.

        What this keeper has saved or restored at the same step is not written again.

        Args:
            objects: trackable objects, or lists or dictionaries of them, by name.
            step: training steps done.
            position: the small state of the input: strings and numbers.
            has_averages: whether moving averages are among the objects.

        Returns:
            The checkpoint's folder.

        Raises:
            NotFiniteError: a value is NaN or infinite.
            DataError: it cannot be written, as on a full disk: those before are as they were; or the folder
                holds the checkpoints of a training that was not resumed.
        """
        path = self._folder.checkpoint(step)
        if not self._writes or step in self._whole:
            return path
        if not self._looked and self.steps():
            raise DataError(
                f"{self._folder.path} holds checkpoints of another training. Resume it, or name another "
                "model folder."
            )
        self._looked = True
        manifest = Manifest(step, position, self._facts, has_averages)
        self._folder.write(step, lambda path: checkpoint_files.write_checkpoint(path, objects, manifest))
        # Later steps are those that `newest` passed over: this training has not come to them yet.
        kept = [other for other in self.steps() if other <= step][-self._keep :]
        self._folder.remove_all_but(kept)
        self._whole = (self._whole | {step}) & set(kept)
        return path

    def keep_best(self, step: int, score: float) -> bool:
        """Keeps a copy of a step's checkpoint if its evaluation is the best so far.

        Args:
            step: of a checkpoint that is still kept.
            score: of its evaluation, such as the share of right answers, >= 0; more is better.

        Returns:
            Whether it is the best now; False where this process does not write. The first of equals stays.

        Raises:
            OptionError: the score is negative or not finite.
            DataError: there is no such checkpoint, or it cannot be copied: the best before is as it was.
        """
        return self._writes and self._best.keep(step, score)

    def _checked(self, path: str, manifest: Manifest, name: str) -> Restored:
        check_facts(manifest, self._facts, path)
        try:
            checkpoint_files.check_files(path, manifest)
        except DamagedError as error:
            comma = "," if name.endswith(",") else ""
            raise DataError(f"{name} {path}{comma} is damaged: {error}. Use the newest.") from error
        return Restored(path, manifest)
