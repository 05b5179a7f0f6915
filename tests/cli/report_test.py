import json
import os
import signal
import subprocess
import time
import unittest
import urllib.error
import urllib.request

from renkei import PROGRAM, Case

MLP = ("train", "--model", "mlp", "--set", "model.hidden=128", "--batch", 32, "--data", "random")
CAUSES = ("compute", "communication", "wait", "imbalance", "bubble", "data", "update", "checkpoint", "other")


class Report(Case):
    def tables(self, *runs):
        return self.run_json("report", *runs)["runs"]

    def assert_closes(self, run):
        """The parts of a step, and of the whole run, add up to its wall time."""
        for rank in run["time_of_ranks"]:
            self.assertEqual(set(rank["time"]), set(CAUSES))
            self.assertAlmostEqual(sum(rank["time"].values()) / rank["step_seconds"], 1, places=3)
        self.assertAlmostEqual(sum(part["seconds"] for part in run["parts"]) / run["wall_seconds"], 1,
                               places=3)

    def test_every_run_ends_with_a_page(self):
        summary = self.run_json(*MLP, "--steps", 30, "-n", 2, "--run-dir", "run")
        page = (self.path / "run/report.html").read_text()
        self.assertNotIn("RENKEI_DATA", page)
        self.assertNotIn(" src=", page)  # it needs nothing else
        run, = self.tables("run")
        self.assertEqual(run["status"], "finished")
        self.assertEqual(run["ranks"], 2)
        self.assert_closes(run)
        names = [part["name"] for part in run["parts"]]
        for name in ("launch", "start of the program and MPI", "planning", "steps"):
            self.assertIn(name, names)
        for cause in CAUSES:
            self.assertAlmostEqual(run["time_of_ranks"][0]["time"][cause], summary["time"][cause], places=3)

    def test_stages_are_explained_too(self):
        summary = self.run_json("train", "--model", "mlp", "--set", "model.hidden=256", "--set", "model.layers=8",
                                "--data", "random", "--batch", 16, "--steps", 12, "-n", 2, "--plan", "auto",
                                "--micro-batches", 4, "--set", "plan.stages=2", "--run-dir", "run")
        self.assertEqual(summary["plan"]["stages"], 2)
        run, = self.tables("run")
        self.assert_closes(run)
        self.assertTrue(any(one["cause"] == "stages balanced" for one in run["what_if"]))
        trace = json.loads((self.path / "run/timeline.json").read_text())["traceEvents"]
        begins = {event["id"] for event in trace if event["ph"] == "s"}
        ends = {event["id"] for event in trace if event["ph"] == "f"}
        self.assertEqual(begins, ends)
        self.assertGreaterEqual(len(begins), 12 * 4 * 2)

    def test_a_killed_run_tells_where_it_ended(self):
        process = subprocess.Popen([PROGRAM, *map(str, MLP), "--steps", "1000000", "-n", "2", "--quiet",
                                    "--run-dir", "run"], cwd=self.path, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        metrics = self.path / "run/metrics.jsonl"
        deadline = time.monotonic() + 60
        while not metrics.exists() or metrics.stat().st_size < 4000:
            self.assertLess(time.monotonic(), deadline, "the training did not start")
            time.sleep(0.05)
        ranks = self.rank_pids(2)
        process.kill()  # nobody is left to write a word
        for pid in ranks.values():
            os.kill(pid, signal.SIGKILL)
        process.wait()
        run, = self.tables("run")
        self.assertEqual(run["status"], "ended")
        self.assertIn("no end was written", run["ended"])
        self.assertRegex(run["ended"], r"\d+ steps were done")
        for rank in (0, 1):
            self.assertIn(f"rank {rank} ", run["ended"])
        self.assertGreater(run["step_seconds"], 0)
        done = self.run_renkei("report", "run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no end was written", done.stdout)
        self.assertTrue((self.path / "run/report.html").exists())
        json.loads((self.path / "run/timeline.json").read_text())

    def test_several_runs_and_other_forms(self):
        for ranks in (1, 2):
            self.run_json(*MLP, "--steps", 10, "-n", ranks, "--run-dir", f"run{ranks}")
        done = self.run_renkei("report", "run1", "run2", "-o", "both.html", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        page = (self.path / "both.html").read_text()
        for ranks in (1, 2):
            self.assertIn(f'"name":"run{ranks}"', page)
        markdown = self.run_renkei("report", "run1", "--format", "md").stdout
        self.assertIn("| where a step's time goes |", markdown)
        rows = self.run_renkei("report", "run1", "run2", "--format", "csv").stdout.splitlines()
        self.assertEqual(len(rows), 1 + 1 + 2)
        self.assertTrue(rows[0].startswith("run,model,rank,host,step_seconds,compute,"))

    def test_a_ring_drops_slices_and_keeps_sums(self):
        self.run_json(*MLP, "--steps", 60, "--set", "train.timeline_events=100", "--run-dir", "run")
        run, = self.tables("run")
        self.assert_closes(run)
        page = (self.path / "run/report.html").read_text()
        self.assertNotIn('"dropped":0', page)

    def test_watch_shows_a_run_to_those_who_have_the_token(self):
        self.run_json(*MLP, "--steps", 10, "-n", 2, "--run-dir", "run")
        watch = subprocess.Popen([PROGRAM, "watch", "run", "--every", "0.1"], cwd=self.path, text=True,
                                 stdout=subprocess.PIPE)
        self.addCleanup(watch.stdout.close)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)
        address = watch.stdout.readline().strip()
        self.assertRegex(address, r"^http://127\.0\.0\.1:\d+/\?token=[0-9a-f]{32}$")
        place, token = address.split("?")

        def get(path, with_token=True):
            return urllib.request.urlopen(f"{place}{path}{'?' + token if with_token else ''}", timeout=20)

        self.assertIn("<title>Renkei report</title>", get("").read().decode())
        self.assertEqual(json.load(get("data"))["runs"][0]["ranks"], 2)
        metrics = get("metrics").read().decode()
        self.assertIn("\nrenkei_steps_total 10\n", metrics)
        self.assertRegex(metrics, r'renkei_rank_seconds_total\{rank="1",category="compute"\} [0-9.e-]+\n')
        with get("events") as events:
            line = events.readline().decode()
        status = json.loads(line.removeprefix("data: "))
        self.assertTrue(status["finished"])
        for path in ("", "data", "metrics", "events"):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                get(path, with_token=False)
            self.assertEqual(refused.exception.code, 403)
            refused.exception.close()

    def test_a_sweep_over_ranks_ends_with_a_page_and_fails_on_regressions(self):
        sweep = ("bench", "scaling", *MLP[1:], "--steps", 8, "--ranks", "1:2:+1", "--repeat", 1)
        result = self.run_json(*sweep, "--run-dir", "sweep")
        self.assertEqual([row["ranks"] for row in result["rows"]], [1, 2])
        self.assertEqual(result["rows"][0]["efficiency"], 1)
        self.assertIn('"name":"2-ranks-1"', (self.path / "sweep/report.html").read_text())
        faster = json.loads((self.path / "sweep/scaling.json").read_text())
        faster["rows"][1]["samples_per_second"] *= 1000
        (self.path / "faster.json").write_text(json.dumps(faster))
        done = self.run_renkei(*sweep, "--run-dir", "again", "--baseline", "faster.json", "--quiet")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("slower: 2 ranks", done.stderr)

    def test_what_is_no_run_is_refused(self):
        self.assert_fails(3, "there is no run in nowhere", "name a run directory", "report", "nowhere")


if __name__ == "__main__":
    unittest.main()
