"""Runs the renkei under test; what the test files share."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

PROGRAM = os.environ["RENKEI"]
SOURCE = Path(os.environ.get("RENKEI_SOURCE", "."))


class Case(unittest.TestCase):
    """Each test has a directory of its own, in which renkei runs."""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="renkei-cli-")
        self.addCleanup(self.directory.cleanup)
        self.path = Path(self.directory.name)

    def run_renkei(self, *arguments, launcher=(), timeout=120):
        return subprocess.run([*launcher, PROGRAM, *map(str, arguments)], cwd=self.path,
                              capture_output=True, text=True, timeout=timeout)

    def run_json(self, *arguments, **options):
        done = self.run_renkei(*arguments, "--json", "--quiet", **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def assert_fails(self, code, message, hint, *arguments, **options):
        """One sentence and a hint on stderr, and the documented exit code."""
        done = self.run_renkei(*arguments, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(message, done.stderr)
        self.assertIn(hint, done.stderr)
        self.assertEqual(done.stderr.count("error: "), 1, done.stderr)
        self.assertEqual(done.stdout, "")
        return done

    def metrics(self, run_directory):
        lines = (Path(run_directory) / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def rank_pids(self, ranks):
        """The processes of this test's job, by rank, from their environment."""
        found = {}
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                if os.readlink(f"/proc/{entry}/cwd") != os.path.realpath(self.path):
                    continue
                words = Path(f"/proc/{entry}/environ").read_text().split("\0")
                variables = dict(word.split("=", 1) for word in words if "=" in word)
                program = os.readlink(f"/proc/{entry}/exe").removesuffix("-torch")
            except (OSError, ValueError):
                continue  # it has ended meanwhile
            rank = variables.get("OMPI_COMM_WORLD_RANK", variables.get("PMI_RANK"))
            if rank is not None and program == os.path.realpath(PROGRAM):
                found[int(rank)] = int(entry)
        self.assertEqual(sorted(found), list(range(ranks)))
        return found
