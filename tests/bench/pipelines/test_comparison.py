import pytest

from bench.pipelines.comparison import Comparison, Measured, Ratio, Round
from bench.pipelines.variants import Variant


def measured(name, *rates, error=""):
    rounds = [Round(images=int(rate * 2), seconds=2.0, cpu_seconds=4.0) for rate in rates]
    return Measured(Variant(name, "", "module", "uint8"), rounds, error)


def test_rate_is_images_over_seconds():
    assert Round(images=300, seconds=4.0, cpu_seconds=1.0).images_per_second == 75.0


def test_figures_are_medians_over_the_rounds():
    one = measured("x", 100.0, 400.0, 200.0)
    assert one.images_per_second == 200.0
    assert one.cpu_seconds_per_image == 0.01  # 4 s over 2 x 200 images
    assert one.rate_spread == 4.0


def test_median_of_two_rounds_is_their_mean():
    assert measured("x", 100.0, 200.0).images_per_second == 150.0


def test_ratios_are_taken_round_by_round():
    # Of the medians it would be 300 / 200 = 1.5.
    comparison = Comparison([measured("reference", 100.0, 200.0, 400.0), measured("x", 300.0, 200.0, 600.0)])
    assert comparison.ratio(comparison.measured[1]) == Ratio(median=1.5, lowest=1.0, highest=3.0)
    assert comparison.ratio(comparison.measured[0]) == Ratio(1.0, 1.0, 1.0)


def test_ratio_to_the_limit_is_to_the_crop_decode_variant():
    comparison = Comparison([measured("x", 300.0), measured("crop_decode", 400.0)])
    assert comparison.ratio_to_limit(comparison.measured[0]) == Ratio(0.75, 0.75, 0.75)


def test_without_the_reference_there_is_no_ratio():
    comparison = Comparison([measured("x", 300.0)])
    assert comparison.ratio(comparison.measured[0]) is None
    assert comparison.ratio_to_limit(comparison.measured[0]) is None


def test_variant_that_stopped_early_is_paired_with_the_rounds_that_it_has():
    comparison = Comparison(
        [measured("reference", 100.0, 400.0, 1.0), measured("x", 200.0, 400.0, error="died")]
    )
    assert comparison.ratio(comparison.measured[1]) == Ratio(median=1.5, lowest=1.0, highest=2.0)


def test_failed_variant_has_no_figures():
    one = measured("x", error="no such file")
    comparison = Comparison([measured("reference", 100.0), one])
    assert (one.images_per_second, one.cpu_seconds_per_image, one.peak_memory_bytes) == (None, None, None)
    assert one.rate_spread is None
    assert comparison.ratio(one) is None


def test_failed_reference_leaves_no_ratio():
    comparison = Comparison([measured("reference", error="died"), measured("x", 100.0)])
    assert comparison.ratio(comparison.measured[1]) is None


def test_peak_memory_is_the_largest_that_is_known():
    rounds = [Round(1, 1.0, 1.0, peak) for peak in (None, 300, 200)]
    assert Measured(Variant("x", "", "m", "uint8"), rounds).peak_memory_bytes == 300


def test_rounds_that_differ_much_are_a_warning_that_names_the_variants():
    steady, unsteady = measured("a", 100.0, 150.0), measured("b", 100.0, 160.0)
    assert Comparison([steady]).warnings == []
    (warning,) = Comparison([steady, unsteady]).warnings
    assert "(b 1.6 times)" in warning
    assert "other work" in warning


@pytest.mark.parametrize("rates", [(), (100.0,)])
def test_one_round_or_none_warns_of_nothing(rates):
    assert Comparison([measured("a", *rates)]).warnings == []
