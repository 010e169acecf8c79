import numpy as np
import pytest

from pipeline.datasets.textures import EXPONENTS, pink_field


@pytest.mark.parametrize("shape", [(1, 1), (1, 70), (64, 64), (375, 500), (131, 67)])
def test_field_has_the_asked_shape_mean_0_and_deviation_1(shape: tuple[int, int]) -> None:
    field = pink_field(np.random.default_rng(0), *shape, exponent=1.1)
    assert field.shape == shape
    assert field.dtype == np.float32
    assert abs(float(field.mean())) < 1e-4
    if field.size > 1:
        assert float(field.std()) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_amplitude_falls_with_frequency_by_the_exponent(exponent: float) -> None:
    fields = [pink_field(np.random.default_rng(seed), 128, 128, exponent) for seed in range(8)]
    power = np.mean([np.abs(np.fft.fft2(field.astype(np.float64))) ** 2 for field in fields], axis=0)
    frequency = np.hypot(*np.meshgrid(*[np.fft.fftfreq(128) * 128] * 2))
    band = (frequency >= 4) & (frequency <= 50)
    slope = np.polyfit(np.log(frequency[band]), np.log(power[band]), 1)[0]
    assert slope == pytest.approx(-2 * exponent, abs=0.15)


def test_same_generator_state_gives_the_same_field_and_another_a_different_one() -> None:
    first, again, other = (pink_field(np.random.default_rng(seed), 40, 50, 1.0) for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.allclose(first, other)
