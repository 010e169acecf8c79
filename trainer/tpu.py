"""The way to a TPU, written to TensorFlow's documentation: it was not run on a TPU."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

from echoing.errors import OptionError

CONNECT_SECONDS = 55.0
"""How long a TPU may take to answer, so that a wrong name is an error within a minute."""
PROBE_SECONDS = 10.0
LOCAL = "local"
"""The name of a TPU that is attached to this host (a TPU VM)."""
_ADVICE = (
    "Give the name of a TPU that is ready (`gcloud compute tpus tpu-vm list`) with its zone and project, "
    "its grpc://host:8470 address, or `local` on a TPU VM, which needs `pip install tensorflow-tpu`."
)


def connect(name: str, zone: str | None, project: str | None, seconds: float = CONNECT_SECONDS) -> Any:
    """Connects to a TPU, which forgets what it did before, and returns a `tf.distribute.TPUStrategy`.

    Args:
        name: of the TPU, its `grpc://host:port` address, or `local`.
        zone: of the TPU; None for this machine's.
        project: of the TPU; None for this machine's.
        seconds: how long it may take.

    Raises:
        OptionError: there is no such TPU, or it does not answer in time.
    """
    import tensorflow as tf

    if name.startswith("grpc://"):
        _probe(name)

    def work() -> Any:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(name, zone=zone, project=project)
        if name != LOCAL:
            tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)

    return _within(seconds, name, work)


def _probe(address: str) -> None:
    """Opens the port of an address, because TensorFlow tries for minutes to reach one that is closed."""
    host, _, port = address.removeprefix("grpc://").rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=PROBE_SECONDS):
            pass
    except (OSError, ValueError) as error:
        raise _refused(address, str(error)) from None


def _within(seconds: float, name: str, work: Callable[[], Any]) -> Any:
    """Returns the result of `work`, which cannot be interrupted and is left behind if it takes too long."""
    results: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # raised again, in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=run, name="tpu-connect", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise _refused(name, f"no answer within {seconds:g} s")
    if errors:
        first_line = (str(errors[0]).strip() or type(errors[0]).__name__).splitlines()[0]
        raise _refused(name, first_line) from errors[0]
    return results[0]


def _refused(name: str, reason: str) -> OptionError:
    return OptionError("tpu", name, f"a TPU that can be reached: {reason.rstrip('.')}", _ADVICE)
