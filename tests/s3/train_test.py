import unittest

from s3_case import S3Case


class TrainFromObjectStorage(S3Case):
    def test_training_reads_the_same_samples_as_from_a_directory(self):
        for place in ("s3://data/set", "set"):
            self.run_json("data", "synth", place, "--shards", "--images", 128, "--test-images", 0,
                          "--size", 32)
        run = ["train", "--model", "lenet", "--batch", 32, "--epochs", 1, "--threads", 1]
        local = self.run_json(*run, "--data", "set")
        remote = self.run_json(*run, "--data", "s3://data/set")
        self.assertEqual(remote["parameters_checksum"], local["parameters_checksum"])
        self.assertEqual(remote["steps"], 4)


if __name__ == "__main__":
    unittest.main()
