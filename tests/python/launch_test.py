"""`renkei run`: ranks, collectives, and how a job ends when one rank does."""

import subprocess
import sys

import pytest

import jobs
import renkei


@pytest.mark.parametrize("ranks", [jobs.slow(1), jobs.slow(2), 3])
def test_collectives_give_what_they_promise(ranks: int) -> None:
    jobs.succeeds(ranks, "collectives.py")


def test_a_program_that_is_a_job_of_one_rank_may_start_another_job() -> None:
    renkei.init()  # its RANK and MASTER_ADDR are no business of the ranks that it starts
    jobs.succeeds(2, "collectives.py")


@pytest.mark.parametrize("culprit", [jobs.slow(0), 1])
def test_an_exception_on_one_rank_ends_the_job_and_is_told_once_and_last(culprit: int) -> None:
    done = jobs.run(2, "fails.py", "exception", culprit, timeout=60)
    assert done.returncode == 1
    assert done.stderr.count("ValueError: the sample 17 is broken") == 1
    assert done.stderr.rstrip().endswith("ValueError: the sample 17 is broken")
    assert f"rank {culprit} failed" in done.stderr
    assert 'fails.py", line 13' in done.stderr
    assert "_rank.py" not in done.stderr


def test_a_sentence_keeps_its_hint_and_its_exit_code() -> None:
    done = jobs.run(2, "fails.py", "sentence", 1, timeout=60)
    assert done.returncode == 3
    assert done.stderr.rstrip().endswith("the data set is empty\n  hint: download it first")


def test_a_rank_that_exits_with_a_code_ends_the_job_with_it() -> None:
    assert jobs.run(2, "fails.py", "exit", 1, timeout=60).returncode == 9


def test_a_killed_rank_is_named() -> None:
    done = jobs.run(2, "fails.py", "kill", 1, timeout=60)
    assert done.returncode == 4
    assert "rank 1" in done.stderr and "signal 9" in done.stderr


def test_words_behind_the_program_are_its_own(tmp_path) -> None:
    program = tmp_path / "words.py"
    program.write_text("import sys\nprint(sys.argv[1:])\n")
    assert jobs.succeeds(1, program, "-n", "7", "--json", "--help") == "['-n', '7', '--json', '--help']\n"


def test_a_missing_program_gets_a_sentence() -> None:
    done = jobs.run(2, "nothing.py")
    assert done.returncode == 2 and "there is no file" in done.stderr
    done = subprocess.run([sys.executable, "-m", "renkei", "run", "--rank", "2"], capture_output=True, text=True)
    assert done.returncode == 2 and "unknown flag '--rank'" in done.stderr


def test_the_package_is_the_command_line_too() -> None:
    done = subprocess.run([sys.executable, "-m", "renkei", "--version"], capture_output=True, text=True)
    assert done.stdout.startswith("renkei 0.")
