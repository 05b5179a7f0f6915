"""Searching settings: of commands, of LINPACK from small to large, resumed from a journal."""

import json
import tomllib
import unittest

from renkei import Case

PARABOLA = 'x={x}; echo "value $(awk "BEGIN {print ($x - 3)^2 + 1}")"'


class Tune(Case):
    def tune(self, *arguments):
        """Flags come before the -- of the command."""
        done = self.run_renkei("tune", "--json", "--quiet", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_a_command_is_minimised_and_the_best_is_a_file(self):
        result = self.tune("--trials", 40, "--parameter", "x=real:-10:10", "-o",
                               "best.toml", "--", "sh", "-c", PARABOLA)
        self.assertEqual(result["trials"], 40)
        self.assertLess(result["best"]["value"], 1.5)
        best = tomllib.loads((self.path / "best.toml").read_text())
        self.assertAlmostEqual(best["best"]["x"], float(result["best"]["settings"]["x"]))
        self.assertEqual(len(result["history"]), 40)
        self.assertEqual(list(result["importance"]), ["x"])

    def test_a_search_goes_on_from_its_journal(self):
        words = ("tune", "--parameter", "x=real:-10:10", "--journal", "j.jsonl")
        command = ("--", "sh", "-c", "echo {x} >> calls; echo {x}")
        whole = self.tune("--parameter", "x=real:-10:10", "--trials", 16, *command)
        (self.path / "calls").unlink()
        self.run_renkei(*words, "--trials", 12, "--quiet", *command)
        with open(self.path / "j.jsonl", "a") as journal:
            journal.write('{"subject": "torn')  # as a crash leaves it
        result = self.tune(*words[1:], "--trials", 16, *command)
        self.assertEqual(result["best"], whole["best"])
        self.assertEqual(len((self.path / "calls").read_text().split()), 16)
        lines = (self.path / "j.jsonl").read_text().splitlines()
        self.assertEqual(len([json.loads(line) for line in lines]), 17)
        self.assert_fails(2, "has a search over other parameters", "--journal", "tune", "--parameter",
                          "x=real:-1:1", "--journal", "j.jsonl", "--quiet", *command)

    def test_constraints_conditions_and_parallel_trials(self):
        result = self.tune("--trials", 24, "--parallel", 3, "--maximize",
                               "--parameter", "p=int:1:8", "--parameter", "q=int:1:8",
                               "--parameter", "how=choice:a,b", "--parameter", "k=int:1:3 if how=b",
                               "--constraint", "p*q=8", "--", "sh", "-c", "echo {p}")
        for trial in result["history"]:
            settings = trial["settings"]
            self.assertEqual(int(settings["p"]) * int(settings["q"]), 8)
            self.assertEqual("k" in settings, settings["how"] == "b")
        self.assertEqual(result["best"]["value"], 8)

    def test_linpack_from_small_to_large(self):
        result = self.tune("linpack", "--stages", "1:2:*2", "--trials", 4, "-o",
                               "best.toml", "--", "--order", 300, "--threads", 1)
        self.assertEqual((result["ranks"], result["target"]), (2, "linpack"))
        self.assertGreaterEqual(result["best"]["value"], result["default_value"])
        used = self.run_json("linpack", "-n", 2, "--order", 300, "--config", "best.toml")
        self.assertEqual(str(used["nb"]), result["best"]["settings"]["linpack.nb"])

    def test_collectives(self):
        result = self.tune("collectives", "-n", 2, "--trials", 3, "--", "--sizes",
                               "64KiB", "--repeat", 2)
        self.assertGreater(result["best"]["value"], 0)
        self.assertIn("comm.algorithm", result["best"]["settings"])

    def test_mistakes_get_a_sentence(self):
        self.assert_fails(2, "needs to know what to measure", "linpack, collectives or train", "tune")
        self.assert_fails(2, "no target 'linpak'", "after --", "tune", "linpak")
        self.assert_fails(2, "nothing to choose", "--parameter", "tune", "--", "true")
        self.assert_fails(1, "no trial gave a number", "by hand", "tune", "--parameter",
                          "x=real:0:1", "--trials", 2, "--quiet", "--", "true")
        self.assert_fails(2, "unknown kind 'odd'", "int:16:512", "tune", "--parameter", "x=odd:1:2",
                          "--", "true")


if __name__ == "__main__":
    unittest.main()
