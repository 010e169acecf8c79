"""Where a training runs: the replicas of a distribution strategy, and this process's share of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from echoing.errors import OptionError, PipebenchError
from trainer.step import DeviceDescription

if TYPE_CHECKING:
    from trainer.feed import Feed


@dataclass(frozen=True)
class Placement:
    """A strategy, and what this process is in it.

    Attributes:
        strategy: a `tf.distribute.Strategy`.
        kind: `cpu`, `gpu`, `mirrored`, `multi_worker` or `tpu`.
        replicas: replicas of all workers; each trains on an equal part of the global batch.
        local_replicas: those of this process.
        device: what they run on, as every output shows it.
        local_device: TensorFlow's name of the only device of this process, empty where it has several.
        worker_index: number of this process among the workers.
        worker_count: number of workers; each reads its own share of the data.
    """

    strategy: Any
    kind: str
    replicas: int
    local_replicas: int
    device: DeviceDescription
    local_device: str = ""
    worker_index: int = 0
    worker_count: int = 1

    @property
    def is_chief(self) -> bool:
        """Whether this process is the one that writes the model and the logs."""
        return self.worker_index == 0

    @property
    def compiles_anyway(self) -> bool:
        """Whether every step is compiled with XLA, as on a TPU."""
        return self.kind == "tpu"

    def feed(self, layout: str = "nhwc") -> Feed:
        """Returns what brings this host's batches to its replicas.

        Args:
            layout: of the images, `nhwc` or `hwcn`.
        """
        if self.local_device:
            from trainer.feed import DeviceFeed

            return DeviceFeed(self.local_device)
        from trainer.replica_feed import ReplicaFeed

        return ReplicaFeed(self.strategy, self.local_replicas, layout, times_transfer=self.kind != "tpu")

    def host_batch_size(self, name: str, batch_size: int) -> int:
        """Returns this host's share of a global batch.

        Args:
            name: the option's name, for the message.
            batch_size: examples over all replicas.

        Raises:
            OptionError: the replicas cannot share it equally.
        """
        check_divisible(name, batch_size, self.replicas)
        return batch_size // self.worker_count

    def gather(self, values: Sequence[float]) -> np.ndarray[Any, Any]:
        """Returns the values of every worker, float64 `[workers, values]`; all workers have to call it.

        Args:
            values: this worker's; integers up to 2^53 stay exact.
        """
        if self.worker_count == 1:
            return np.array([values], np.float64)
        import tensorflow as tf

        row = tf.constant([values], tf.float64)
        rows = self.strategy.experimental_distribute_values_from_function(lambda context: row)
        return np.asarray(self.strategy.gather(rows, axis=0))[:: self.local_replicas]

    @contextmanager
    def watching_workers(self) -> Iterator[None]:
        """Explains the error that TensorFlow raises where another worker has ended or cannot be reached.

        Raises:
            PipebenchError: another worker was lost.
        """
        import tensorflow as tf

        try:
            yield
        except (tf.errors.UnavailableError, tf.errors.AbortedError) as error:
            # The data may be on a server that is not available either; only workers talk in collectives.
            if self.worker_count == 1 or "Collective" not in str(error):
                raise
            raise PipebenchError(
                f"Worker {self.worker_index} has lost another of the {self.worker_count} workers, whose own "
                "output says why it ended. Start all of them again; they go on from the last checkpoint."
            ) from error


def check_divisible(name: str, batch_size: int, replicas: int) -> None:
    """Checks that replicas can share a batch equally.

    Args:
        name: the option's name, for the message.
        batch_size: examples over all replicas, >= 1.
        replicas: their number.

    Raises:
        OptionError: they cannot; the message names the nearest sizes that they can.
    """
    if batch_size % replicas == 0:
        return
    below = batch_size // replicas * replicas
    nearest = f"{below} or {below + replicas}" if below else str(replicas)
    raise OptionError(
        name, batch_size, f"a multiple of {replicas}, the number of replicas", f"The nearest: {nearest}."
    )
