"""Every command of README.md and docs/ is run: with fewer steps, samples and trials, on files of the same names.
What needs more than this machine has (S3, a queue, a browser) is checked word by word against the command's help."""

import re
import shlex
import unittest

from renkei import SOURCE, Case

# (what a command is, what it gets in place): so that all of them together take seconds.
SMALLER = (
    (r"\[([^]|]*)(\|[^]]*)?\]", r"\1"),  # [--decode] is optional, [a|b] a choice
    (r"(\S+)\|s3://\S+", r"\1"),
    (r"\bruns/(…|2\d+-\d+-lenet)", "run"),
    (r"\bRUN\b|\bone two four\b", "run"),
    (r"…", ""),
    (r"--steps \d+|--epochs \d+", "--steps 2"),
    (r"--trials \d+", "--trials 2"),
    (r"--order \d+", "--order 96"),
    (r"--images \d+", "--images 40"),
    (r"--test-images \d+", "--test-images 20"),
    (r"--size 500 --height 375", "--size 64 --height 48"),
    (r"--ranks 1:4:\+1 --repeat 3", "--ranks 1:2:+1 --repeat 1"),
    (r"--stages 1:4:\*2 (?=--trials)", "--stages 1:2:*2 "),
    (r"-n [34]\b", "-n 2"),
    (r"--devices (8|256):1024:\*2", "--devices 8:16:*2"),
    (r"--sizes 4KiB:256MiB:\*4 --peers", "--sizes 4KiB:16KiB:*4"),
    (r"(--collective all_gather|--explain)", r"\1 --sizes 4KiB"),
    (r"--data synth", "--data DIR"),
    (r"--devices 1024 ", "--devices 32 "),
    (r"model\.hidden=12288", "model.hidden=1536"),
    (r"model\.layers=(96|24)", "model.layers=6"),
    (r"--model gpt --data random", "--model gpt --data random --batch 4 --set model.hidden=64 --set model.layers=2"),
)  # fmt: skip

# Not run here: why, and which test runs it.
NOT_HERE = {
    r"s3://": "needs a bucket: tests/s3",
    r"^submit|^jobs": "needs a queue: tests/cli/submit_test.py",
    r"^watch": "waits for a browser: tests/web",
    r"^check": "judges the machine: tests/cli/check_test.py",
    r"fault\.kill": "ends ranks: tests/cli/resume_test.py",
    r"--batch 3 -n 4": "shows an error: tests/cli/errors_test.py",
    r"vgg11|resnet50|--plan auto --stages 4": "takes minutes: tests/cli/pipeline_test.py, tests/cli/torchvision_test.py",
    r"^run ": "tests/python",
    r"towers|gpt3\.pt2|model\.json|net\.pt2|RUN": "a file of the reader's: tests/cli/named_inputs_test.py, plan_test.py",
    r"new\.npz": "a file of the reader's: tests/cli/saved_model_test.py",
    r"^tune|best\.toml": "tests/cli/tune_test.py",
    r"--memory-limit": "takes GiB of data: bench/data.py",
}  # fmt: skip


def commands() -> list[tuple[str, str]]:
    """(page, words after `renkei`) of each command line in a block of code."""
    found = []
    for page in (SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md"))):
        inside, line = False, ""
        for text in page.read_text().splitlines():
            if text.lstrip().startswith("```"):
                inside = not inside
            elif inside:
                line += text.strip()
                if line.endswith("\\"):
                    line = line[:-1]
                    continue
                started = r"(?:\$ )?((?:mpirun|srun) .*?)?(?:build/bin/)?renkei (\S.*)"
                match = re.match(started, re.sub(r"\s+#.*", "", line))
                if match:
                    found.append((page.name, match[2] + (" -n 2" if match[1] else "")))
                line = ""
    return found


def path_of(words: list[str]) -> list[str]:
    """The command, with its subcommand."""
    return words[:2] if words[0] in ("bench", "data", "model", "study") else words[:1]


class Commands(Case):
    help_of: dict[tuple[str, ...], str] = {}

    def help(self, path: list[str]) -> str:
        key = tuple(path)
        if key not in self.help_of:
            done = self.run_renkei(*path, "--help")
            self.assertEqual(done.returncode, 0, f"renkei {' '.join(path)}: {done.stderr}")
            self.help_of[key] = done.stdout
        return self.help_of[key]

    def test_there_are_commands(self):
        self.assertGreater(len(commands()), 40)

    def test_their_flags_and_settings_exist(self):
        settings = set(re.findall(r"`([a-z0-9_]+\.[a-z0-9_.]+)`", (SOURCE / "docs/settings.md").read_text()))
        for page, text in commands():
            with self.subTest(page, command=text):
                words = shlex.split(re.sub(r"[\[\]…]", " ", text).split(" -- ")[0])
                known = self.help(path_of(words))
                if words[0] == "submit" and "train" in words:
                    words = words[: words.index("train")]
                for word in words:
                    if re.match(r"--?[a-z]", word):
                        self.assertRegex(known, rf"(?m)(^|[\s,]){re.escape(word)}\b")
                for name in re.findall(r"--set \"?([a-z_.]+)=", text):
                    if not name.startswith("cluster."):  # a part of the description of a cluster
                        self.assertIn(name, settings)

    def test_they_do_what_they_say(self):
        self.assertEqual(self.run_renkei("data", "synth", "DIR", "--images", 40, "--test-images", 20).returncode, 0)
        shards = ("data", "synth", "SOURCE", "--shards", "--images", 40, "--size", 32)
        self.assertEqual(self.run_renkei(*shards).returncode, 0)
        first = ("train", "--model", "lenet", "--data", "DIR", "--batch", 8, "--steps", 2, "--run-dir", "run",
                 "--checkpoint-every", "1steps", "--quiet")  # fmt: skip
        done = self.run_renkei(*first)
        self.assertEqual(done.returncode, 0, done.stderr)
        run = 0
        for number, (page, text) in enumerate(commands()):
            if any(re.search(pattern, text) for pattern in NOT_HERE):
                continue
            with self.subTest(page, command=text):
                self.run_smaller(text, number)
                run += 1
        self.assertGreater(run, 15)

    def run_smaller(self, text: str, number: int) -> None:
        for pattern, instead in SMALLER:
            text = re.sub(pattern, instead, text)
        words = shlex.split(text)
        if words[:2] == ["data", "synth"] or words[:2] == ["data", "pack"]:
            place = 2 if words[1] == "synth" else 3
            words[place] = f"made-{number}"
        if words[0] == "train" and "--resume" in words and "run" not in words:
            words.insert(words.index("--resume") + 1, "run")
        if words[0] == "train" and "--steps" not in words:
            words += ["--steps", "2"]
        if words[0] == "bench" and words[1] == "data":
            words += ["--steps", "2", "--batch", "4", "--side", "32"]
        done = self.run_renkei(*words, "--quiet", timeout=120)
        self.assertEqual(done.returncode, 0, f"renkei {' '.join(words)}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    unittest.main()
