import pytest

from bench.reporters import findings


def _by_name(result):
    return {row.name: row for row in findings.key_figures(result)}


def test_key_figures_of_run_baseline_and_ratio_are_literal(host_bound):
    rows = _by_name(host_bound)
    # 8 examples in 0.25 s against 8 in 0.5 s; half of the run's are fresh.
    trained = rows["Trained examples/s"]
    assert (trained.run, trained.baseline, trained.ratio) == ("32.0/s", "16.0/s", "2.00×")
    fresh = rows["Fresh examples/s"]
    assert (fresh.run, fresh.baseline, fresh.ratio) == ("16.0/s", "16.0/s", "1.00×")
    used = rows["Accelerator utilisation (AU)"]
    assert (used.run, used.baseline, used.ratio) == ("40.0 %", "20.0 %", "2.00×")
    assert (rows["Wait per step"].run, rows["Step time (busy)"].run) == ("150 ms", "100 ms")
    assert (rows["Repeats in all"].run, rows["Repeats in all"].ratio) == ("120", "")


def test_means_leave_warm_up_out_wherever_it_stands(make_phase, replace):
    phase = make_phase(4, 0.1, 0.2, first_wait_seconds=100)
    steps = replace(phase.steps, warm_up=[True, False, True, False], wait_seconds=[100.0, 0.2, 50.0, 0.4])
    means = findings.phase_means(replace(phase, steps=steps))
    assert means.wait_seconds == pytest.approx(0.3)
    assert means.busy_seconds == pytest.approx(0.1)


def test_run_without_measured_steps_has_no_rate_and_no_verdict(interrupted):
    rows = _by_name(interrupted)
    assert rows["Trained examples/s"].run == "n/a"
    assert rows["Wait per step"].run == "n/a"
    assert rows["All steps"].run == "1"
    assert findings.headline(interrupted) == "No verdict"
    assert findings.reason(interrupted) == "No step was measured: 1 step ended, all warm-up."


def test_run_without_any_step_says_so(no_step):
    assert findings.reason(no_step) == "No step was measured: none ended."


def test_ratio_to_a_zero_baseline_is_not_available(make_phase, make_result):
    result = make_result(make_phase(5, 0.1, 0.1), baseline=make_phase(5, 0.1, 0.0))
    assert _by_name(result)["Wait per step"].ratio == "n/a"


def test_headline_and_reason_tell_echo_from_none(host_bound, device_bound):
    assert findings.headline(host_bound) == "Host-bound, even with echo"
    assert findings.reason(host_bound) == (
        "The device waited for data 60.0 % of the time (80.0 % without echo); "
        "echo 2 after_augment gave 2.00× the trained rate at 1.00× the fresh rate."
    )
    assert findings.headline(device_bound) == "Device-bound"
    assert findings.echo_label(device_bound) == "no echo"


def test_device_bound_run_with_echo_is_not_called_even(make_phase, make_result):
    assert findings.headline(make_result(make_phase(5, 0.1, 0.0, verdict="device-bound"))) == (
        "Device-bound with echo"
    )


def test_notices_tell_incomplete_first_then_emulated(interrupted, real_training):
    incomplete, emulated = findings.notices(interrupted)
    assert incomplete == "INCOMPLETE: interrupted by Ctrl-C. The figures cover what ended before: 1 step."
    assert emulated.startswith("Emulated accelerator: nothing was trained. tpu-v2-8 is held 100 ms a step")
    assert findings.notices(real_training) == []


def test_losses_appear_only_where_the_device_computes_them(real_training, host_bound):
    rows = _by_name(real_training)
    assert (rows["Loss of the first step"].run, rows["Loss of the last step"].run) == ("7.00", "4.60")
    assert "Loss of the last step" not in _by_name(host_bound)


def test_prediction_stands_beside_the_measurement_with_its_error(host_bound, device_bound):
    assert findings.prediction_sentence(host_bound) == (
        "Predicted 33.6/s trained, measured 32.0/s (error +5.0 %). Basis: lower of host and device rate."
    )
    assert findings.prediction_sentence(device_bound) == ""


@pytest.mark.parametrize("value", ["0.1", None, True, [1]])
def test_number_of_the_wrong_type_in_the_free_part_counts_as_unknown(host_bound, replace, value):
    result = replace(host_bound, accelerator={**host_bound.accelerator, "step_seconds": value})
    assert findings.device_ceiling(result) is None


def test_device_ceiling_is_batch_over_step_time(host_bound):
    assert findings.device_ceiling(host_bound) == pytest.approx(80.0)


def test_method_names_the_warm_up_of_both_phases(host_bound):
    assert "2 warm-up steps of the run and 2 of the baseline" in findings.method_sentences(host_bound)[0]
