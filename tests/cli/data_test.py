"""Data sets made by other programs: packed by renkei, read back here."""

import io
import os
import signal
import subprocess
import tarfile
import time
import unittest

import h5py
import numpy

from renkei import PROGRAM, Case


def jpegs(directory):
    """The images of a folder in the order of renkei: class, then name."""
    return [path.read_bytes() for path in sorted(directory.glob("*/*.jpg"))]


class Data(Case):
    def synth(self, images=30):
        self.run_json("data", "synth", "shapes", "--images", images, "--test-images", 0)
        return self.path / "shapes" / "train"

    def packed(self, source, *flags):
        """Contents, labels and extensions of what renkei made of a data set."""
        self.run_json("data", "pack", source, f"{source}.packed", *flags)
        content, labels, extensions = [], [], set()
        for shard in sorted(self.path.glob(f"{source}.packed/train-*.tar")):
            with tarfile.open(shard) as archive:
                for member in archive.getmembers():
                    extension = member.name.split(".", 1)[1]
                    data = archive.extractfile(member).read()
                    if extension == "cls":
                        labels.append(int(data))
                    else:
                        content.append(data)
                        extensions.add(extension)
        self.assertEqual(self.run_renkei("data", "verify", f"{source}.packed").returncode, 0)
        return content, labels, extensions

    def test_tars_of_every_kind_are_read(self):
        folder = self.synth()
        expected = jpegs(folder)
        long = "n" * 120  # more than the 100 bytes of the oldest format
        files = sorted(folder.glob("*/*.jpg"))
        for kind in ["ustar", "gnu", "pax"]:
            with tarfile.open(self.path / f"{kind}.tar", "w",
                              format=getattr(tarfile, f"{kind.upper()}_FORMAT")) as archive:
                for number, file in enumerate(files):
                    name = f"{long if kind != 'ustar' else 'n'}/{number:04}"
                    archive.add(file, f"{name}.jpg")
                    label = tarfile.TarInfo(f"{name}.cls")
                    label.size = 1
                    archive.addfile(label, io.BytesIO(b"%d" % (number % 7)))
            content, labels, _ = self.packed(f"{kind}.tar")
            self.assertEqual(content, expected)
            self.assertEqual(labels, [number % 7 for number in range(len(files))])

    def test_gnu_tar_of_a_folder_has_its_classes(self):
        folder = self.synth()
        for kind in ["v7", "oldgnu", "posix"]:
            subprocess.run(["tar", f"--format={kind}", "--sort=name", "-cf",
                            self.path / f"{kind}.tar", "-C", folder, "."], check=True)
            info = self.run_json("data", "info", f"{kind}.tar")
            self.assertEqual((info["samples"], info["classes"]), (30, 10))
            content, labels, _ = self.packed(f"{kind}.tar")
            self.assertEqual(content, jpegs(folder))
            self.assertEqual(labels, sorted(labels))

    def test_the_text_index_says_where_the_data_is(self):
        self.synth()
        self.packed("shapes", "--shard-size", "8KiB")
        shards = sorted(self.path.glob("shapes.packed/*.tar"))
        self.assertGreater(len(shards), 1)
        for shard in shards:
            lines = shard.with_suffix(".idx").read_text().splitlines()
            with tarfile.open(shard) as archive:
                members = archive.getmembers()
            self.assertEqual(lines[0], f"v1.2 {len(members) // 2}")
            words = [word for line in lines[1:] for word in line.split(" ")]
            self.assertEqual(words, [word for member in members for word in
                                     (member.name.split(".", 1)[1], str(member.offset_data),
                                      str(member.size), member.name)])

    def test_npz_and_hdf5_are_read_bit_for_bit(self):
        random = numpy.random.default_rng(1)
        labels = random.integers(0, 10, 50)
        arrays = {"u1": random.integers(0, 256, (50, 5, 4, 3), dtype=numpy.uint8),
                  "i2": random.integers(-9, 9, (50, 3)).astype(">i2")}
        for name, array in arrays.items():
            numpy.savez(self.path / f"{name}.stored.npz", x=array, y=labels)
            numpy.savez_compressed(self.path / f"{name}.deflated.npz", x=array, y=labels)
            numpy.save(self.path / f"x_{name}.npy", array)
            numpy.save(self.path / f"y_{name}.npy", labels)
            layouts = {"contiguous": {}, "chunked": {"chunks": (8, *array.shape[1:])},
                       "split": {"chunks": (8, *[1] * (array.ndim - 1))},
                       "gzip": {"chunks": True, "compression": "gzip", "shuffle": True}}
            for layout, options in layouts.items():
                with h5py.File(self.path / f"{name}.{layout}.h5", "w") as file:
                    file.create_dataset("images", data=array, **options)
                    file.create_dataset("labels", data=labels)
            for source in [f"{name}.stored.npz", f"{name}.deflated.npz", f"x_{name}.npy",
                           *[f"{name}.{layout}.h5" for layout in layouts]]:
                content, read_labels, extensions = self.packed(source)
                self.assertEqual(extensions, {"npy"})
                samples = [numpy.load(io.BytesIO(bytes)) for bytes in content]
                self.assertEqual({sample.dtype for sample in samples}, {array.dtype}, source)
                self.assertEqual(b"".join(sample.tobytes() for sample in samples),
                                 array.tobytes(), source)
                self.assertEqual(read_labels, labels.tolist())

    def test_info_lists_the_fields_and_where_they_go(self):
        numpy.savez(self.path / "table.npz", pairs=numpy.zeros((4, 2), numpy.int32),
                    price=numpy.zeros(4), flag=numpy.zeros(4, bool), label=numpy.arange(4))
        fields = self.run_json("data", "info", "table.npz")["fields"]
        self.assertEqual([(f["name"], f["dtype"], f["shape"], f["classes"]) for f in fields],
                         [("target", "i64", [], 4), ("pairs", "i32", [2], 0),
                          ("price", "f64", [], 0), ("flag", "boolean", [], 0)])
        self.assertEqual(fields[1]["origin"], "array pairs")
        chosen = ["--set", "data.fields=input=pairs,target=price"]
        fields = self.run_json("data", "info", "table.npz", *chosen)["fields"]
        self.assertEqual([(f["name"], f["input"]) for f in fields],
                         [("pairs", "input"), ("price", "target"), ("flag", "flag")])
        text = self.run_renkei("data", "info", "table.npz", *chosen).stdout
        self.assertRegex(text, r"pairs +i32 +2 +array pairs +input")
        self.synth()
        fields = self.run_json("data", "info", "shapes")["fields"]
        self.assertEqual([(f["name"], f["shape"], f["classes"], f["origin"]) for f in fields],
                         [("input", None, 0, "image file, decoded"),
                          ("target", [], 10, "name of the folder")])
        self.assert_fails(2, "the data has no field 'prise'", "did you mean price?", "data", "info",
                          "table.npz", "--set", "data.fields=target=prise")
        self.assert_fails(2, "'price' is no INPUT=FIELD", "input=images", "data", "info",
                          "table.npz", "--set", "data.fields=price")
        self.assert_fails(2, "neither one number nor three", "0.485", "bench", "data", "shapes",
                          "--quiet", "--set", "data.mean=1,2")
        self.assert_fails(2, "data.std is 0", "above 0", "bench", "data", "shapes", "--quiet",
                          "--set", "data.std=0")

    def test_packing_names_the_fields_that_it_leaves_out(self):
        numpy.savez(self.path / "a.npz", x=numpy.zeros((4, 2)), y=numpy.arange(4), ids=numpy.arange(4))
        self.assertIn("no place for the field 'ids'",
                      self.run_renkei("data", "pack", "a.npz", "packed").stderr)
        numpy.savez(self.path / "table.npz", a=numpy.zeros((4, 2)), b=numpy.zeros(4))
        self.assert_fails(2, "has no field 'input'", "data.input", "data", "pack", "table.npz", "out",
                          "--quiet")

    def test_damaged_samples_are_named(self):
        self.synth()
        self.packed("shapes")
        shard = self.path / "shapes.packed" / "train-000000.tar"
        with tarfile.open(shard) as archive:
            place = archive.getmembers()[8].offset_data
        with open(shard, "r+b") as file:
            file.seek(place + 300)
            byte = file.read(1)
            file.seek(place + 300)
            file.write(bytes([byte[0] ^ 1]))
        done = self.run_renkei("data", "verify", "shapes.packed")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"sample 4 does not match its checksum (at offset {place})", done.stdout)
        self.assertIn("1 of 30 samples are bad", done.stdout)

    def test_a_killed_run_is_continued(self):
        self.synth(images=900)
        flags = ["--shard-size", "64KiB", "--threads", "1"]
        self.run_json("data", "pack", "shapes", "whole", *flags)
        process = subprocess.Popen([PROGRAM, "data", "pack", "shapes", "killed", "--quiet", *flags],
                                   cwd=self.path, stderr=subprocess.DEVNULL)
        while len(list(self.path.glob("killed/*.index"))) < 3 and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertFalse((self.path / "killed" / "dataset.json").exists())
        self.assert_fails(2, "or of one with other options", "choose a new directory",
                          "data", "pack", "shapes", "killed", "--shard-size", "1MiB", "--quiet")
        done = self.run_json("data", "pack", "shapes", "killed", *flags)
        self.assertGreaterEqual(done["shards_found"], 3)
        self.assertLess(done["shards_found"], done["shards"])
        names = sorted(os.listdir(self.path / "whole"))
        self.assertEqual(sorted(name for name in os.listdir(self.path / "killed")
                                if not name.endswith(".partial")), names)
        for name in names:
            self.assertEqual((self.path / "killed" / name).read_bytes(),
                             (self.path / "whole" / name).read_bytes(), name)
        self.assert_fails(2, "already holds a data set", "choose a new directory",
                          "data", "pack", "shapes", "whole")

    def test_synth_writes_shards(self):
        self.run_json("data", "synth", "folder", "--images", 40, "--test-images", 20)
        self.run_json("data", "synth", "shards", "--images", 40, "--test-images", 20, "--shards")
        self.run_json("data", "pack", "folder", "folder.packed")
        infos = [self.run_json("data", "info", name) for name in ["shards", "folder.packed"]]
        for info in infos:
            self.assertEqual(info["parts"], {"train": 40, "test": 20})
            self.assertEqual(info["classes"], 10)
        self.assertEqual(infos[0]["class_names"], infos[1]["class_names"])

    def test_packing_can_shrink_and_unpack(self):
        self.synth()
        self.run_json("data", "pack", "shapes", "small", "--resize", 16, "--raw", "0.5")
        with tarfile.open(self.path / "small" / "train-000000.tar") as archive:
            members = [member for member in archive.getmembers()
                       if not member.name.endswith(".cls")]
            kinds = [member.name.split(".")[1] for member in members]
            self.assertEqual(set(kinds), {"jpg", "npy"})
            raw = members[kinds.index("npy")]
            self.assertEqual(numpy.load(io.BytesIO(archive.extractfile(raw).read())).shape, (16, 16, 3))
        self.assertEqual(self.run_renkei("data", "verify", "small", "--decode").returncode, 0)

    def test_bench_accounts_for_every_byte(self):
        self.run_json("data", "synth", "shapes", "--images", 200, "--test-images", 0)
        self.run_json("data", "pack", "shapes", "shards")
        flags = ["--side", 16, "--batch", 20, "--threads", 2]
        row = self.run_json("bench", "data", "shapes", "--epochs", 1, *flags)["rows"][0]
        self.assertEqual(row["samples"], 200)
        self.assertGreater(row["opens"], 0)
        row = self.run_json("bench", "data", "shards", *flags, "--accelerator", "1ms")["rows"][0]
        self.assertEqual(row["opens"], 0)  # shards are opened once, before
        self.assertLess(row["read_amplification"], 1)  # the second epoch comes from the cache
        self.assertTrue(0 < row["accelerator_utilisation"] <= 1)
        rows = self.run_json("bench", "data", "shards", *flags, "--memory-limit", "4MiB",
                             "--sizes", "50KiB:200KiB:*2")["rows"]
        self.assertEqual(len(rows), 3)
        self.assertLess(rows[0]["samples"], rows[2]["samples"])
        self.assert_fails(2, "less than the 1 GiB of the sweep", "--sizes", "bench", "data",
                          "shards", "--sizes", "1GiB", "--quiet")
        self.assert_fails(2, "200 samples are one batch", "--batch", "bench", "data", "shards", "--quiet")
        demand = self.run_json("bench", "data", "shards", *flags, "--network", "vgg16")["rows"][0]["demand"]
        self.assertEqual([need["accelerator"] for need in demand], ["v100", "a100", "h100"])
        self.assertLess(demand[0]["samples_per_second"], 64 / 0.195 / 3)  # vgg16 works more than resnet50

    def test_what_is_no_data_set_is_one_sentence(self):
        (self.path / "empty").mkdir()
        (self.path / "cut.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
        self.assert_fails(3, "has no class folders", "one sub-folder", "data", "info", "empty")
        self.assert_fails(3, "there is no data set at 'nowhere'", "check the path",
                          "data", "info", "nowhere")
        self.assert_fails(3, "not a readable HDF5 file", "h5dump", "data", "info", "cut.h5")


class Stage(Case):
    def setUp(self):
        super().setUp()
        self.run_json("data", "synth", "set", "--shards", "--images", 40, "--test-images", 10,
                      "--size", 32, "--shard-size", "20kB")

    def stage(self, *arguments, **options):
        return self.run_json("data", "stage", "set", "local/set", *arguments, **options)

    def test_the_ranks_of_a_host_make_one_copy(self):
        result = self.stage("-n", 3)
        self.assertEqual((result["ranks"], result["hosts"]), (3, 1))
        self.assertEqual(result["read_bytes"], result["bytes"])
        for file in (self.path / "set").iterdir():
            copy = self.path / "local" / "set" / file.name
            self.assertEqual(copy.read_bytes(), file.read_bytes(), file.name)
        info = [self.run_json("data", "info", place) for place in ("set", "local/set")]
        self.assertEqual(info[0]["checksum"], info[1]["checksum"])
        self.assertEqual(self.run_json("data", "verify", "local/set")["bad"], [])

    def test_what_is_there_is_left_alone(self):
        first = self.stage()
        again = self.stage("-n", 2)
        self.assertEqual(again["read_bytes"], 0)
        self.assertEqual(again["checksum"], first["checksum"])

    def test_what_is_wrong_is_one_sentence(self):
        self.assert_fails(2, "more than the quota of 1 KiB", "raise --quota",
                          "data", "stage", "set", "local/set", "--quota", "1KiB")
        self.assert_fails(3, "there is no data set at 'nothing'", "check the path",
                          "data", "stage", "nothing", "local/set", "-n", 2)
        (self.path / "full").mkdir()
        (self.path / "full" / "precious").write_text("x")
        self.assert_fails(2, "full already holds something else", "choose a new directory",
                          "data", "stage", "set", "full")
        self.assertFalse((self.path / "local" / "set" / "stage.json").exists())


if __name__ == "__main__":
    unittest.main()
