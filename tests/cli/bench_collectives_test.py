import os
import signal
import socket
import subprocess
import time
import unittest

from renkei import PROGRAM, Case

BENCH = ("bench", "collectives", "-n", 2)
HOST = socket.gethostname()


class BenchCollectives(Case):
    def rows(self, *arguments):
        return self.run_json(*BENCH, *arguments)["rows"]

    def test_every_collective_and_every_type_is_timed_and_right(self):
        for collective, dtype, element in (("allreduce", "bf16", 2), ("reduce_scatter", "f16", 2),
                                           ("all_gather", "i64", 8), ("broadcast", "f64", 8),
                                           ("all_to_all", "f32", 4)):
            rows = self.rows("--collective", collective, "--dtype", dtype, "--sizes",
                             "1KiB:64KiB:*64", "--repeat", 1)
            # Only an allreduce has one result for all ranks of the host.
            buffers = ["once"] * (collective == "allreduce") + ["shared", "private"]
            self.assertEqual([(row["size_bytes"], row["buffers"]) for row in rows],
                             [(size, kind) for size in (1024, 65536) for kind in buffers])
            for row in rows:
                self.assertEqual((row["collective"], row["dtype"]), (collective, dtype))
                self.assertEqual(row["count"] * element, row["size_bytes"])
                self.assertEqual(row["wrong"], 0, row)
                self.assertGreater(row["time_us"], 0)

    def test_explain_shows_all_candidates_and_why_one_is_chosen(self):
        for row in self.rows("--explain", "--sizes", "1KiB:64KiB:*64", "--repeat", 1):
            chosen = [c for c in row["candidates"] if c["chosen"]]
            self.assertEqual([c["algorithm"] for c in chosen], ["shared memory"])
            self.assertEqual(row["algorithm"], "shared memory")
            self.assertIn("on one host", row["reason"])
            names = {c["algorithm"] for c in row["candidates"]}
            self.assertLessEqual({"ring", "tree", "halving_doubling"}, names)
            self.assertIn(row["fastest"], names)
            for candidate in row["candidates"]:
                self.assertGreater(candidate["predicted_us"], 0)
                self.assertGreater(candidate["time_us"], 0)
                self.assertTrue(candidate["reason"])

    def test_explain_follows_the_settings(self):
        done = self.run_renkei(*BENCH, "--explain", "--sizes", "4KiB", "--repeat", 1, "--quiet",
                               "--set", "comm.algorithm=tree")
        self.assertEqual(done.returncode, 0, done.stderr)
        chosen = [line for line in done.stdout.splitlines() if "*  tree" in line]
        self.assertEqual(len(chosen), 1, done.stdout)
        self.assertIn("comm.algorithm asks for tree", chosen[0])
        self.assertIn("predicted us", done.stdout)

    def test_what_makes_no_sense_is_refused(self):
        for arguments, message in (
                (("--explain", "--collective", "broadcast"), "nothing to choose from for broadcast"),
                (("--peers", "--dtype", "f64"), "--peers times an allreduce of f32"),
                (("--set", "comm.groups=nowhere"), "names host nowhere, on which no rank runs"),
                (("--set", "comm.groups=a;a"), 'the groups "a;a" name host a twice')):
            self.assert_fails(2, message, "hint: ", *BENCH, "--quiet", *arguments)
        self.assert_fails(2, "--explain needs ranks", "-n", "bench", "collectives", "--explain")

    def test_groups_are_in_the_line_about_the_topology(self):
        done = self.run_renkei(*BENCH, "--sizes", "1KiB", "--repeat", 1, "--set",
                               f"comm.groups={HOST}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"between groups 0 times; groups {HOST}; 1 hosts", done.stderr)

    def test_a_stopped_rank_is_named_and_the_last_operations_are_logged(self):
        # Endless: a round of an allreduce takes milliseconds.
        words = [*map(str, BENCH), "--sizes", "4KiB", "--repeat", "10000", "--set", "comm.timeout=2s"]
        process = subprocess.Popen([PROGRAM, *words], cwd=self.path, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        # The topology: all ranks have started. Before it, libraries may have warnings of their own.
        while not process.stderr.readline().startswith("ring "):
            self.assertIsNone(process.poll())
        # Their memory is made by MPI, in calls without a deadline: they must be past that.
        time.sleep(1)
        pids = self.rank_pids(2)
        os.kill(pids[1], signal.SIGSTOP)
        try:
            _, stderr = process.communicate(timeout=30)
        finally:
            if os.path.exists(f"/proc/{pids[1]}"):
                os.kill(pids[1], signal.SIGCONT)
        self.assertEqual(process.returncode, 4, stderr)
        self.assertRegex(stderr, rf"waited [2-9]\.\d s for rank 1 \(host {HOST}\)")
        self.assertIn("the last operations:", stderr)
        self.assertIn("still inside", stderr)


if __name__ == "__main__":
    unittest.main()
