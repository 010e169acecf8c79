import pytest

from bench.pipelines import ours, ours_float32, ours_uint8
from bench.pipelines.variants import Task


@pytest.mark.parametrize("module, dtype", [(ours_float32, "float32"), (ours_uint8, "uint8")])
def test_our_pipeline_is_the_one_of_a_run_with_the_given_type(monkeypatch, small_data, module, dtype):
    configs, kept = [], []

    class Watched(ours.InputPipeline):
        def __init__(self, config, is_training):
            assert is_training
            configs.append(config)
            super().__init__(config, is_training)

    monkeypatch.setattr(ours, "InputPipeline", Watched)
    # For ever, so not for this process.
    monkeypatch.setattr(ours, "keep_freed_memory", lambda: kept.append(True))
    batches = module.open_batches(Task(small_data, batch_size=4, image_size=16))
    assert [next(batches) for _ in range(5)] == [4] * 5
    (config,) = configs
    assert (config.data_dir, config.train_split) == (small_data, "train")
    assert (config.batch_size, config.image_size, config.dtype) == (4, 16, dtype)
    assert kept == [True]
