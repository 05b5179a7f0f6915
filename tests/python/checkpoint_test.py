"""renkei.save and renkei.load: training goes on under any plan and number of ranks, as if it had not stopped."""

import json

import pytest
import torch

import jobs
import renkei

STAGES = {"settings": {"plan.stages": "2"}}


def train(ranks: int, folder, end: int, out, options: dict):
    jobs.succeeds(ranks, "resume.py", folder, end, out, json.dumps(options))
    return torch.load(out)


def assert_same(one, other) -> None:
    for key, value in one[0].items():
        torch.testing.assert_close(other[0][key], value, rtol=1e-6, atol=1e-7)
    for number, state in one[1].items():
        for key, value in state.items():
            torch.testing.assert_close(other[1][number][key], value, rtol=1e-5, atol=1e-8)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    directory = tmp_path_factory.mktemp("plain")
    return train(1, directory / "checkpoints", 4, directory / "out", {})


@pytest.mark.parametrize(
    ("first", "second"),
    [jobs.slow((1, {}), (3, {})), ((2, {}), (2, STAGES)), jobs.slow((2, STAGES), (1, {})), ((2, STAGES), (4, STAGES))],
)
def test_training_goes_on_under_another_plan_and_other_ranks(tmp_path, undisturbed, first, second) -> None:
    folder = tmp_path / "checkpoints"
    train(first[0], folder, 3, tmp_path / "half", first[1])
    assert_same(undisturbed, train(second[0], folder, 4, tmp_path / "all", second[1]))


def test_a_damaged_checkpoint_is_passed_over_with_a_sentence(tmp_path, capsys) -> None:
    model = torch.nn.Linear(2, 2)
    for step in (1, 2):
        with torch.no_grad():
            model.weight.fill_(step)
        saved = renkei.save(tmp_path, model, step=step)
    shard = next(saved.directory.glob("*.safetensors"))
    shard.write_bytes(shard.read_bytes()[:-4])
    assert renkei.load(tmp_path, model)["step"] == 1
    assert model.weight[0, 0] == 1 and "step-00000002" in capsys.readouterr().out


def test_mistakes_get_a_sentence(tmp_path) -> None:
    model = torch.nn.Linear(2, 2)
    with pytest.raises(renkei.RenkeiError, match="no checkpoint that is whole"):
        renkei.load(tmp_path, model)
    with pytest.raises(renkei.RenkeiError, match="'thing' can't be saved"):
        renkei.save(tmp_path, model, thing=object())
    renkei.save(tmp_path, model)
    with pytest.raises(renkei.RenkeiError, match="has no 1.weight"):
        renkei.load(tmp_path, torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(2, 2)))
    with pytest.raises(renkei.RenkeiError, match="has no optimizer"):
        renkei.load(tmp_path, model, torch.optim.SGD(model.parameters(), lr=1))
    with pytest.raises(renkei.RenkeiError, match="has no 'scheduler'"):
        renkei.load(tmp_path, model, scheduler=None)


def test_a_scheduler_goes_on_with_its_milestones(tmp_path) -> None:
    rates = []
    for loads in (False, True):
        optimizer = torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=1.0)
        scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4], gamma=0.1)
        if loads:
            renkei.load(tmp_path, torch.nn.Linear(1, 1), scheduler=scheduler)
        for step in range(1 if loads else 0, 5):
            optimizer.step()
            scheduler.step()
            if step == 0:
                renkei.save(tmp_path, torch.nn.Linear(1, 1), scheduler=scheduler)
        rates.append(scheduler.get_last_lr())
    assert rates[0] == rates[1] == pytest.approx([0.01])


def test_what_is_saved_comes_back_as_it_was(tmp_path) -> None:
    model = torch.nn.Linear(1, 1)
    given = {1: ("a", None), (2, 3): [1.5, {"@": 7}], "of": {"deep": torch.arange(3)}, "nan": float("nan")}
    renkei.save(tmp_path, model, given=given, tensor=torch.ones(2))
    found = renkei.load(tmp_path, model)
    assert torch.equal(found["tensor"], torch.ones(2))
    assert torch.equal(found["given"].pop("of")["deep"], given.pop("of")["deep"])
    assert found["given"].pop("nan") != given.pop("nan") and found["given"] == given
    with pytest.raises(renkei.RenkeiError, match="'given' can't be saved: set is not a plain value"):
        renkei.save(tmp_path, model, given=[{1, 2}])


def test_whatever_goes_wrong_is_told_to_all(tmp_path, monkeypatch) -> None:
    def fails(*arguments: object) -> None:
        raise ValueError

    monkeypatch.setattr(renkei._engine, "write_manifest", fails)
    with pytest.raises(renkei.RenkeiError, match="rank 0 could not save: ValueError"):
        renkei.save(tmp_path, torch.nn.Linear(1, 1))
