"""The composed pipeline: contents, counts, echo at every point, determinism, bad input."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

from echoing.errors import DataError, EchoWarning, OptionError
from pipeline import InputPipeline, PipelineConfig

POINTS = ["after_read", "after_decode", "after_augment", "after_batch"]


def make(folder: str, is_training: bool = True, **options) -> InputPipeline:
    defaults = {"batch_size": 4, "image_size": 16, "epochs": 1, "seed": 1, "keep_tags": True}
    return InputPipeline(PipelineConfig(folder, **{**defaults, **options}), is_training)


def batches(pipeline: InputPipeline, **call) -> list[dict]:
    return list(pipeline(**call).as_numpy_iterator())


def column(result: list[dict], name: str) -> np.ndarray:
    return np.concatenate([batch[name] for batch in result])


def test_training_delivers_images_and_labels_as_the_model_takes_them(make_data):
    pipeline = make(make_data(10), keep_tags=False)
    images, labels = next(iter(pipeline()))
    assert images.shape == (4, 16, 16, 3)
    assert images.dtype == tf.float32
    assert labels.shape == (4,)
    assert labels.dtype == tf.int32
    assert -1 <= images.numpy().min() < images.numpy().max() <= 1


def test_bfloat16_is_cast_on_the_host(make_data):
    images, _ = next(iter(make(make_data(4), keep_tags=False, dtype="bfloat16")()))
    assert images.dtype == tf.bfloat16


def test_shapes_are_static_in_training(make_data):
    images, labels = make(make_data(8), keep_tags=False)().element_spec
    assert images.shape.as_list() == [4, 16, 16, 3]
    assert labels.shape.as_list() == [4]


def test_evaluation_keeps_order_and_the_smaller_last_batch(make_data):
    folder = make_data(10, shards=1, split="validation")
    result = batches(make(folder, is_training=False))
    assert [len(batch["label"]) for batch in result] == [4, 4, 2]
    assert column(result, "label").tolist() == [index % 3 + 1 for index in range(10)]
    np.testing.assert_array_equal(result[0]["image"], batches(make(folder, is_training=False))[0]["image"])


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("factor", [1, 2, 3, 1.5])
def test_over_an_epoch_trained_is_e_times_fresh_for_every_example(make_data, point, factor):
    pipeline = make(make_data(12, shards=3), echo_factor=factor, insert_point=point, batch_size=2)
    result = batches(pipeline)
    uses = Counter(column(result, "record_id").tolist())
    fresh = int((column(result, "repeat_index") == 0).sum())
    assert len(uses) == 12
    assert fresh == 12
    assert sum(uses.values()) == 12 * factor
    assert set(uses.values()) <= {int(factor), int(np.ceil(factor))}
    assert len(result) == pipeline.steps_in() == 12 * factor / 2


@pytest.mark.parametrize(("drop", "steps"), [(None, 7), (True, 7), (False, 8)])
def test_announced_batches_are_the_ones_delivered(make_data, drop, steps):  # EC-01
    pipeline = make(make_data(10), echo_factor=3, drop_remainder=drop)
    assert pipeline.steps_in() == len(batches(pipeline)) == steps


def test_batches_of_several_epochs_run_across_the_border(make_data):
    pipeline = make(make_data(5), epochs=3)
    assert pipeline.steps_in(3) == len(batches(pipeline)) == 3  # 15 examples, batches of 4


def test_copies_differ_before_augmentation_and_are_identical_after_it(make_data):  # EC-05
    folder = make_data(4)

    def copies(point: str) -> dict[int, np.ndarray]:
        pipeline = make(folder, echo_factor=3, insert_point=point, shuffle_buffer_size=0, batch_size=12)
        (batch,) = batches(pipeline)
        return {
            record: batch["image"][batch["record_id"] == record]
            for record in set(batch["record_id"].tolist())
        }

    for point in ("after_read", "after_decode"):
        for images in copies(point).values():
            assert len({image.tobytes() for image in images}) > 1
    for images in copies("after_augment").values():
        assert len(images) == 3
        assert len({image.tobytes() for image in images}) == 1


def test_echoed_batches_follow_each_other_unchanged(make_data):  # EC-05
    result = batches(make(make_data(8), echo_factor=3, insert_point="after_batch"))
    assert len(result) == 6
    for first in (0, 3):
        for repeat in (1, 2):
            np.testing.assert_array_equal(result[first]["image"], result[first + repeat]["image"])
            assert set(result[first + repeat]["repeat_index"].tolist()) == {repeat}


def test_cached_records_are_augmented_and_shuffled_anew_each_epoch(make_data):  # DP-03
    result = batches(make(make_data(4), cache="records", epochs=2, deterministic=True))
    first, second = (dict(zip(b["record_id"], b["image"], strict=True)) for b in result)
    assert first.keys() == second.keys()
    assert any(not np.array_equal(first[record], second[record]) for record in first)
    orders = {
        tuple(b["record_id"].tolist())
        for b in batches(make(make_data(4), cache="records", epochs=8, deterministic=True))
    }
    assert len(orders) > 1


@pytest.mark.parametrize("point", POINTS)
def test_same_seed_gives_the_same_stream_when_deterministic(make_data, point):
    folder = make_data(9, shards=3)

    def stream() -> list[dict]:
        return batches(make(folder, echo_factor=2, insert_point=point, deterministic=True, epochs=2))

    tf.nest.map_structure(np.testing.assert_array_equal, stream(), stream())


def test_augmentation_depends_on_the_example_not_on_the_parallelism(make_data):
    folder = make_data(8)
    few, many = (batches(make(folder, deterministic=True, num_parallel_calls=calls)) for calls in (1, 8))
    tf.nest.map_structure(np.testing.assert_array_equal, few, many)


def test_shuffle_stands_after_the_read_or_after_the_echo_but_not_at_both(make_data):
    folder = make_data(8)

    def stages(**options):
        return make(folder, shuffle_buffer_size=7, **options).stages()

    def buffers(pipeline) -> dict[str, int]:
        return {s.name: s.shuffle_buffer_size for s in pipeline.stages if hasattr(s, "shuffle_buffer_size")}

    assert buffers(stages()) == {"storage": 7}
    assert buffers(stages(echo_factor=2, insert_point="after_decode")) == {"storage": 0, "echo": 7}
    assert buffers(stages(echo_factor=2, insert_point="after_batch")) == {"storage": 7, "echo": 0}


@pytest.mark.parametrize(
    ("point", "names"),
    [
        ("after_read", ["storage", "echo", "decode", "augment", "batch", "transfer"]),
        ("before_augment", ["storage", "decode", "echo", "augment", "batch", "transfer"]),
        ("after_augment", ["storage", "decode", "augment", "echo", "batch", "transfer"]),
        ("before_transfer", ["storage", "decode", "augment", "batch", "echo", "transfer"]),
    ],
)
def test_echo_stands_at_its_point_and_is_gone_without_it(make_data, point, names):
    pipeline = make(make_data(8), echo_factor=2, insert_point=point, preprocess="inception")
    assert list(pipeline.stages().names) == names
    plain = pipeline.without_echo().stages()
    assert plain == make(pipeline.config.data_dir, echo_factor=1, preprocess="inception").stages()
    assert list(plain.names) == [name for name in names if name != "echo"]


@pytest.mark.parametrize(
    ("point", "names"),
    [
        ("after_read", ["storage", "echo", "decode_and_augment", "batch", "transfer"]),
        ("after_decode", ["storage", "decode", "echo", "augment", "batch", "transfer"]),
        ("after_augment", ["storage", "decode_and_augment", "echo", "batch", "transfer"]),
        ("after_batch", ["storage", "decode_and_augment", "batch", "echo", "transfer"]),
        ("after_transfer", ["storage", "decode_and_augment", "batch", "transfer", "echo"]),
    ],
)
def test_crops_alone_are_decoded_unless_the_echo_wants_whole_images(make_data, point, names):
    pipeline = make(make_data(8), echo_factor=2, insert_point=point)
    assert list(pipeline.stages().names) == names
    # For measuring, the stages stay as the echo wants them; the best pipeline without one decodes crops.
    assert list(pipeline.stages(echoed=False).names) == [name for name in names if name != "echo"]
    without = list(pipeline.without_echo().stages().names)
    assert without == ["storage", "decode_and_augment", "batch", "transfer"]


@pytest.mark.parametrize("in_files", [False, True])
def test_cached_images_are_augmented_anew_and_shuffled_in_every_epoch(make_data, tmp_path, in_files):
    # DP-03. The images are decoded before the cache, which stands before shuffle and repeat.
    folder = make_data(8)
    cache_dir = str(tmp_path / "cache") if in_files else ""
    pipeline = make(folder, cache="images", cache_dir=cache_dir, epochs=2, shuffle_buffer_size=8)
    assert pipeline.stages().names == ("storage", "augment", "batch", "transfer")
    result = batches(pipeline)
    ids = column(result, "record_id")
    assert sorted(ids[:8]) == sorted(ids[8:]) == list(range(8))
    assert list(ids[:8]) != list(ids[8:])
    images = column(result, "image")
    for record in range(8):
        first, second = images[ids == record]
        assert np.abs(first - second).max() > 0.05
    if in_files:
        assert any(path.name.startswith("train-images-") for path in (tmp_path / "cache").iterdir())
        again = column(batches(make(folder, cache="images", cache_dir=cache_dir)), "record_id")
        assert sorted(again) == list(range(8))


def test_bad_images_are_skipped_and_counted_before_a_cache_of_images(
    make_data, put_shards, make_record, tmp_path
):
    records = [make_record(index) for index in range(7)] + [make_record(7, encoded=b"no image")]
    folder = put_shards(tmp_path / "bad", [records])
    pipeline = make(folder, cache="images", on_bad_record="skip", epochs=2, batch_size=7)
    assert len(column(batches(pipeline), "label")) == 14
    assert pipeline.skip_counter.count == 1  # read once, cached, and not read again


@pytest.mark.parametrize(("batch_size", "records"), [(4, 10), (16, 40), (40, 40), (24, 100)])
def test_blocks_give_the_batches_of_single_examples(make_data, batch_size, records):
    # 16 examples a block: batches of less, of a whole one, of more, and of no whole number of them.
    folder = make_data(records)
    options = {"batch_size": batch_size, "deterministic": True, "drop_remainder": False, "dtype": "uint8"}
    in_blocks = batches(make(folder, **options))
    one_by_one = batches(make(folder, **options, on_bad_record="skip"))
    assert [len(batch["label"]) for batch in in_blocks] == [len(batch["label"]) for batch in one_by_one]
    for name in in_blocks[0]:
        # Sums of three products may be rounded otherwise in vectors.
        tolerance = 1e-6 if name == "color_shift" else 0
        np.testing.assert_allclose(column(in_blocks, name), column(one_by_one, name), atol=tolerance, rtol=0)


def test_evaluation_is_never_echoed(make_data):
    folder = make_data(8, split="validation")
    assert "echo" not in make(folder, is_training=False, echo_factor=4).stages().names


@pytest.mark.parametrize("point", POINTS)
def test_upstream_stamps_are_one_an_example_and_shared_by_its_repeats(make_data, point):
    result = batches(make(make_data(8), echo_factor=2, insert_point=point, stamp_upstream=True))
    stamps: dict[int, set[float]] = {}
    for record, stamp in zip(
        column(result, "example_id"), column(result, "upstream_ready_seconds"), strict=True
    ):
        stamps.setdefault(int(record), set()).add(float(stamp))
    assert len(stamps) == 8
    assert all(len(values) == 1 for values in stamps.values())


def test_input_context_divides_the_batch_and_the_shards(make_data):
    folder = make_data(16, shards=4)
    shares = []
    for index in range(2):
        context = tf.distribute.InputContext(2, index, num_replicas_in_sync=2)
        result = batches(make(folder), batch_size=8, input_context=context)
        assert {len(batch["label"]) for batch in result} == {4}
        shares += column(result, "record_id").tolist()
    assert len(shares) == len(set(shares)) == 16


def test_called_with_a_batch_size_it_overrides_the_configuration(make_data):
    assert [len(batch["label"]) for batch in batches(make(make_data(10)), batch_size=5)] == [5, 5]


def test_fewer_records_than_a_batch_is_an_error_and_not_a_hang(make_data):  # DP-05
    pipeline = make(make_data(5), batch_size=8, epochs=None)
    with pytest.raises(DataError, match="5 records, batch 8: no full batch"):
        pipeline()


def test_echo_can_fill_the_batch_that_the_records_alone_cannot(make_data):  # DP-05
    result = batches(make(make_data(5), batch_size=8, echo_factor=2))
    assert [len(batch["label"]) for batch in result] == [8]


def test_batch_echo_cannot_fill_the_first_batch(make_data):
    with pytest.raises(DataError, match="5 records, batch 8: no full batch"):
        make(make_data(5), batch_size=8, echo_factor=2, insert_point="after_batch")()


@pytest.mark.parametrize("batch_size", [0, -1, 2.5])
def test_bad_batch_size_is_refused(make_data, batch_size):
    with pytest.raises(OptionError, match="batch_size"):
        make(make_data(5))(batch_size=batch_size)


@pytest.mark.parametrize("point", POINTS)
def test_bad_records_are_skipped_and_counted_once_whatever_the_echo(write_records, good_record, point):
    bad = [b"no example", good_record(0)[:-9], good_record(1)]
    folder = write_records([*bad, *(good_record(index) for index in range(2, 10))])
    pipeline = make(folder, echo_factor=2, insert_point=point, on_bad_record="skip", batch_size=1)
    result = batches(pipeline)
    assert pipeline.skip_counter is not None
    assert pipeline.skip_counter.count == 2
    assert Counter(column(result, "record_id").tolist()) == dict.fromkeys(range(2, 11), 2)


@pytest.mark.parametrize("factor", [2, 1.5])
def test_after_transfer_the_batches_say_how_often_the_device_uses_them(make_data, factor):
    pipeline = make(make_data(16), echo_factor=factor, insert_point="after_transfer")
    result = batches(pipeline)
    assert len(result) == 4
    assert [int(batch["device_uses"]) for batch in result] == {2: [2, 2, 2, 2], 1.5: [1, 2, 1, 2]}[factor]
    assert pipeline.steps_in() == 4 * factor
    assert pipeline.stages().names[-1] == "echo"


def test_after_transfer_needs_the_tags():
    with pytest.raises(OptionError, match=r"insert_point is 'after_transfer'.*keep_tags"):
        PipelineConfig("data", echo_factor=2, insert_point="after_transfer")


@pytest.mark.parametrize("point", ["after_read", "after_decode", "after_augment"])
def test_elastic_factor_of_examples_follows_its_variable(make_data, point):
    pipeline = make(make_data(8), echo_factor="elastic", insert_point=point, batch_size=1)
    assert pipeline.echo_variable is not None
    assert len(batches(pipeline)) == pipeline.steps_in() == 8
    pipeline.echo_variable.assign(2.5)
    assert len(batches(pipeline)) == 20


@pytest.mark.parametrize("point", ["after_batch", "after_transfer"])
def test_elastic_echo_of_batches_is_left_to_the_consumer(make_data, point):
    pipeline = make(make_data(8), echo_factor="elastic", insert_point=point)
    assert pipeline.echo_variable is None
    assert "echo" not in pipeline.stages().names
    assert len(batches(pipeline)) == 2


def test_echo_shuffle_none_leaves_the_buffer_after_the_read(make_data):
    pipeline = make(make_data(8), echo_factor=2, echo_shuffle="none", shuffle_buffer_size=7)
    sizes = {
        s.name: s.shuffle_buffer_size for s in pipeline.stages().stages if hasattr(s, "shuffle_buffer_size")
    }
    assert sizes == {"storage": 7, "echo": 0}
    records = column(batches(pipeline), "record_id").tolist()
    assert records[::2] == records[1::2]  # repeats side by side


def test_echoed_batches_can_be_shuffled(make_data):
    pipeline = make(
        make_data(16), echo_factor=2, insert_point="after_batch", batch_shuffle_buffer_size=8, batch_size=2
    )
    result = batches(pipeline)
    firsts = [int(batch["example_id"][0]) for batch in result]
    assert Counter(firsts) == Counter(sorted(firsts)[::2] * 2)
    assert any(one != other for one, other in zip(firsts[::2], firsts[1::2], strict=True))


def test_repeats_that_share_a_batch_warn_with_their_number(make_data):
    pipeline = make(make_data(10), echo_factor=4, shuffle_buffer_size=0, batch_size=10)
    with pytest.warns(EchoWarning, match="holds 3 different examples on average and 7 duplicates"):
        pipeline()


def test_shuffled_repeats_do_not_warn(make_data, recwarn):
    make(make_data(10), echo_factor=4, shuffle_buffer_size=20, batch_size=10)()
    make(make_data(10), echo_factor=4, shuffle_buffer_size=0, batch_size=2, insert_point="after_batch")()
    assert not [warning for warning in recwarn if issubclass(warning.category, EchoWarning)]


def test_echoed_batches_can_be_shuffled_within_a_budget_in_bytes(make_data):
    # A batch of two: images, label, three ids.
    size = 2 * (16 * 16 * 3 * 4 + 4 + 3 * 8)
    result = batches(
        make(
            make_data(16),
            echo_factor=2,
            insert_point="after_batch",
            batch_shuffle_buffer_bytes=8 * size,
            batch_size=2,
        )
    )
    firsts = [int(batch["example_id"][0]) for batch in result]
    assert Counter(firsts) == dict.fromkeys(sorted(set(firsts)), 2)
    assert any(one != other for one, other in zip(firsts[::2], firsts[1::2], strict=True))


def test_fake_data_needs_no_folder_and_is_one_image_for_ever():
    config = PipelineConfig("none", use_data="fake", batch_size=4, image_size=16, seed=2, keep_tags=True)
    pipeline = InputPipeline(config)
    assert pipeline.stages().names == ("fake_data", "batch", "transfer")
    first, second = pipeline().take(2).as_numpy_iterator()
    np.testing.assert_array_equal(first["image"], second["image"])
    np.testing.assert_array_equal(first["image"][0], first["image"][3])
    assert second["example_id"].tolist() == [4, 5, 6, 7]
    assert set(first["label"]) <= {0, 1}
    assert "Fake data" in pipeline.source.warnings[0]


@pytest.mark.parametrize("point", ["after_augment", "after_batch"])
def test_fake_data_is_echoed_like_any_other(point):
    config = PipelineConfig(
        "none",
        use_data="fake",
        batch_size=4,
        image_size=16,
        echo_factor=2,
        insert_point=point,
        keep_tags=True,
        shuffle_buffer_size=0,
        deterministic=True,
    )
    result = list(InputPipeline(config)().take(2).as_numpy_iterator())
    assert sorted(column(result, "repeat_index")) == [0] * 4 + [1] * 4


def test_fake_data_refuses_what_it_has_not():
    with pytest.raises(OptionError, match="after_augment or later"):
        PipelineConfig("none", use_data="fake", echo_factor=2, insert_point="after_decode")
    with pytest.raises(OptionError, match="use_data"):
        InputPipeline(PipelineConfig("none", use_data="fake"), is_training=False)


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_global_seed_of_the_users_changes_nothing(make_data, deterministic):
    folder = make_data(12)
    options = {
        "deterministic": deterministic,
        "shuffle_buffer_size": 6,
        "image_size": 8,
        "preprocess": "inception",
    }

    def record_ids() -> list[int]:
        ids = column(batches(make(folder, **options)), "record_id").tolist()
        return ids if deterministic else sorted(ids)  # sloppy reading promises no order

    before = record_ids()
    try:
        tf.random.set_seed(0)
        assert record_ids() == before
        tf.random.set_seed(7)
        assert record_ids() == before
    finally:
        tf.compat.v1.set_random_seed(None)
