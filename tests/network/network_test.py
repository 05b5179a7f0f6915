"""Training and staging over several hosts; the counters of their network interfaces say what really crossed."""

import json
import os
import subprocess
import tempfile
import unittest

from hosts import Hosts

PROGRAM = os.environ["RENKEI"]
STEPS = 6
GRADIENT_BYTES = 2626560 * 4
TRAIN = ("train", "--model", "mlp", "--data", "random", "--batch", 48, "--steps", STEPS, "--quiet",
         "--json", "--threads", 1)


class Network(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        hosts = Hosts(3, "1gbit")
        cls.hosts = hosts.__enter__()
        cls.addClassCleanup(hosts.__exit__)
        directory = tempfile.TemporaryDirectory(prefix="renkei-network-")
        cls.addClassCleanup(directory.cleanup)
        os.chdir(directory.name)

    def train(self, ranks_per_host, *settings, by_node=False):
        """The result, and the bytes that each host sent per step, as a multiple of the gradients."""
        before = self.hosts.sent_bytes()
        words = [word for setting in settings for word in ("--set", setting)]
        done = self.hosts.mpirun(ranks_per_host, PROGRAM, *TRAIN, *words, by_node=by_node)
        self.assertEqual(done.returncode, 0, done.stderr)
        sent = [(after - b) / STEPS / GRADIENT_BYTES
                for after, b in zip(self.hosts.sent_bytes(), before)]
        result = json.loads(done.stdout)
        self.assertEqual(result["hosts"], 3)
        self.assertEqual(result["ranks"], 3 * ranks_per_host)
        return result, sent

    def test_a_ring_sends_two_thirds_of_the_gradients_twice(self):
        result, sent = self.train(1, "comm.algorithm=ring")
        for host in sent:  # and once, the initial parameters; a twentieth is headers and the like
            self.assertGreater(host, 4 / 3)
            self.assertLess(host, (4 / 3 + 1 / STEPS) * 1.05 + 0.02)
        one = self.train(1, "comm.algorithm=halving_doubling")[0]
        self.assertAlmostEqual(one["loss"]["last"] / result["loss"]["last"], 1, delta=1e-6)

    def test_16_bits_on_the_wire_halve_the_bytes_and_keep_the_loss(self):
        exact, full = self.train(1, "comm.algorithm=ring")
        for wire in ("f16", "bf16"):
            result, half = self.train(1, "comm.algorithm=ring", f"comm.wire={wire}")
            for a, b in zip(half[1:], full[1:]):
                self.assertLess(a / b, 0.6)
                self.assertGreater(a / b, 0.4)
            self.assertAlmostEqual(result["loss"]["last"] / exact["loss"]["last"], 1, delta=1e-3)

    def test_hierarchical_sends_less_than_half_of_an_interleaved_ring(self):
        order = "comm.ring=0,1,2,3,4,5"
        ring, flat = self.train(2, "comm.algorithm=ring", order, by_node=True)
        tree, hierarchical = self.train(2, "comm.algorithm=hierarchical", by_node=True)
        for a, b in zip(hierarchical[1:], flat[1:]):
            self.assertLess(a / b, 0.5)
        self.assertAlmostEqual(tree["loss"]["last"] / ring["loss"]["last"], 1, delta=1e-6)

    def test_reproducible_sums_are_the_same_bits_on_one_host_and_on_three(self):
        spread = self.train(2, "comm.reproducible=true")[0]["parameters_checksum"]
        dealt = self.train(2, "comm.reproducible=true", by_node=True)[0]["parameters_checksum"]
        done = subprocess.run([PROGRAM, *map(str, TRAIN), "-n", "6", "--set", "comm.reproducible=true"],
                   capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({spread, dealt, json.loads(done.stdout)["parameters_checksum"]}, {spread})

    def test_staging_reads_each_byte_once_and_passes_it_on(self):
        with open("set.bin", "wb") as file:
            file.write(os.urandom(48 << 20))
        before = self.hosts.sent_bytes()
        done = self.hosts.mpirun(2, PROGRAM, "data", "stage", "set.bin", "{host}/set", "--json",
                                 "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual((result["hosts"], result["read_bytes"]), (3, 48 << 20))
        for after, sent in zip(self.hosts.sent_bytes(), before):
            self.assertGreater((after - sent) / (48 << 20), 2 / 3)
            self.assertLess((after - sent) / (48 << 20), 0.75)
        with open("set.bin", "rb") as file:
            content = file.read()
        for host in self.hosts.names:
            with open(f"{host}/set/set.bin", "rb") as file:
                self.assertTrue(file.read() == content)


if __name__ == "__main__":
    unittest.main()
