import subprocess
import time
import unittest

import h5py
import numpy as np
from s3_case import S3Case

from renkei import PROGRAM


class ObjectStorage(S3Case):
    def pack(self, images=60):
        return self.run_json("data", "synth", "s3://data/set", "--shards", "--images", images,
                             "--test-images", 10, "--size", 32, "--shard-size", "20kB")

    def test_a_data_set_goes_there_and_back(self):
        self.pack()
        info = self.run_json("data", "info", "s3://data/set")
        self.assertEqual((info["format"], info["samples"], info["classes"]), ("tar", 70, 10))
        verified = self.run_json("data", "verify", "s3://data/set", "--decode")
        self.assertEqual((verified["samples"], verified["bad"]), (70, []))
        back = self.run_json("data", "pack", "s3://data/set", "back", "--shard-size", "20kB")
        self.assertEqual(back["checksum"], info["checksum"])
        again = self.run_json("data", "pack", "back", "s3://data/again")
        self.assertEqual(again["samples"], 70)
        archive = self.run_json("data", "info", "s3://data/set/train-000000.tar")
        self.assertLess(archive["samples"], 60)

    def test_every_format_is_read_as_from_a_directory(self):
        numbers = np.random.default_rng(1)
        images = numbers.integers(0, 256, (50, 8, 8, 3), np.uint8)
        labels = numbers.integers(0, 10, 50)
        np.savez(self.path / "stored.npz", x=images, y=labels)
        np.savez_compressed(self.path / "deflated.npz", x=images, y=labels)
        np.save(self.path / "x.npy", images)
        np.save(self.path / "y.npy", labels)
        with h5py.File(self.path / "plain.h5", "w") as file:
            file["x"], file["y"] = images, labels
        with h5py.File(self.path / "packed.h5", "w") as file:
            file.create_dataset("x", data=images, chunks=(7, 8, 8, 3), compression="gzip")
            file["y"] = labels
        self.run_json("data", "synth", "folder", "--images", 20, "--test-images", 5)
        for file in self.path.glob("folder/*/*/*.jpg"):
            self.put(file, file.relative_to(self.path))
        for file in (*self.path.glob("*.np*"), *self.path.glob("*.h5")):
            self.put(file, file.name)
        for number, name in enumerate(("stored.npz", "deflated.npz", "x.npy", "plain.h5",
                                       "packed.h5", "folder/train")):
            local = self.run_json("data", "pack", name, f"local{number}")
            remote = self.run_json("data", "pack", f"s3://data/{name}", f"remote{number}")
            self.assertEqual(remote["checksum"], local["checksum"], name)

    def test_a_benchmark_survives_a_server_that_is_killed(self):
        self.pack(images=400)
        run = subprocess.Popen(
            [PROGRAM, "bench", "data", "s3://data/set", "--batch", "8", "--epochs", "3",
             "--accelerator", "40ms", "--set", "data.cache=false", "--set", "data.memory=12MiB",
             "--json", "--quiet"],
            cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(0.7)
        self.assertIsNone(run.poll(), "it was over before the server was killed")
        self.kill_server()
        time.sleep(1)
        self.start_server()
        output, errors = run.communicate(timeout=120)
        self.assertEqual(run.returncode, 0, errors)
        self.assertIn('"samples": 400', output)

    def test_a_wrong_secret_is_one_sentence(self):
        self.pack()
        self.set_variable("AWS_SECRET_ACCESS_KEY", "wrong")
        for command in ("info", "verify"):
            self.assert_fails(2, "the object storage refused access (SignatureDoesNotMatch",
                              "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
                              "data", command, "s3://data/set")
        self.run_json("data", "synth", "shapes", "--images", 10, "--test-images", 0)
        self.assert_fails(2, "the object storage refused access", "AWS_SECRET_ACCESS_KEY",
                          "data", "pack", "shapes", "s3://data/other")

    def test_what_is_not_there_is_one_sentence(self):
        self.assert_fails(3, "there is no data set at 's3://data/nothing'", "check the path",
                          "data", "info", "s3://data/nothing")
        self.assert_fails(3, "s3://other: there is no such bucket", "check the name of the bucket",
                          "data", "info", "s3://other/set")
        self.assert_fails(2, "'s3://' names no bucket", "s3://bucket/prefix",
                          "data", "info", "s3://")

    def test_nobody_at_the_address_is_one_sentence(self):
        self.kill_server()
        self.assert_fails(4, "the object storage at 127.0.0.1:", "check the address",
                          "data", "info", "s3://data/set", "--set", "data.s3_patience=1s")


if __name__ == "__main__":
    unittest.main()
