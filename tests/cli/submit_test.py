"""Job scripts as they are printed, and what is said where there is no Slurm."""

import os
import subprocess
import unittest

from renkei import PROGRAM, Case

GOLDEN = """#!/bin/bash
#SBATCH --job-name=renkei-train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=1
#SBATCH --time=30
#SBATCH --output=%x-%j.out
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@120

export OMP_NUM_THREADS=1
job=$SLURM_JOB_ID
sweep=()

# A job that was here before goes on; one that had saved nothing begins again.
run=runs/slurm-$job
where=(--run-dir "$run")
if [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] && [ -d "$run" ]; then
  if ls "$run"/checkpoints/* > /dev/null 2>&1; then where=("--resume=$run")
  else mv "$run" "$run-lost-$SLURM_RESTART_COUNT"; fi
fi

# Slurm warns this shell; the ranks save and end, and the job goes back to the queue.
warned=no
warn() { warned=yes; scancel --signal=USR1 "$SLURM_JOB_ID"; }
trap warn USR1

srun --mpi=pmix --cpu-bind=cores RENKEI train --model lenet --steps 10 "${sweep[@]}" "${where[@]}" &
ranks=$!
wait "$ranks"; code=$?
while kill -0 "$ranks" 2> /dev/null; do wait "$ranks"; code=$?; done
if [ "$warned" = yes ]; then scontrol requeue "$SLURM_JOB_ID"; sleep 60; fi
exit "$code"
"""


class Submit(Case):
    def test_a_dry_run_prints_the_script(self):
        done = self.run_renkei("submit", "--nodes", 2, "--cluster", "mn1", "--time", 30, "--dry-run",
                               "train", "--model", "lenet", "--steps", 10)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.replace(os.path.realpath(PROGRAM), "RENKEI"), GOLDEN)

    def test_slurm_gets_the_script_and_its_number_comes_back(self):
        for name, text in (("sbatch", "cat > script; echo Submitted batch job 42"),
                           ("squeue", "echo '42|renkei-check|PENDING|'")):
            program = self.path / name
            program.write_text(f"#!/bin/sh\n{text}\n")
            program.chmod(0o755)
        environment = {**os.environ, "PATH": f"{self.path}:{os.environ['PATH']}"}
        done = subprocess.run([PROGRAM, "submit", "--nodes", "3", "check", "--level", "1"],
                              cwd=self.path, env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("job 42", done.stdout)
        self.assertIn("check --level 1", (self.path / "script").read_text())
        done = subprocess.run([PROGRAM, "jobs"], cwd=self.path, env=environment, capture_output=True,
                              text=True)
        self.assertIn("job 42 renkei-check", done.stdout)
        self.assertIn("pending", done.stdout)

    def test_mistakes_get_a_sentence(self):
        self.assert_fails(2, "submit needs a command", "--nodes 2 train", "submit", "--dry-run")
        self.assert_fails(2, "is no sweep", "train.lr=0.1", "submit", "--dry-run", "--sweep", "lr",
                          "train")
        self.assert_fails(2, "does not say where to", "SOURCE=>DIRECTORY", "submit", "--dry-run",
                          "--stage", "set", "train")


if __name__ == "__main__":
    unittest.main()
