"""The checkpoint with the best evaluation, in a folder of its own, so that newer ones never push it out."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from echoing.checks import check_number
from echoing.errors import DataError
from trainer import checkpoint_files, model_folder
from trainer.checkpoint_folder import CheckpointFolder
from trainer.checkpoint_manifest import DamagedError, Manifest


class BestCheckpoint:
    """A copy of the best checkpoint so far; its manifest holds the score.

    A copy, because a link would share the fate of the file behind it, and remote file systems have none.

    Args:
        folder: where the copy lies.
        source: where the checkpoints are that may become the best.
    """

    def __init__(self, folder: CheckpointFolder, source: CheckpointFolder) -> None:
        self._folder = folder
        self._source = source

    def manifest(self) -> Manifest | None:
        """Returns the manifest of the best, or None if none has been kept.

        Raises:
            DataError: it is damaged or cannot be read.
        """
        manifests = [_manifest(self._folder.checkpoint(step)) for step in self._folder.steps()]
        # Two of them, when a kill came between writing the better one and removing the other.
        return max(manifests, key=lambda manifest: (manifest.score or 0.0, -manifest.step), default=None)

    def path(self, manifest: Manifest) -> str:
        """Returns the folder of the best checkpoint."""
        return self._folder.checkpoint(manifest.step)

    def keep(self, step: int, score: float) -> bool:
        """Copies the checkpoint of a step if its score, >= 0, is higher than the best so far.

        Returns:
            Whether it is the best now. The first of equals stays.

        Raises:
            OptionError: the score is negative or not finite.
            DataError: there is no such checkpoint, or it cannot be copied: the best before is as it was.
        """
        score = check_number("score", score, minimum=0)
        before = self.manifest()
        if before is not None and before.score is not None and score <= before.score:
            return False
        source = self._source.checkpoint(step)
        manifest = _manifest(source)

        def copy(target: str) -> None:
            model_folder.remove_folder(target)
            tf.io.gfile.makedirs(target)
            for file in manifest.files:
                path = model_folder.join(target, file.name)
                tf.io.gfile.copy(model_folder.join(source, file.name), path)
                model_folder.sync(path)
            checkpoint_files.write_manifest(target, dataclasses.replace(manifest, score=score))

        self._folder.write(step, copy)
        self._folder.remove_all_but([step])
        return True


def _manifest(path: str) -> Manifest:
    try:
        manifest = checkpoint_files.read_manifest(path)
    except DamagedError as error:
        raise DataError(
            f"The checkpoint {path} is damaged: {error}. Remove it or bring back a copy."
        ) from error
    if manifest is None:
        raise DataError(f"There is no complete checkpoint {path}.")
    return manifest
