import csv
import io
import os
import subprocess
import sys

import pytest

from bench.reporters.steps_csv import steps_csv
from bench.result import Steps

HEADER = (
    "step,phase,warm_up,wait_seconds,step_seconds,transfer_seconds,fresh_examples,trained_examples,loss\n"
)


def test_steps_are_written_with_point_decimals_and_empty_cells(make_phase, make_result, replace):
    steps = Steps(
        wait_seconds=[1234.5, 9.10, 0.1],
        start_seconds=[1234.5, 1244.0, 1245.0],
        end_seconds=[1234.9, 1244.9, 1245.3],
        transfer_seconds=[0.0, 1e-7, 0.25],
        fresh_examples=[8, 4, 0],
        trained_examples=[8, 8, 3],
        warm_up=[True, False, False],
        loss=[None, 6.5, 1e-12],
    )
    result = make_result(replace(make_phase(3, 0.1, 0.1), steps=steps))
    assert steps_csv(result) == HEADER + (
        "0,run,true,1234.5,0.4,0,8,8,\n"
        "1,run,false,9.1,0.9,0.0000001,4,8,6.5\n"
        "2,run,false,0.1,0.3,0.25,0,3,1e-12\n"
    )


def test_baseline_comes_first_and_counts_its_own_steps(host_bound):
    rows = list(csv.DictReader(io.StringIO(steps_csv(host_bound))))
    assert [row["phase"] for row in rows] == ["baseline"] * 12 + ["run"] * 30
    assert [row["step"] for row in rows] == [str(i) for i in [*range(12), *range(30)]]
    assert sum(int(row["fresh_examples"]) for row in rows[12:]) == host_bound.phase.counts.fresh_examples


def test_run_without_a_step_has_the_header_alone(no_step):
    assert steps_csv(no_step) == HEADER


def test_negative_rounding_noise_is_written_as_zero(make_phase, make_result, replace):
    phase = make_phase(1, 0.1, 0.1)
    noisy = replace(phase.steps, wait_seconds=[-1e-12])
    assert steps_csv(make_result(replace(phase, steps=noisy))).splitlines()[1].split(",")[3] == "0"


@pytest.mark.parametrize("name", ["C", "de_DE.UTF-8"])
def test_bytes_do_not_depend_on_the_locale(host_bound, tmp_path, name):
    (tmp_path / "result.json").write_text(host_bound.to_json())
    script = (
        "import locale, pathlib, sys\n"
        "try:\n    locale.setlocale(locale.LC_ALL, '')\n"
        "except locale.Error:\n    pass\n"  # the locale is not installed here: the environment alone counts
        "from bench.reporters.steps_csv import steps_csv\nfrom bench.result import RunResult\n"
        "text = steps_csv(RunResult.from_json(pathlib.Path(sys.argv[1]).read_text(), 'r'))\n"
        "sys.stdout.buffer.write(text.encode())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "result.json")],
        env={**os.environ, "LC_ALL": name},
        capture_output=True,
        check=True,
    )
    assert done.stdout == steps_csv(host_bound).encode()
