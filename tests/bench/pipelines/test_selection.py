import pytest

from bench.pipelines import variants as module
from bench.pipelines.selection import choose_variants
from bench.pipelines.variants import VARIANTS, Variant
from echoing.errors import OptionError

MISSING = Variant("rare", "", "rare_module", "uint8", ("no_such_package_",), ("no-such", "and-this"))


@pytest.fixture
def with_missing(monkeypatch):
    monkeypatch.setattr(module, "VARIANTS", (*VARIANTS[:2], MISSING))


def test_none_chooses_all_that_are_installed(with_missing):
    assert [variant.name for variant in choose_variants()] == ["reference", "tuned"]


def test_names_are_taken_in_the_order_of_the_report():
    assert [one.name for one in choose_variants("ours_uint8, reference,ours_uint8,")] == [
        "reference",
        "ours_uint8",
    ]


def test_unknown_name_is_refused_with_the_choices():
    with pytest.raises(OptionError, match="'turbo', but must be names of reference, tuned, ours_float32"):
        choose_variants("reference,turbo")


@pytest.mark.parametrize("names", ["", ",", " , "])
def test_no_name_is_refused(names):
    with pytest.raises(OptionError, match="separated by commas"):
        choose_variants(names)


def test_variant_whose_package_is_missing_is_refused_with_the_way_to_install_it(with_missing):
    with pytest.raises(OptionError, match="`pip install no-such and-this`"):
        choose_variants("rare")


def test_ours_takes_options_of_the_pipeline():
    plain, one, other = choose_variants(
        "ours_uint8+cache=records+private_threads=2,ours_uint8+deterministic=true,ours_float32"
    )
    assert (plain.name, plain.settings) == ("ours_float32", ())
    assert one.name == "ours_uint8+cache=records+private_threads=2"
    assert one.settings == (("cache", "records"), ("private_threads", 2))
    assert one.description.endswith("; cache=records, private_threads=2")
    assert (one.module, one.output) == (other.module, other.output) == ("bench.pipelines.ours_uint8", "uint8")
    assert other.settings == (("deterministic", True),)


def test_the_allocator_is_an_option_too():
    (one,) = choose_variants("ours_uint8+keep_freed_memory=false")
    assert one.settings == (("keep_freed_memory", False),)


@pytest.mark.parametrize(
    "name, said",
    [
        ("reference+cache=records", "options with ours_float32 and ours_uint8 only"),
        ("ours_uint8+turbo=1", "There is no `turbo=1`"),
        ("ours_uint8+cache", "There is no `cache`"),
        ("ours_uint8+", "There is no ``"),
        ("ours_uint8+dtype=float32", "There is no `dtype=float32`"),  # another variant
        ("ours_uint8+batch_size=1", "There is no `batch_size=1`"),  # the same for all
        ("ours_uint8+cache=attic", "'attic'"),
        ("ours_uint8+private_threads=0", "private_threads"),
        ("turbo+cache=records", "names of reference"),
    ],
)
def test_options_that_are_none_are_refused(name, said):
    with pytest.raises(OptionError) as caught:
        choose_variants(name)
    assert said in str(caught.value)
