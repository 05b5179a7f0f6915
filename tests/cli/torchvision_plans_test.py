"""Every classification network of torchvision that can be exported is planned (make test-all).
Those that fail are listed with the reason."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src/capture"))

import torchvision_ops  # noqa: F401, I001  (before torchvision)
import torch
import torchvision
from export_model import ExportError, export_model, parse_input

from renkei import PROGRAM

SIDES = {"inception_v3": 299}


def classification_networks():
    models = torchvision.models
    names = [name for name in dir(models)
             if name.islower() and callable(getattr(models, name)) and not name.startswith(("_", "get_"))]
    return [name for name in names if name not in ("list_models",)]


class TorchvisionPlans(unittest.TestCase):
    def test_at_least_sixty_networks_are_planned(self):
        planned, failed = [], {}
        with tempfile.TemporaryDirectory() as directory:
            for name in classification_networks():
                side = SIDES.get(name, 224)
                file = Path(directory) / f"{name}.pt2"
                # The weights do not matter, and drawing them takes longer than the rest.
                options = {"init_weights": False} if name in ("inception_v3", "googlenet") else {}
                try:
                    with torch.device("meta"):
                        model = getattr(torchvision.models, name)(weights=None, **options)
                    export_model(model, [parse_input(f"3x{side}x{side}")], file)
                except ExportError as error:
                    failed[name] = f"export: {error}"
                    continue
                done = subprocess.run(
                    [PROGRAM, "plan", "--model", file, "--cluster", "flow-type2", "--devices", "4",
                     "--batch", "32", "--json", "--quiet", "--time-limit", "5s"],
                    capture_output=True, text=True)
                file.unlink()
                if done.returncode != 0:
                    failed[name] = done.stderr.strip().splitlines()[0] if done.stderr else "no message"
                    continue
                plan = json.loads(done.stdout)
                planned.append(name)
                print(f"{name}: {plan['stages']} stages, step {plan['predicted']['step_seconds']:.4f} s",
                      flush=True)
        for name, reason in failed.items():
            print(f"FAILED {name}: {reason}", flush=True)
        print(f"{len(planned)} planned, {len(failed)} failed")
        self.assertGreaterEqual(len(planned), 60)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
