"""renkei.data: batches of the engine's loader, in its order, as tensors."""

import numpy
import pytest
import torch

import renkei


@pytest.fixture
def numbers(tmp_path):
    rows = numpy.arange(20, dtype=numpy.float32).repeat(3).reshape(20, 3)
    numpy.savez(tmp_path / "numbers.npz", input=rows, target=numpy.arange(20) % 4)
    return str(tmp_path / "numbers.npz")


def samples_of(batches) -> list[list[float]]:
    return [batch["input"][:, 0].tolist() for batch in batches]


def test_each_sample_comes_once_in_an_epoch_in_an_order_of_its_own(numbers) -> None:
    batches = renkei.data.open(numbers, batch_size=4, seed=3)
    assert len(batches) == 5 and batches.samples == 20
    first, second = samples_of(batches), samples_of(batches)
    assert sorted(sum(first, [])) == list(range(20)) == sorted(sum(second, [])) and first != second
    again = renkei.data.open(numbers, batch_size=4, seed=3)
    assert samples_of(again) == first
    one = next(iter(renkei.data.open(numbers, batch_size=4, shuffle=False)))
    assert one["input"].dtype == torch.float32 and one["target"].tolist() == [0, 1, 2, 3]


def test_an_epoch_goes_on_where_it_was(numbers) -> None:
    whole = samples_of(renkei.data.open(numbers, batch_size=4))
    batches = renkei.data.open(numbers, batch_size=4)
    passing = iter(batches)
    begun = [next(passing)["input"][:, 0].tolist() for _ in range(2)]
    other = renkei.data.open(numbers, batch_size=4)
    other.load_state_dict(batches.state_dict())
    assert begun + samples_of(other) == whole
    with pytest.raises(renkei.RenkeiError, match="epochs of 5 batches"):
        renkei.data.open(numbers, batch_size=5).load_state_dict(batches.state_dict())


def test_tensors_stay_as_long_as_they_are_used(numbers) -> None:
    kept = [batch["input"] for batch in renkei.data.open(numbers, batch_size=4, shuffle=False)]
    assert torch.cat(kept)[:, 0].tolist() == list(range(20))


def test_the_last_smaller_batch_is_dropped_or_kept(numbers) -> None:
    assert len(renkei.data.open(numbers, batch_size=6)) == 3
    assert [len(one) for one in samples_of(renkei.data.open(numbers, batch_size=6, drop_last=False))] == [6, 6, 6, 2]
    with pytest.raises(renkei.RenkeiError, match="less than one batch"):
        renkei.data.open(numbers, batch_size=21)


def test_mistakes_get_a_sentence(numbers, tmp_path) -> None:
    with pytest.raises(renkei.RenkeiError, match="has no effect on data"):
        renkei.data.open(numbers, batch_size=4, settings={"train.lr": "1"})
    with pytest.raises(renkei.RenkeiError):
        renkei.data.open(str(tmp_path / "nothing"), batch_size=4)
