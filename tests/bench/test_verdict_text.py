import pytest

from bench.verdict_text import verdict_text
from trainer.step import DeviceDescription

TPU = DeviceDescription("tpu-v2-8", "emulated", step_seconds=0.1)
CPU = DeviceDescription("CPU", "cpu")


def say(phase, baseline=None, device=TPU, factor=2, point="after_augment"):
    echo = {"factor": factor, "mean_factor": 2.9, "insert_point": point}
    return verdict_text(phase, baseline, device, echo)


def test_a_host_bound_run_says_what_waits_how_long_and_both_rates(make_phase):
    # 0.3 s of 0.4 s waiting; 8 images in 0.4 s, 4 of them fresh.
    text = say(make_phase(12, busy_seconds=0.1, wait_seconds=0.3, fresh_share=0.5))
    assert text == (
        "Host-bound: the emulated tpu-v2-8 waits for data 75.0% of the time (AU 25.0%). "
        "It trains 20.0 images/s, 10.0 of them fresh."
    )


def test_a_real_device_is_not_called_emulated(make_phase):
    text = say(make_phase(12, 0.1, 0.3), device=CPU)
    assert text.startswith("Host-bound: CPU waits for data")
    assert "emulated" not in text


def test_a_device_bound_run_is_called_so(make_phase):
    text = say(make_phase(12, busy_seconds=0.4, wait_seconds=0.0, verdict="device-bound"))
    assert text.startswith("Device-bound: the emulated tpu-v2-8 waits for data 0.0% of the time (AU 100.0%).")


def test_a_moderate_verdict_is_said_in_full(make_phase):
    text = say(make_phase(12, busy_seconds=0.9, wait_seconds=0.1, verdict="moderately host-bound"))
    assert text.startswith("Moderately host-bound: the emulated tpu-v2-8 waits for data 10.0% of the time")


def test_with_a_baseline_it_says_what_the_echo_changed(make_phase):
    # With echo 8 images in 0.25 s, half of them fresh; without 8 in 0.5 s.
    text = say(make_phase(12, 0.1, 0.15, fresh_share=0.5), baseline=make_phase(12, 0.1, 0.4))
    assert "Without echo it trains 16.0 images/s, all fresh (AU 20.0%)" in text
    assert "echo 2 at after_augment trains 2.00 x as many images and reads 1.00 x as many fresh ones." in text
    assert "costs fresh images" not in text


def test_an_echo_that_costs_fresh_images_is_called_out(make_phase):
    # Fresh: 4 in 0.4 s = 10/s; without echo 8 in 0.5 s = 16/s.
    text = say(make_phase(12, 0.1, 0.3, fresh_share=0.5), baseline=make_phase(12, 0.1, 0.4))
    assert "reads 0.62 x as many fresh ones. The echo costs fresh images here" in text


def test_a_fraction_is_shown_as_it_was_given(make_phase):
    text = say(make_phase(12, 0.1, 0.15), baseline=make_phase(12, 0.1, 0.4), factor=1.5, point="after_read")
    assert "echo 1.5 at after_read" in text


def test_without_echo_in_the_run_the_difference_is_noise(make_phase):
    text = say(make_phase(12, 0.1, 0.3), baseline=make_phase(12, 0.1, 0.4), factor=1)
    assert "the run itself has no echo, so the difference is noise" in text
    assert "as many" not in text


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_baseline_without_a_measured_step_is_no_comparison(make_phase, steps):
    text = say(make_phase(12, 0.1, 0.3), baseline=make_phase(steps, 0.1, 0.4, warm_up_steps=2))
    assert text.endswith("The baseline without echo was too short to compare with.")


@pytest.mark.parametrize("steps", [0, 2])
def test_a_run_without_a_measured_step_has_no_verdict(make_phase, steps):
    text = say(make_phase(steps, 0.1, 0.3, warm_up_steps=2), baseline=make_phase(12, 0.1, 0.4))
    assert text == "No verdict: no step was finished after the warm-up, so there is nothing to measure."


def test_an_elastic_echo_is_named_with_its_mean_factor(make_phase):
    text = say(make_phase(12, 0.1, 0.15), baseline=make_phase(12, 0.1, 0.4), factor="elastic")
    assert "elastic echo (2.9 on average) at after_augment trains" in text
