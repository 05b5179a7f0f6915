"""All models of the table (zoo_test.py), and random plans."""

import json
import pathlib

import pytest

from jobs import check

DOCS = pathlib.Path(__file__).parents[2] / "docs" / "capture.md"


@pytest.mark.parametrize("family", ["users", "shapes", "torchvision", "timm", "hf"])
def test_all_models_are_right(family: str, tmp_path: pathlib.Path) -> None:
    out = tmp_path / "rows.json"
    check(2, "--out", out, family, timeout=3600)
    if family not in ("users", "shapes"):
        return
    text = DOCS.read_text()
    for row in json.loads(out.read_text()):
        if not (row.get("opaque") or row.get("assumptions") or row.get("refused")):
            continue
        assert f"| {row['name']} |" in text, f"docs/capture.md has no row for {row}: tests/python/zoo/table.py writes it"


@pytest.mark.parametrize("family", ["users", "shapes"])
def test_three_stages_are_right(family: str) -> None:
    check(3, "--plans", "stages", family, timeout=1800)


@pytest.mark.parametrize("ranks", [2, 4])
def test_random_plans_are_right(ranks: int) -> None:
    """Over all of them more than 200: stages, replicas, recomputation, schedules, micro-batches."""
    said = check(ranks, "--plans", "none", "--random", 3, "users", "shapes", timeout=3600)
    assert sum(int(line.split(" plans")[0].split()[-1]) for line in said.splitlines() if " plans" in line) > 100
