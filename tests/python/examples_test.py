"""The programs in examples/, as a user starts them."""

import json
import pathlib
import re
import subprocess
import sys

import jobs

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def renkei(*words: object) -> str:
    command = [sys.executable, "-m", "renkei", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_gpt2_that_fits_no_device_learns_in_stages_and_leaves_a_report(tmp_path) -> None:
    run = tmp_path / "run"
    # The wheels here have no operators of torchvision, without which transformers does not load.
    first = f"import sys\nsys.path.append({str(jobs.SUPPORT)!r})\nimport torchvision_ops\n"
    (tmp_path / "sitecustomize.py").write_text(first)
    text = jobs.succeeds(4, EXAMPLES / "gpt2.py", 4, 64, "3MiB", run, PYTHONPATH=str(tmp_path))
    stages, first, last = re.fullmatch(r"(\d) stages, loss (.*) -> (.*)\n", text).groups()
    assert int(stages) > 1 and float(last) < float(first)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(8)) and lines[0]["loss"] > lines[-1]["loss"]
    report = json.loads(renkei("report", run, "--format", "json"))
    text = json.dumps(report)
    assert "pipeline" in text or "stages" in text


def test_images_are_classified_from_packed_shards(tmp_path) -> None:
    renkei("data", "synth", tmp_path / "shapes", "--images", 256, "--test-images", 64, "--shards")
    text = jobs.succeeds(2, EXAMPLES / "images.py", tmp_path / "shapes", 2)
    assert re.search(r"epoch 2: loss .*, \d+ of 64 right", text), text


def test_fine_tuning_goes_on_on_other_ranks(tmp_path) -> None:
    assert "steps 0 to 30" in jobs.succeeds(2, EXAMPLES / "finetune.py", tmp_path / "saved")
    assert "steps 30 to 60" in jobs.succeeds(3, EXAMPLES / "finetune.py", tmp_path / "saved")
