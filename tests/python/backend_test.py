"""torch.distributed.init_process_group("renkei"): results, programs of others, and what happens when a rank fails."""

import os
import pathlib
import signal
import socket
import subprocess
import sys

import pytest

import jobs


def torchrun(ranks: int, program: str, *arguments: str, timeout: float = 240) -> subprocess.CompletedProcess[str]:
    """As a user without MPI starts it."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    return subprocess.run(
        [*command, str(jobs.PROGRAMS / program), *arguments], capture_output=True, text=True, timeout=timeout
    )


@pytest.mark.parametrize("ranks", [jobs.slow(2), 3])
def test_every_collective_gives_what_it_promises(ranks: int) -> None:
    assert "all as expected" in jobs.succeeds(ranks, "backend_collectives.py")


def test_torchrun_needs_no_mpi() -> None:
    done = torchrun(2, "backend_collectives.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("all as expected") == 2


@pytest.mark.parametrize("ranks", [jobs.slow(2), 3])
def test_ddp_fsdp_dtensor_checkpoints_and_pipelines_equal_gloo(ranks: int) -> None:
    names = ["ddp", "fsdp", "dtensor", "pipeline"]
    assert "equal: " + " ".join(names) in jobs.succeeds(ranks, "backend_matches_gloo.py", *names)


def test_forked_workers_of_a_data_loader_see_their_own_memory() -> None:
    assert "workers saw their own" in jobs.succeeds(2, "backend_fork.py")


@pytest.mark.parametrize("first", ["pools", "group"])
def test_beside_a_model_in_stages_tensors_are_shared_as_well(first: str) -> None:
    assert jobs.succeeds(2, "backend_pools.py", first).count("shared") == 2


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("missing", ["rank 1", "has not come to its process group"]),
        jobs.slow("sizes", ["rank 0", "allreduce of 100000 f32", "rank 1", "allreduce of 100001 f32"]),
        jobs.slow("parts", ["rank 1", "exchange of 44", "rank 0", "exchange of 40"]),
        ("one", ["rank 1", "all_reduce", "waited 3"]),
        jobs.slow("different", ["rank 0", "rank 1", "all_reduce", "broadcast"]),
        ("message", ["rank 1", "recv", "waited 3"]),
    ],
)
def test_a_rank_that_fails_is_named_by_the_others(kind: str, words: list[str]) -> None:
    done = torchrun(2, "backend_fails.py", kind, timeout=60)
    assert done.returncode != 0
    told = [line for line in done.stderr.splitlines() if "rank 0 after" in line]
    if kind == "missing":
        told = [line for line in done.stderr.splitlines() if "has not come" in line]
    assert told, done.stderr
    for word in words:
        assert word in told[0], told[0]


def test_a_killed_rank_is_named_at_once_and_leaves_nothing_behind() -> None:
    with socket.socket() as probe:
        probe.bind(("", 0))
        port = str(probe.getsockname()[1])
    ranks = [
        subprocess.Popen(
            [sys.executable, str(jobs.PROGRAMS / "backend_fails.py"), "kill"],
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    told = ranks[0].communicate(timeout=60)[1]
    assert ranks[1].wait(timeout=60) == -signal.SIGKILL
    assert ranks[0].returncode == 7, told
    for word in ("rank 1", "has ended", "all_reduce"):
        assert word in told, told
    assert not list(pathlib.Path("/dev/shm").glob("*renkei*"))


EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", [jobs.slow("ddp"), "fsdp"])
def test_an_example_differs_from_plain_pytorch_by_one_word_and_gives_the_same(name: str, tmp_path) -> None:
    plain, ours = ((EXAMPLES / f"{name}{kind}.py").read_text() for kind in ("_plain", ""))
    assert plain.replace('"gloo"', '"renkei"') == ours
    changed = [line for line in (EXAMPLES / f"{name}.diff").read_text().splitlines() if line[:1] in "+-"][2:]
    assert changed == ['-dist.init_process_group("gloo")', '+dist.init_process_group("renkei")']
    printed = []
    for kind in ("_plain", ""):
        done = torchrun(2, str(EXAMPLES / f"{name}{kind}.py"), str(tmp_path / f"checkpoint{kind}"))
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert printed[0].startswith("loss") and printed[0] == printed[1]
