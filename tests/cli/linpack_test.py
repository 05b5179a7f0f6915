"""LINPACK on real ranks: every grid solves the same system, and a wrong solution is no result."""

import os
import unittest
from pathlib import Path

from renkei import Case

FAKE_HPL = r"""#!/bin/bash
[ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" = 0 ] || exit 0
awk 'NR==6 {n=$1} NR==8 {nb=$1} NR==11 {p=$1} NR==12 {q=$1} END {
  printf "WR11C2R4 %d %d %d %d 2.00 1.250e+01\n", n, nb, p, q
  print "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0041 ...... WORD" }' HPL.dat
"""


class Linpack(Case):
    def test_grids_blocks_and_mappings_all_solve_it(self):
        for ranks, p, block, mapping, order in ((1, 1, 32, "row", 200), (2, 1, 64, "row", 300),
                                                (2, 2, 7, "column", 101), (4, 2, 16, "column", 257),
                                                (3, 3, 300, "row", 64)):
            with self.subTest(ranks=ranks, p=p, block=block):
                result = self.run_json("linpack", "-n", ranks, "--order", order, "--nb", block,
                                       "--p", p, "--set", f"linpack.mapping={mapping}",
                                       "--threads", 1)
                self.assertTrue(result["passed"])
                self.assertLess(result["residual"], 1)
                self.assertGreater(result["residual"], 0)
                self.assertEqual((result["p"], result["q"]), (p, ranks // p))
                self.assertAlmostEqual(result["gflops"] * result["seconds"],
                                       (2 / 3 * order**3 + 1.5 * order**2) / 1e9)
                self.assertAlmostEqual(result["efficiency"],
                                       result["gflops"] / result["dgemm_gflops"])

    def test_the_order_comes_from_the_memory(self):
        result = self.run_json("linpack", "--set", "linpack.memory=0.0002", "--threads", 1)
        self.assertEqual(result["n"] % 128, 0)
        available = next(int(line.split()[1]) * 1024
                         for line in Path("/proc/meminfo").read_text().splitlines()
                         if line.startswith("MemAvailable"))
        share = 8 * result["n"] ** 2 / available
        self.assertLess(share, 0.0004)  # other processes come and go
        self.assertGreater(share, 0.00005)

    def test_a_damaged_solution_fails(self):
        done = self.run_renkei("linpack", "-n", 2, "--order", 200, "--set", "linpack.damage=true")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED", done.stdout)
        self.assertIn("error: the solution FAILED", done.stderr)
        done = self.run_renkei("linpack", "-n", 2, "--order", 200, "--set", "linpack.damage=true",
                               "--json")
        self.assertEqual(done.returncode, 1)
        self.assertIn('"passed": false', done.stdout)
        self.assertNotIn('"error"', done.stdout)

    def test_a_grid_that_does_not_fit_is_refused(self):
        self.assert_fails(2, "a grid of 2 x 2 does not have 3 ranks", "1 x 3, 3 x 1",
                          "linpack", "-n", 3, "--p", 2, "--q", 2, "--order", 50)

    def hpl(self, word):
        program = self.path / "xhpl"
        program.write_text(FAKE_HPL.replace("WORD", word))
        program.chmod(0o755)
        return program

    def test_the_users_hpl_is_started_and_read(self):
        result = self.run_json("linpack", "--engine", "hpl", "--xhpl", self.hpl("PASSED"), "-n", 2,
                               "--order", 1000, "--nb", 96)
        self.assertEqual((result["engine"], result["n"], result["nb"], result["p"], result["q"]),
                         ("hpl", 1000, 96, 1, 2))
        self.assertEqual((result["seconds"], result["gflops"], result["passed"]), (2, 12.5, True))
        done = self.run_renkei("linpack", "--engine", "hpl", "--xhpl", self.hpl("FAILED"), "-n", 2,
                               "--order", 1000)
        self.assertEqual(done.returncode, 1)

    def test_an_hpl_that_is_none_gets_a_sentence(self):
        self.assert_fails(2, "--engine hpl needs your HPL", "--xhpl PATH", "linpack", "--engine",
                          "hpl", "--order", 100)
        self.assert_fails(2, "gave no HPL result", "run it by hand", "linpack", "--engine", "hpl",
                          "--xhpl", "/bin/true", "--order", 100)
        self.assert_fails(2, "is no program", "executable", "linpack", "--engine", "hpl", "--xhpl",
                          os.devnull, "--order", 100)


if __name__ == "__main__":
    unittest.main()
