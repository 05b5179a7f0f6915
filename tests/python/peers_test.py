"""Programs written for Horovod and RaNNC, and ChainerMN's ideas: results are plain PyTorch's."""

import difflib
import doctest
import importlib
import pathlib
import re
import threading

import pytest
import torch

import jobs

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("ranks", [jobs.slow(1), jobs.slow(2), 3])
def test_every_name_of_horovods_users_means_what_it_says(ranks: int) -> None:
    assert jobs.succeeds(ranks, "horovod_names.py").count("equal") == ranks


@pytest.mark.parametrize("ranks", [jobs.slow(1), jobs.slow(2), 3])
def test_every_name_of_ranncs_users_means_what_it_says(ranks: int, tmp_path: pathlib.Path) -> None:
    assert jobs.succeeds(ranks, "rannc_names.py", tmp_path).count("equal") == ranks


@pytest.mark.parametrize("ranks", [jobs.slow(1), 3])
def test_data_evaluation_and_batch_norm_are_those_of_one_process(ranks: int) -> None:
    assert jobs.succeeds(ranks, "shared_ideas.py").count("equal") == ranks


@pytest.mark.parametrize(
    ("folder", "program", "peer", "imported"),
    [
        ("horovod", "train", "horovod", ("import horovod.torch as hvd", "import renkei.horovod.torch as hvd")),
        ("rannc", "tutorial", "rannc", ("import pyrannc", "import renkei.pyrannc as pyrannc")),
    ],
)
def test_a_program_changes_its_import_and_nothing_else(
    folder: str, program: str, peer: str, imported: tuple[str, str]
) -> None:
    theirs, ours = ((EXAMPLES / folder / f"{program}_{name}.py").read_text().splitlines() for name in (peer, "renkei"))
    changed = [line for line in difflib.ndiff(theirs, ours) if line[0] in "+-"]
    assert changed == [f"- {imported[0]}", f"+ {imported[1]}"]
    told = (EXAMPLES / folder / f"{program}.diff").read_text().splitlines()
    assert [line for line in told if line[0] in "+-" and line[:3] not in ("---", "+++")] == [
        f"-{imported[0]}",
        f"+{imported[1]}",
    ]


def test_the_horovod_program_learns_as_one_rank_does() -> None:
    one, two = (
        jobs.succeeds(ranks, EXAMPLES / "horovod/train_renkei.py", "--batch-size", 64 // ranks, "--lr", 0.05 / ranks)
        for ranks in (1, 2)
    )
    accuracies = [[float(a) for a in re.findall(r"accuracy (0\.\d+|1\.0+)", text)] for text in (one, two)]
    assert len(accuracies[0]) == len(accuracies[1]) == 2, one + two
    # The same samples in every step, in another order.
    assert accuracies[0] == pytest.approx(accuracies[1], abs=0.01) and accuracies[1][-1] > 0.5


def test_the_rannc_tutorial_runs_on_two_ranks() -> None:
    told = jobs.succeeds(2, EXAMPLES / "rannc/tutorial_renkei.py", 64, 512, 10)
    assert "#Parameters=2626560" in told and "state of 20 tensors" in told


@pytest.mark.parametrize(
    ("asks", "words"),
    [("another", "not asked for by rank [01]"), ("nothing", "allreduce.only rank 0 can't be done.*rank 1")],
)
def test_one_rank_that_never_asks_is_named(asks: str, words: str) -> None:
    done = jobs.run(2, "horovod_missing.py", asks, timeout=25)
    assert done.returncode != 0 and re.search(words, done.stderr), done.stderr


def test_whatever_was_taken_ends_with_a_collective_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    from renkei import _queue

    class OneRank:
        timeout_seconds = 5.0

        def __init__(self, world: object) -> None:
            pass

        def allgather(self, mine: bytes, operation: str, timeout_seconds: float | None) -> list[bytes]:
            return [mine]

    def fails(ranks: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(_queue._engine, "QueueRanks", OneRank)
    queue, begin = _queue.Queue(), threading.Event()
    first = queue.submit(_queue.Request("first", "barrier", (), lambda ranks: begin.wait()))
    others = [queue.submit(_queue.Request(name, "barrier", (), fails)) for name in ("second", "third")]
    begin.set()
    first.wait()
    for request in others:
        assert request.ended.wait(5)
        with pytest.raises(ValueError, match="broken"):
            request.wait()


def test_names_that_nobody_has_stay_attribute_errors() -> None:
    import renkei.horovod
    import renkei.horovod.torch as hvd
    import renkei.pyrannc as pyrannc

    for module in (hvd, pyrannc, renkei.horovod):
        assert not hasattr(module, "no_such_name")
    with pytest.raises(renkei.RenkeiError, match="renkei run"):
        renkei.horovod.run  # noqa: B018
    assert torch.nn.SyncBatchNorm is not hvd.SyncBatchNorm


@pytest.mark.parametrize(
    "name",
    [
        "datasets",
        "sync_batch_norm",
        "pyrannc",
        *(f"horovod.torch.{part}" for part in ("_basics", "_compression", "mpi_ops", "functions", "optimizer", "elastic")),
    ],
)
def test_examples_in_docstrings_hold(name: str) -> None:
    module = importlib.import_module(f"renkei.{name}")
    found = doctest.testmod(module, extraglobs={"torch": torch})
    assert found.attempted > 0 and found.failed == 0
