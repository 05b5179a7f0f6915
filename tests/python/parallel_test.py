"""renkei.parallelize: training on many ranks, whole or in stages, is what one process would do."""

import difflib
import json
import pathlib

import pytest
import torch

import jobs
import renkei

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("ranks", [2, 3])
def test_models_of_many_kinds_are_trained_as_one_process_would(ranks: int) -> None:
    assert jobs.succeeds(ranks, "training.py").count("equal") == ranks


@pytest.mark.parametrize(
    ("ranks", "options"),
    [
        (1, {"settings": {"plan.stages": "1"}}),
        (2, {"settings": {"plan.stages": "2"}}),
        (2, {"settings": {"plan.stages": "1"}}),
        (3, {"settings": {"plan.stages": "3"}}),
        (4, {"settings": {"plan.stages": "2"}}),
    ],
)
def test_models_in_stages_are_trained_as_one_process_would(ranks: int, options: dict) -> None:
    assert jobs.succeeds(ranks, "training.py", json.dumps(options)).count("equal") == ranks


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_the_tutorial_equals_plain_pytorch_on_the_joined_batches(ranks: int) -> None:
    jobs.succeeds(ranks, "tutorial.py", 16, 64, 10)


def test_the_tutorial_equals_plain_pytorch_where_it_fits_no_rank() -> None:
    jobs.succeeds(4, "tutorial.py", 16, 256, 8, "3MiB")


def test_tied_weights_have_their_gradients_where_one_stage_is_recomputed_in_segments() -> None:
    assert jobs.succeeds(1, "segments.py") == "equal\n"


def test_the_tutorial_counts_its_parameters_once() -> None:
    assert jobs.succeeds(2, EXAMPLES / "tutorial.py", 64, 512, 10) == "#Parameters=2626560\n"


def test_the_tutorial_differs_from_plain_pytorch_by_two_lines() -> None:
    plain, ours = ((EXAMPLES / name).read_text().splitlines() for name in ("tutorial_plain.py", "tutorial.py"))
    changed = [line for line in difflib.ndiff(plain, ours) if line[0] in "+-" and line[1:].strip()]
    assert changed == ["+ import renkei", "+ model = renkei.parallelize(model, opt)"]


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("shape", "rank 1 has another model than rank 0: 0.weight [4, 7]"),
        ("extra", "rank 1 has another model than rank 0: 1.weight [1, 6] float32 in the place of nothing"),
        ("frozen", "(no gradient)"),
    ],
)
def test_different_models_on_two_ranks_are_named(way: str, words: str) -> None:
    done = jobs.run(2, "different_models.py", way, timeout=120)
    assert done.returncode == 2 and words in done.stderr, done.stderr


def test_what_can_not_be_trained_gets_a_sentence() -> None:
    model = torch.nn.Linear(2, 2)
    for wrong, words in (
        (lambda: renkei.parallelize(torch.nn.Linear(2, 2, device="meta")), "weight is on meta"),
        (lambda: renkei.parallelize(torch.nn.LazyLinear(2)), "no shape yet"),
        (lambda: renkei.parallelize(model, torch.optim.SGD(torch.nn.Linear(1, 1).parameters())), "none of the model"),
        (lambda: renkei.parallelize(model, plan="data", device_memory="1MiB"), "as it is written"),
        (lambda: renkei.parallelize(model, settings={"train.lr": "1"}), "has no effect"),
        (lambda: renkei.parallelize(renkei.parallelize(model)), "parallel already"),
        (lambda: renkei.parallelize(torch.nn.Linear(2, 2)).double(), "can't change any more"),
    ):
        with pytest.raises(renkei.RenkeiError, match=words) as caught:
            wrong()
        assert caught.value.hint


def test_the_wrapper_is_the_model_to_those_who_look() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    parallel = renkei.parallelize(model)
    assert list(parallel.state_dict()) == list(model.state_dict())
    assert [n for n, _ in parallel.named_parameters()] == [n for n, _ in model.named_parameters()]
    assert len(parallel) == 2 and parallel[0] is model[0] and parallel.module is model
    assert not parallel.eval().training and not model[1].training
    outer = torch.nn.Sequential(parallel)
    assert list(outer.state_dict()) == [f"0.{name}" for name in model.state_dict()]
    assert len(list(outer.parameters())) == 4


@pytest.mark.parametrize(
    ("way", "plan", "code", "words"),
    [
        ("exception", "data", 1, "the sample 17 is broken"),
        ("exception", "stages", 1, "the sample 17 is broken"),
        ("kill", "data", 4, "rank 1"),
        ("kill", "stages", 4, "rank 1"),
        ("shape", "stages", 2, "rank 1 has other sizes or types than that of rank 0 (3 and 4 samples)"),
        ("width", "stages", 2, "rank 1 calls the model with a new kind of batch or in a new mode while rank 0 calls the"),
        ("leave", "data", 4, "rank 1"),
        ("leave", "stages", 4, "rank 1"),
        ("state_dict", "stages", 2, "rank 1 calls state_dict() while rank 0 calls the model"),
    ],
)
def test_what_one_rank_does_wrong_ends_the_job_at_once_with_its_cause(way: str, plan: str, code: int, words: str) -> None:
    done = jobs.run(2, "ends.py", way, plan, timeout=60)
    assert done.returncode == code and words in done.stderr, (done.returncode, done.stderr)


def test_models_and_process_groups_are_beside_each_other() -> None:
    assert jobs.succeeds(2, "many_models.py").count("equal") == 2


def test_hugging_faces_save_pretrained_takes_its_arguments_by_name_too() -> None:
    class Model(torch.nn.Linear):
        def save_pretrained(self, save_directory: str, state_dict: dict | None = None) -> tuple[str, list[str]]:
            return save_directory, list(state_dict or {})

    parallel = renkei.parallelize(Model(2, 2))
    assert parallel.save_pretrained("a") == parallel.save_pretrained(save_directory="a") == ("a", ["weight", "bias"])


def test_batches_of_different_sizes_are_fine_where_each_rank_has_the_whole_model() -> None:
    jobs.succeeds(2, "ends.py", "shape", "data")
