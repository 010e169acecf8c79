"""Takes batches from a dataset so that a blocked wait for the next one can be ended from another thread."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from echoing.errors import DataError

Batch = Mapping[str, "np.ndarray[Any, Any]"]


class BatchSource:
    """Iterates over the batches of a dataset as host arrays, without copying them.

    Python's own iteration over a `tf.data.Dataset` cannot be interrupted while it waits inside TensorFlow: to
    stop a run, one would have to wait for a whole batch, which takes seconds on a slow host.

    Args:
        dataset: a `tf.data.Dataset` of dictionaries, or any iterable of dictionaries of arrays; the wait for
            the latter can be cancelled if it has a method `cancel`.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._manager: Any = None
        if not isinstance(dataset, Iterable) or not hasattr(dataset, "element_spec"):
            return
        # TensorFlow offers the cancellation of functions only to its own coordinators, hence the inner name.
        from tensorflow.python.eager import cancellation

        self._context = cancellation.CancellationManagerContext
        self._manager = cancellation.CancellationManager()

    def cancel(self) -> None:
        """Ends a wait for the next batch at once, with an error in the thread that waits."""
        if self._manager is not None:
            self._manager.start_cancel()
        elif hasattr(self._dataset, "cancel"):
            self._dataset.cancel()

    def __iter__(self) -> Generator[Batch, None, None]:
        """Yields each batch; the arrays are views of TensorFlow's memory and must not be written to.

        Raises:
            DataError: the elements are no dictionaries with `image` and `label`.
        """
        for element in self._dataset if self._manager is None else self._tensors():
            check_features(element)
            yield {name: np.asarray(value) for name, value in element.items()}

    def _tensors(self) -> Iterator[Mapping[str, Any]]:
        import tensorflow as tf

        check_features(self._dataset.element_spec)
        iterator = iter(self._dataset)

        @tf.function
        def take(source: Any) -> Any:
            element = source.get_next_as_optional()
            return element, element.has_value()

        take = take.get_concrete_function(iterator)
        while True:
            with self._context(self._manager):
                element, has_value = take(iterator)
            if not has_value:
                return
            yield element.get_value()


def check_features(element: Any) -> None:
    """Checks that an element, or its specification, is a dictionary with the features that a trainer needs.

    Raises:
        DataError: it is not; the message names what was found.
    """
    if not isinstance(element, Mapping):
        raise DataError(
            f"The dataset's elements are of type {type(element).__name__}, but a trainer needs "
            "dictionaries with `image` and `label`. Map the dataset to such dictionaries."
        )
    missing = [name for name in ("image", "label") if name not in element]
    if missing:
        raise DataError(
            f"The dataset's elements lack {' and '.join(missing)}; "
            f"found: {', '.join(sorted(element)) or 'nothing'}. "
            "A trainer needs `image` [batch, height, width, 3] and `label` [batch]."
        )
