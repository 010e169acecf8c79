import pytest

from bench.pipelines.comparison import Comparison, Measured, Round
from bench.pipelines.variants import Variant
from bench.reporters.chart_canvas import NothingToDraw
from bench.reporters.pipeline_comparison_chart import comparison_figure, comparison_png


def measured(name, *rates):
    return Measured(Variant(name, "", "module", "uint8"), [Round(int(2 * rate), 2.0, 1.0) for rate in rates])


def test_bars_are_the_ratios_of_the_variants_that_were_measured():
    figure = comparison_figure(
        Comparison(
            [
                measured("reference", 100.0, 100.0),
                measured("ours_float32", 200.0, 220.0),
                measured("ours_uint8", 300.0, 200.0),
                measured("grain"),
            ]
        )
    )
    (axes,) = figure.axes
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([1.0, 2.1, 2.5])
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "reference (uint8)", "ours_float32 (uint8)", "ours_uint8 (uint8)"
    ]  # fmt: skip
    assert figure.get_suptitle().endswith(": ours_uint8 2.50×")
    spans = [list(line.get_xdata()) for line in axes.lines]
    assert [2.0, 3.0] in spans  # lowest and highest of ours_uint8
    assert [text.get_text().strip() for text in axes.texts][2] == "2.50×, 250/s"


def test_without_ours_the_title_claims_nothing():
    figure = comparison_figure(Comparison([measured("reference", 100.0), measured("tuned", 110.0)]))
    assert figure.get_suptitle() == "Images per second, as a ratio to the reference's pipeline"


def test_without_the_reference_nothing_is_drawn():
    comparison = Comparison([measured("tuned", 110.0)])
    with pytest.raises(NothingToDraw):
        comparison_figure(comparison)
    assert comparison_png(comparison) == b""
