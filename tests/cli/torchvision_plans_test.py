"""Every classification network of torchvision is exported without values and planned (make test-all). Those that
fail are listed with the reason."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "src" / "capture")]

import torchvision_ops  # noqa: E402, F401, I001  (before torchvision)
import torch  # noqa: E402
import torchvision  # noqa: E402
from export_model import ExportError, InputSpec, export_model  # noqa: E402
from renkei import PROGRAM  # noqa: E402

SIDES = {"inception_v3": 299}
# The weights do not matter, and drawing them takes longer than the rest.
OPTIONS = {"inception_v3": {"init_weights": False}, "googlenet": {"init_weights": False}}


def export(name, file):
    with torch.device("meta"):
        model = getattr(torchvision.models, name)(weights=None, **OPTIONS.get(name, {}))
    side = SIDES.get(name, 224)
    export_model(model, [InputSpec((3, side, side))], file)


class TorchvisionPlans(unittest.TestCase):
    def test_at_least_sixty_networks_are_planned(self):
        planned, failed = [], {}
        with tempfile.TemporaryDirectory() as directory:
            for name in torchvision.models.list_models(torchvision.models):
                file = Path(directory) / f"{name}.pt2"
                try:
                    export(name, file)
                except ExportError as error:
                    failed[name] = f"export: {error}"
                    continue
                done = subprocess.run([PROGRAM, "plan", "--model", file, "--cluster", "flow-type2", "--devices", "4",
                                       "--batch", "32", "--json", "--quiet", "--time-limit", "5s"],
                                      capture_output=True, text=True, check=False)
                file.unlink()
                if done.returncode != 0:
                    failed[name] = done.stderr.strip() or "no message"
                    continue
                plan = json.loads(done.stdout)
                planned.append(name)
                print(f"{name}: {plan['stages']} stages, step {plan['predicted']['step_seconds']:.4f} s", flush=True)
        for name, reason in failed.items():
            print(f"FAILED {name}: {reason}", flush=True)
        print(f"{len(planned)} planned, {len(failed)} failed")
        self.assertGreaterEqual(len(planned), 60)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
