import shutil
import subprocess
import unittest

from renkei import PROGRAM, SOURCE, Case


class Help(Case):
    def test_every_command_has_help(self):
        for words in (("--help",), ("help",), ("train", "--help"), ("help", "train"), ("plan", "--help"),
                      ("data", "synth", "--help"), ("help", "data", "synth")):
            done = self.run_renkei(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("Usage: ", done.stdout)

    def test_the_settings_page_in_docs_is_what_the_program_says(self):
        page = self.run_renkei("help", "settings").stdout
        self.assertEqual((SOURCE / "docs/settings.md").read_text(), page,
                         "run: build/bin/renkei help settings > docs/settings.md")

    def test_print_config_shows_what_would_be_used(self):
        (self.path / "job.toml").write_text("[train]\nlr = 0.1\nmomentum = 0.5\n")
        done = self.run_renkei("train", "--config", "job.toml", "--set", "train.momentum=0.7",
                               "--batch", 8, "--print-config")
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in ("lr = 0.1 ", "momentum = 0.7 ", "batch = 8 "):
            self.assertIn("\n" + line, done.stdout)
        (self.path / "again.toml").write_text(done.stdout)
        again = self.run_renkei("train", "--config", "again.toml", "--print-config")
        self.assertEqual(again.stdout, done.stdout)

    def test_the_program_without_torch_says_the_same_as_the_one_with_it(self):
        for words in (("data", "pack", "--help"), ("data", "stage", "--help"), ("plan", "--help"),
                      ("bench", "collectives", "--help"), ("bench", "data", "--help"), ("--version",),
                      ("plan", "--model", "lenet9"), ("data", "info", "nowhere"), ("data", "inf")):
            light, full = (subprocess.run([program, *words], capture_output=True, text=True)
                           for program in (PROGRAM, PROGRAM + "-torch"))
            self.assertEqual((light.stdout, light.stderr, light.returncode),
                             (full.stdout, full.stderr, full.returncode), words)

    def test_the_program_without_torch_misses_the_one_with_it(self):
        alone = shutil.copy(PROGRAM, self.path / "renkei")
        done = subprocess.run([alone, "train", "--model", "mlp"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("renkei-torch: No such file or directory", done.stderr)
        self.assertIn("hint: it belongs beside renkei", done.stderr)

    def test_the_version_is_told(self):
        self.assertRegex(self.run_renkei("--version").stdout, r"^renkei \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main()
