"""How large a shuffle buffer behind an echo may be for a budget in bytes.

The uses of one element share one buffer of memory, so a shuffle of S places behind an echo of factor e holds
fewer than S different elements. Each output leaves a uniformly random place, so a use stays for a time of
mean S outputs, exponentially distributed, and the last of e uses for S H(e) on average, with the harmonic
number H(e) = 1 + 1/2 + ... + 1/e. A new element comes every e outputs; hence, by Little's law, S H(e) / e
different elements are held on average. A fractional factor mixes elements of floor(e) and of ceil(e) uses.
Choi et al. (2019) keep the buffer's number of places and do not treat its memory.

The mean was checked by simulation and on `tf.data`'s own shuffle: S from 10 to 1000 and e from 1 to 16 agree
within 0.6 elements. It is 0.5 too low for small S, where an element's uses take a part of their stay to come
in; the allowance of one element covers that. The standard deviation was at most 0.4 times the square root of
the mean, less than Poisson's, because the places are fixed in number. `tests/echoing/test_shuffle_budget.py`
repeats both checks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from echoing.checks import check_integer, check_number
from echoing.echo_factor import EchoFactor
from echoing.errors import OptionError

FLUCTUATION = 3.0
"""Allowance above the mean, in square roots of the mean: more than 7 standard deviations, which a normal
variable exceeds once in 10^12 draws."""

_EULER_GAMMA = 0.5772156649015329


def elements_for_budget(
    budget_bytes: float, element_bytes: float, factor: object, *, strict: bool = False
) -> int:
    """Returns how many places a shuffle buffer behind an echo may have.

    The payload is counted; beside it each place costs `tf.data` about 100 bytes of bookkeeping.

    Args:
        budget_bytes: memory that the buffered elements may take, in bytes.
        element_bytes: size of one element, in bytes; see `element_bytes_of`.
        factor: the echo factor e, >= 1, as for `echo`. Where it changes while running, give its smallest
            value.
        strict: whether the budget must hold even if no two places share an element. Otherwise it holds with
            a probability that makes an excess not to be expected in the life of a training job.

    Raises:
        OptionError: a size is not positive and finite, the budget holds no element, or the buffer would not
            hold the uses of a single element, so that it could not separate them.
    """
    parsed = EchoFactor.parse(factor)
    name = "shuffle_buffer_bytes"
    check_number(name, budget_bytes, minimum=0, exclusive_minimum=True)
    check_number("element_bytes", element_bytes, minimum=0, exclusive_minimum=True)
    different = math.floor(budget_bytes / element_bytes)
    if different < 1:
        raise OptionError(name, budget_bytes, f"at least one element of {element_bytes:,.0f} bytes")
    places = different if strict else _places(different, parsed)
    uses = math.ceil(parsed.value)
    if places < uses:
        needed_bytes = math.ceil(_least_different(parsed, strict) * element_bytes)
        raise OptionError(
            name,
            budget_bytes,
            f"at least {needed_bytes:,} for an echo factor of {parsed}",
            f"It holds {places} elements of {element_bytes:,.0f} bytes, fewer than the {uses} uses of one "
            "element, which it could not separate. Raise the budget or lower the echo factor.",
        )
    return places


def mean_different_elements(places: int, factor: object) -> float:
    """Returns how many different elements a shuffle of `places` behind an echo holds on average.

    Args:
        places: buffer size of the shuffle, >= 1.
        factor: the echo factor.

    Raises:
        OptionError: a value is not allowed.
    """
    return check_integer("places", places, minimum=1) * _different_per_place(EchoFactor.parse(factor))


def element_bytes_of(element_spec: Any, component_bytes: Mapping[str, float] | None = None) -> float:
    """Returns the size of one element of a dataset, in bytes.

    Args:
        element_spec: `dataset.element_spec`.
        component_bytes: mean size of each component whose size the specification does not tell: strings,
            ragged and sparse tensors, and dimensions that are not known. The key is the component's path in
            the element, such as `serialized`, `image/encoded` or, in a tuple, `0`; of an element that is a
            single tensor it is `element`.

    Raises:
        OptionError: such a size is missing, is no number >= 0, or is given for a component that has a known
            size or does not exist.
    """
    given = dict(component_bytes or {})
    total_bytes = 0.0
    for path, spec in _components(element_spec, ""):
        size_bytes: float | None = _size_bytes(spec)
        if size_bytes is None:
            if path not in given:
                raise OptionError(
                    "component_bytes",
                    component_bytes,
                    f"a mapping with the mean size of {path!r} in bytes",
                    f"Its specification, {spec}, does not tell it.",
                )
            size_bytes = check_number(f"component_bytes[{path!r}]", given.pop(path), minimum=0)
        total_bytes += size_bytes
    if given:
        raise OptionError(
            "component_bytes",
            component_bytes,
            "sizes of components whose size is not known",
            f"Leave out {', '.join(map(repr, given))}.",
        )
    return total_bytes


def _places(different: int, factor: EchoFactor) -> int:
    """Returns the largest S whose mean m has m + FLUCTUATION sqrt(m) + 1 <= different; at least that many."""
    root = (math.sqrt(FLUCTUATION**2 + 4 * (different - 1)) - FLUCTUATION) / 2
    return max(different, math.floor(root**2 / _different_per_place(factor)))


def _least_different(factor: EchoFactor, strict: bool) -> int:
    """Returns the fewest different elements that a budget must hold for `factor`."""
    uses = math.ceil(factor.value)
    if strict:
        return uses
    mean = uses * _different_per_place(factor)
    # One more than the exact answer may be needed where floor and sqrt round.
    candidates = range(min(uses, math.ceil(mean + FLUCTUATION * math.sqrt(mean) + 1)), uses + 1)
    return next(different for different in candidates if _places(different, factor) >= uses)


def _different_per_place(factor: EchoFactor) -> float:
    remainder = float(factor.remainder)
    whole = factor.whole
    return (_harmonic(whole) + remainder / (whole + 1)) / float(factor)


def _harmonic(count: int) -> float:
    if count < 1000:
        return math.fsum(1 / number for number in range(1, count + 1))
    # Euler and Maclaurin's expansion; the next term is below 1e-14 here.
    return math.log(count) + _EULER_GAMMA + 1 / (2 * count) - 1 / (12 * count**2)


def _components(spec: Any, path: str) -> list[tuple[str, Any]]:
    if isinstance(spec, Mapping):
        parts = [(str(key), part) for key, part in spec.items()]
    elif isinstance(spec, tuple | list):
        parts = [(str(index), part) for index, part in enumerate(spec)]
    else:
        return [(path or "element", spec)]
    prefix = f"{path}/" if path else ""
    return [component for key, part in parts for component in _components(part, prefix + key)]


def _size_bytes(spec: Any) -> int | None:
    import tensorflow as tf

    # Ragged and sparse specifications have shapes too, but these do not tell their size.
    if not isinstance(spec, tf.TensorSpec) or not spec.shape.is_fully_defined():
        return None
    if spec.dtype in (tf.string, tf.variant, tf.resource):
        return None
    return int(spec.shape.num_elements()) * int(spec.dtype.size)
