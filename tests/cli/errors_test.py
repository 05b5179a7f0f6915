import os
import resource
import subprocess
import unittest

import numpy

from renkei import PROGRAM, Case


class Errors(Case):
    def test_an_unknown_flag_gets_the_nearest_one(self):
        self.assert_fails(2, "unknown flag '--btach'", "did you mean --batch?", "train", "--btach", 3)

    def test_an_unknown_command_gets_the_nearest_one(self):
        self.assert_fails(2, "unknown argument 'trian'", "did you mean train?", "trian")

    def test_no_command_is_a_mistake(self):
        self.assert_fails(2, "A subcommand is required", "lists the commands")

    def test_an_unknown_key_in_the_file_has_a_line_and_the_nearest_name(self):
        (self.path / "job.toml").write_text("[train]\nlr = 0.1\nmomentun = 0.9\n")
        self.assert_fails(2, "job.toml line 3: there is no setting 'train.momentun'",
                          "did you mean train.momentum?", "train", "--config", "job.toml")

    def test_a_value_out_of_range_names_the_range(self):
        self.assert_fails(2, "--set: train.momentum = 1.5 is out of range",
                          "train.momentum must be from 0 to 1", "train", "--set", "train.momentum=1.5")
        self.assert_fails(2, "--batch: train.batch = 0 is out of range", "must be from 1",
                          "train", "--batch", 0)

    def test_missing_files_are_named(self):
        self.assert_fails(3, "no.toml: No such file or directory", "check the path",
                          "train", "--config", "no.toml")
        self.assert_fails(3, "there is no data set at 'nowhere'", "renkei data synth",
                          "train", "--data", "nowhere")
        self.assert_fails(3, "there is no data set at 'nowhere'", "renkei data synth",
                          "train", "--data", "nowhere", "-n", 2)

    def test_a_batch_without_a_sample_for_each_rank_says_what_would_work(self):
        self.assert_fails(2, "a batch of 3 has no sample for each of 4 ranks", "use a batch of 4",
                          "train", "--batch", 3, "-n", 4)

    def test_a_corrupt_image_is_named(self):
        (self.path / "set/train/cat").mkdir(parents=True)
        (self.path / "set/train/cat/1.jpg").write_bytes(b"\xff\xd8 not a picture")
        self.assert_fails(3, "1.jpg", "hint: ", "train", "--data", "set")

    def test_data_that_does_not_fit_is_never_bent_to_fit(self):
        numpy.savez(self.path / "hwc.npz", x=numpy.zeros((8, 32, 32, 3), "f4"), y=numpy.arange(8) % 2)
        numpy.savez(self.path / "labels.npz", x=numpy.zeros((4, 8), "f4"), y=numpy.arange(4))
        train = ("train", "--steps", 1, "--batch", 4, "--quiet")
        self.assert_fails(3, "32 × 32 × 3", "hint: ", *train, "--model", "lenet", "--data", "hwc.npz")
        self.assert_fails(2, "labels", "hint: ", *train, "--model", "mlp", "--set", "model.hidden=8", "--data",
                          "labels.npz", "--set", "train.loss=mse")

    def test_a_model_that_does_not_fit_the_data_is_refused(self):
        self.assert_fails(2, "this model takes inputs of shape 512", "choose a model for images",
                          "train", "--model", "mlp", "--data", "synth")

    def test_a_directory_with_a_run_is_not_overwritten(self):
        arguments = ("train", "--model", "mlp", "--set", "model.hidden=8", "--data", "random",
                     "--steps", 1, "--run-dir", "here", "--quiet")
        self.assertEqual(self.run_renkei(*arguments).returncode, 0)
        self.assert_fails(2, "already holds a run", "choose another --run-dir", *arguments)

    def test_with_json_the_error_is_one_object_on_stdout(self):
        import json
        done = self.run_renkei("train", "--data", "nowhere", "-n", 2, "--json")
        error = json.loads(done.stdout)["error"]
        self.assertEqual(error["code"], "data")
        self.assertIn("nowhere", error["message"])
        self.assertEqual(done.returncode, 3)

    def test_a_loss_that_is_not_finite_is_one_object_too(self):
        import json
        words = ("train", "--model", "mlp", "--set", "model.hidden=8", "--data", "random", "--batch", 8, "--steps", 4,
                 "--set", "fault.nan=rank=0,step=1", "--json", "--quiet")
        mpirun = [os.environ["RENKEI_MPI_LAUNCHER"], "-n", "2"]
        if os.environ["RENKEI_MPI_NAME"] == "Open MPI":
            mpirun += ["--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
        for number, (ranks, launcher) in enumerate(((1, ()), (2, ()), (0, mpirun))):
            with self.subTest(ranks=ranks, launcher=launcher):
                arguments = (*words, "--run-dir", f"run{number}", *(("-n", ranks) if ranks else ()))
                done = self.run_renkei(*arguments, launcher=launcher)
                self.assertEqual(done.returncode, 1, done.stderr)
                error = json.loads(done.stdout)["error"]
                self.assertEqual((error["code"], error["step"]), ("check", 1))

    def test_the_launcher_of_another_mpi_is_refused_with_the_right_command(self):
        other = "mpiexec.hydra" if os.environ["RENKEI_MPI_NAME"] == "Open MPI" else "mpirun.openmpi"
        done = self.run_renkei("train", "--model", "mlp", "--data", "random", "--steps", 1,
                               launcher=(other, "-n", "2"))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("started 2 ranks", done.stderr)
        self.assertIn(os.environ["RENKEI_MPI_LAUNCHER"] + " -n 2", done.stderr)
        self.assertEqual(done.stderr.count("error: "), 1, done.stderr)

    def test_too_few_descriptors_for_the_ranks_are_refused_at_start(self):
        done = subprocess.run(
            [PROGRAM, "train", "--batch", "512", "-n", "512"], cwd=self.path, capture_output=True,
            text=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 4096)))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("the limit is 256", done.stderr)
        self.assertIn("ulimit -n 1088", done.stderr)


if __name__ == "__main__":
    unittest.main()
