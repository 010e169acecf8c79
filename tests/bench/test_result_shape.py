import json

import pytest

from bench.result import RunResult
from bench.result_shape import shape_problem
from echoing.errors import DataError


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (1, int),
        (1, float),
        (1.5, float),
        (True, bool),
        ("a", str),
        (None, float | None),
        (2.0, float | None),
        ([], list[int]),
        ([[3, [0.5]]], list[tuple[int, list[float]]]),
        ({"any": [None]}, dict[str, object]),
    ],
)
def test_fitting_value_has_no_problem(value, hint):
    assert shape_problem(value, hint) == ""


@pytest.mark.parametrize(
    ("value", "hint", "part"),
    [
        (True, int, "an integer"),
        (1.0, int, "an integer"),
        (10**400, float, "a finite number"),
        (float("nan"), float, "a finite number"),
        (float("inf"), float | None, "a finite number"),
        ("1", float, "a finite number"),
        (None, str, "str"),
        (3, list[int], "a list"),
        ([1, "2"], list[int], r"[1] is '2'"),
        ([[3]], list[tuple[int, list[float]]], "a list of 2"),
        ([], dict[str, object], "an object"),
    ],
)
def test_value_of_another_shape_is_named_with_the_rule(value, hint, part):
    assert part in shape_problem(value, hint)


def test_long_value_is_shortened_in_the_message():
    assert len(shape_problem("x" * 10_000, int)) < 150


def _damage(result, change):
    document = json.loads(result.to_json())
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda d: d.pop("counts"), "lacks 'counts'"),
        (lambda d: d["counts"].pop("steps"), "counts lacks 'steps'"),
        (lambda d: d["counts"].update(extra=1), "unknown key 'extra'"),
        (lambda d: d["steps"]["wait_seconds"].pop(), "differ in length"),
        (lambda d: d["baseline"]["steps"]["loss"].append(None), "differ in length"),
        (lambda d: d["steps"]["wait_seconds"].__setitem__(0, None), "wait_seconds[0] is None"),
        (lambda d: d["steps"]["wait_seconds"].__setitem__(3, "x"), "wait_seconds[3] is 'x'"),
        (lambda d: d["upstream_arrivals_seconds"].append([1]), "a list of 2"),
        (lambda d: d.update(warnings="none"), "warnings is 'none'"),
        (lambda d: d.update(baseline=[]), "baseline is []"),
        (lambda d: d.update(prediction={}), "prediction lacks"),
        (lambda d: d.update(config=None), "config is None"),
        (lambda d: d.update(complete="yes"), "complete is 'yes'"),
    ],
)
def test_damaged_result_is_refused_and_names_file_and_place(host_bound, change, part):
    with pytest.raises(DataError) as caught:
        RunResult.from_json(_damage(host_bound, change), "there/result.json")
    assert "there/result.json is damaged" in str(caught.value)
    assert part in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "null", "[]", "{}", '"pipebench.run"'])
def test_text_that_is_no_result_is_refused(text):
    with pytest.raises(DataError, match=r"there/result\.json"):
        RunResult.from_json(text, "there/result.json")


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_other_schema_version_is_refused_with_both_versions(host_bound, version):
    text = _damage(host_bound, lambda d: d.update(schema_version=version))
    with pytest.raises(DataError) as caught:
        RunResult.from_json(text, "r.json")
    assert repr(version) in str(caught.value)
    assert "reads version 1" in str(caught.value)
