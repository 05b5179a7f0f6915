"""A table of bad inputs and faults: each gets one sentence, the documented exit code, and an end.

A row is (what is wrong, the command line, exit code, words of the message). `make_files` makes what the rows name.
"""

import io
import json
import os
import struct
import subprocess
import sys
import tarfile
import unittest
import zipfile

import h5py
import numpy

from renkei import PROGRAM, Case

LONG = "a" * 256
NOT_UTF8 = os.fsdecode(b"a\xff\xfeb")


def safetensors(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def graph(**changes):
    op = {"id": 1, "name": "op", "kind": "linear", "inputs": [1], "outputs": [2], "forward_seconds": 0.1,
          "backward_seconds": 0.2, "saved_bytes": 1, "workspace_bytes": 0, "parameters": [],
          **changes.pop("op", {})}
    return {"version": 1, "ops": [op], "values": [{"id": 1, "bytes": 4, "batch": True, "gradient": False},
                                                  {"id": 2, "bytes": 4, "batch": True, "gradient": True}],
            "parameters": [], "inputs": [1], "outputs": [2], "batch": 4, **changes}


def make_files(path):
    def write(name, content):
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())

    os.mkfifo(path / "pipe")
    for folder in ("pipes/cat", "devices/cat"):
        (path / folder).mkdir(parents=True)
    os.mkfifo(path / "pipes/cat/a.jpg")
    os.symlink("/dev/zero", path / "devices/cat/a.jpg")
    (path / "empty").mkdir()
    write("empty.toml", "")
    write("broken.toml", "[train\nlr = 1")
    write("twice.toml", "[train]\nlr = 1\nlr = 2\n")
    write("binary.toml", bytes(range(256)))
    write("utf8.toml", b"[train]\nlr = '\xff\xfe'\n")
    write("deep.toml", "a = " + "[" * 5000 + "]" * 5000)
    write("type.toml", "[train]\nlr = [1, 2]\n")
    write("large.toml", "[train]\nsteps = 99999999999999999999\n")
    write("date.toml", "[train]\nlr = 1979-05-27\n")
    write("image.png", b"\x89PNG\r\n\x1a\n" + bytes(20))
    write("folder/cat/a.jpg", b"not an image")
    write("zero.jpg/cat/a.jpg", b"")
    numpy.savez(path / "none.npz", x=numpy.zeros((0, 3, 8, 8), "f4"), y=numpy.zeros(0, "i8"))
    numpy.savez(path / "objects.npz", x=numpy.array([{}, {}], dtype=object), y=numpy.arange(2))
    numpy.savez(path / "counts.npz", x=numpy.zeros((4, 8), "f4"), y=numpy.zeros(3, "i8"))
    numpy.savez(path / "text.npz", x=numpy.array(["a", "b"]), y=numpy.arange(2))
    numpy.savez(path / "scalar.npz", x=numpy.float32(1), y=numpy.arange(1))
    numpy.savez(path / "good.npz", x=numpy.zeros((4, 8), "f4"), y=numpy.arange(4))
    good = (path / "good.npz").read_bytes()
    for part in range(1, 10):
        write(f"cut{part}.npz", good[:len(good) * part // 10])
    with zipfile.ZipFile(path / "header.npz", "w") as file:
        file.writestr("x.npy", b"\x93NUMPY\x01\x00\xff\xff{'descr': '<f4'")
    with zipfile.ZipFile(path / "huge.npz", "w") as file:
        words = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 0), }\n"
        file.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(words)) + words)
    with zipfile.ZipFile(path / "overflow.npz", "w") as file:
        words = b"{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4), }\n"
        file.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(words)) + words)
    write("garbage.npz", b"PK\x03\x04" + os.urandom(100))
    write("garbage.h5", b"\x89HDF\r\n\x1a\n" + bytes(100))
    write("garbage.tar", os.urandom(2000))
    with tarfile.open(path / "empty.tar", "w"):
        pass
    with tarfile.open(path / "pipe.tar", "w") as tar:
        entry = tarfile.TarInfo("a.jpg")
        entry.type = tarfile.FIFOTYPE
        tar.addfile(entry)
    with tarfile.open(path / "good.tar", "w") as tar:
        entry = tarfile.TarInfo("a.cls")
        entry.size = 2000
        tar.addfile(entry, io.BytesIO(b"1" * 2000))
    write("cut.tar", (path / "good.tar").read_bytes()[:700])
    write("garbage.tfrecord", os.urandom(50))
    write("empty.pt2", b"")
    write("text.pt2", b"not a model")
    write("random.pt2", os.urandom(5000))
    with zipfile.ZipFile(path / "zip.pt2", "w") as file:
        file.writestr("hello", "world")
    write("script.pt", b"PK\x05\x06" + bytes(18))
    weights = {"short": b"abc", "claims": safetensors(b"{}", length=1 << 60), "list": safetensors(b"[]"),
               "deep": safetensors(b'{"a":' + b"[" * 20000 + b"]" * 20000 + b"}"),
               "cut": safetensors({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}, b"1234"),
               "gap": safetensors({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}, bytes(8)),
               "negative": safetensors({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, bytes(4)),
               "reversed": safetensors({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}}, bytes(4)),
               "overflow": safetensors({"a": {"dtype": "F32", "shape": [1 << 62, 4], "data_offsets": [0, 0]}}),
               "type": safetensors({"a": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}, b"1"),
               "offsets": safetensors({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}, bytes(4)),
               "names": safetensors({"other": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(4))}
    for name, content in weights.items():
        write(f"{name}.safetensors", content)
    graphs = {"list": [], "version": graph(version=99), "noops": {"version": 1},
              "negative": graph(op={"saved_bytes": -1}), "seconds": graph(op={"forward_seconds": -1}),
              "unknown": graph(op={"inputs": [7]}), "batch": graph(batch=0),
              "cycle": graph(op={"inputs": [2]}), "twice": {**graph(), "ops": graph()["ops"] * 2}}
    for name, content in graphs.items():
        write(f"graph-{name}.json", json.dumps(content))
    write("graph-deep.json", "[" * 100000 + "]" * 100000)
    write("graph-cut.json", json.dumps(graph())[:-5])
    write("graph-empty.json", "")
    write("graph-infinite.json", json.dumps(graph(op={"forward_seconds": float("inf")})))
    with zipfile.ZipFile(path / "quantised.pt", "w") as file:
        file.writestr("net/data.pkl", b"\x80\x02}X\x01\0\0\0actorch._utils\n_rebuild_qtensor\n)Rs.")
    with zipfile.ZipFile(path / "code.pt", "w") as file:
        file.writestr("net/data.pkl", b"\x80\x02cposix\nsystem\nX\x02\0\0\0id\x85R.")
    with h5py.File(path / "whole.h5", "w") as file:
        file["x"] = numpy.ones((4, 8), "f4")
    with h5py.File(path / "virtual.h5", "w") as file:
        layout = h5py.VirtualLayout(shape=(4, 8), dtype="f4")
        layout[:] = h5py.VirtualSource("whole.h5", "x", shape=(4, 8))
        file.create_virtual_dataset("x", layout)
        file["y"] = numpy.arange(4)
    with h5py.File(path / "external.h5", "w") as file:
        file.create_dataset("x", (4, 8), "f4", external=[("numbers.raw", 0, 4 * 8 * 4)])
        file["y"] = numpy.arange(4)
    write("cluster-none.toml", "")
    write("cluster-text.toml", "nodes = 3")
    write("cluster-key.toml", "[[node]]\ncuont = 3\n")


FILES = [  # (file, command that reads it, exit code, words)
    ("/dev/zero", "config", 3, "pipe or a device"), ("pipe", "config", 3, "pipe or a device"),
    ("empty", "config", 3, "Is a directory"), ("nowhere", "config", 3, "No such file"),
    ("broken.toml", "config", 2, "broken.toml"), ("twice.toml", "config", 2, "twice.toml"),
    ("binary.toml", "config", 2, "binary.toml"), ("utf8.toml", "config", 2, "utf8.toml"),
    ("deep.toml", "config", 2, "deep.toml"), ("type.toml", "config", 2, "train.lr"),
    ("large.toml", "config", 2, "large.toml"), ("date.toml", "config", 2, "train.lr"),
    ("image.png", "config", 2, "image.png"), (LONG, "config", 3, "File name too long"),
    ("/dev/zero", "graph", 3, "pipe or a device"), ("pipe", "graph", 3, "pipe or a device"),
    ("graph-list.json", "graph", 3, "JSON object"), ("graph-version.json", "graph", 3, "version"),
    ("graph-noops.json", "graph", 3, "graph-noops.json"), ("graph-negative.json", "graph", 3, "saved_bytes"),
    ("graph-seconds.json", "graph", 3, "forward_seconds"), ("graph-unknown.json", "graph", 3, "graph-unknown"),
    ("graph-batch.json", "graph", 3, "batch"),
    ("graph-cycle.json", "graph", 3, "graph-cycle"), ("graph-twice.json", "graph", 3, "graph-twice"),
    ("graph-deep.json", "graph", 3, "graph-deep"), ("graph-cut.json", "graph", 3, "not valid JSON"),
    ("graph-empty.json", "graph", 3, "not valid JSON"), ("graph-infinite.json", "graph", 3, "graph-infinite"),
    ("/dev/zero", "data", 3, "no data set"), ("pipe", "data", 3, "no data set"),
    ("pipes", "data", 3, "pipe, a socket or a device"), ("devices", "data", 3, "pipe, a socket or a device"),
    ("empty", "data", 3, "empty"), ("none.npz", "data", 3, "no samples"),
    ("objects.npz", "data", 3, "plain numbers"), ("counts.npz", "data", 3, "counts.npz"),
    ("text.npz", "data", 3, "plain numbers"), ("scalar.npz", "data", 3, "scalar.npz"),
    *((f"cut{part}.npz", "data", 3, f"cut{part}.npz") for part in range(1, 10)),
    ("header.npz", "data", 3, "header.npz"), ("huge.npz", "data", 3, "huge.npz"),
    ("overflow.npz", "data", 3, "overflow.npz"), ("garbage.npz", "data", 3, "garbage.npz"),
    ("virtual.h5", "data", 3, "'x' are in other files"), ("external.h5", "data", 3, "'x' are in other files"),
    ("quantised.pt", "weights", 3, "uses torch._utils._rebuild_qtensor, which is code"),
    ("code.pt", "weights", 3, "posix.system"), ("nowhere.pt", "weights", 3, "no weights file"),
    ("pipe", "weights", 3, "no weights file"), ("/dev/zero", "weights", 3, "no weights file"),
    *((f"{name}.safetensors", "weights", 3, f"{name}.safetensors") for name in (
        "short", "claims", "list", "deep", "cut", "gap", "negative", "reversed", "overflow", "type", "offsets")),
    ("garbage.h5", "data", 3, "garbage.h5"), ("garbage.tar", "data", 3, "garbage.tar"),
    ("empty.tar", "data", 3, "empty.tar"), ("pipe.tar", "data", 3, "pipe.tar"), ("cut.tar", "data", 3, "cut.tar"),
    ("garbage.tfrecord", "data", 3, "garbage.tfrecord"), (LONG, "data", 3, "no data set"),
    ("empty.pt2", "model", 3, "empty.pt2"), ("text.pt2", "model", 3, "not a file that PyTorch wrote"),
    ("random.pt2", "model", 3, "not a file that PyTorch wrote"), ("zip.pt2", "model", 3, "zip.pt2"),
    ("script.pt", "model", 2, "script.pt"), ("nowhere.pt2", "model", 3, "No such file"),
    (LONG + ".pt2", "model", 3, "File name too long"), ("nonet", "model", 2, "nonet"),
    ("cluster-none.toml", "cluster", 2, "cluster-none.toml"), ("cluster-text.toml", "cluster", 2, "cluster-text.toml"),
    ("cluster-key.toml", "cluster", 2, "cluster-key.toml"), ("/dev/zero", "cluster", 3, "pipe or a device"),
    ("nowhere.toml", "cluster", 2, "nowhere.toml"), ("nocluster", "cluster", 2, "nocluster"),
]

COMMANDS = {
    "config": lambda file: ("plan", "--model", "mlp", "--config", file),
    "graph": lambda file: ("plan", "--graph", file),
    "data": lambda file: ("data", "info", file),
    "model": lambda file: ("model", "show", file),
    "weights": lambda file: ("model", "import", file, "-o", "never.safetensors"),
    "cluster": lambda file: ("plan", "--model", "mlp", "--cluster", file),
}

ARGUMENTS = [  # (command line, exit code, words)
    (("plan", "--model", NOT_UTF8, "--json"), 2, "is not a valid value"),
    (("data", "info", NOT_UTF8, "--json"), 3, "no data set"),
    (("plan", "--model", "mlp", "--set", "model.hidden=" + NOT_UTF8, "--json"), 2, "not a valid value"),
    (("data", "info", "s3://key:hush@bucket/x"), 2, "key:***@bucket"),
    (("data", "info", "http://user:hush@host/x"), 3, "user:***@host"),
    (("data", "info", "s3://?X-Amz-Signature=hush"), 2, "Signature=***"),
    (("data", "stage", ":", "id", "-n", "2"), 2, "':' alone"),
    (("plan", "--model", "mlp", "--devices", "0"), 2, "devices"),
    (("plan", "--model", "mlp", "--devices", "-1"), 2, "devices"),
    (("plan", "--model", "mlp", "--batch", "x"), 2, "--batch"),
    (("plan", "--model", "mlp", "--batch", "99999999999999999999"), 2, "--batch"),
    (("plan", "--model", "mlp", "--memory", "12 parsecs"), 2, "parsecs"),
    (("plan", "--model", "mlp", "--set", "train"), 2, "train"),
    (("plan", "--model", "mlp", "--set", "=1"), 2, "no setting"),
    (("plan", "--model", "mlp", "--set", "train.nothing=1"), 2, "train.nothing"),
    (("plan",), 2, ""), (("nothing",), 2, "nothing"), ((), 2, "subcommand"), (("data",), 2, "subcommand"),
    (("model", "show"), 2, "model"), (("data", "info"), 2, ""), (("model", "show", "mlp", "--threads", "0"), 2, "threads"),
]


class BadInputs(Case):
    def check(self, words, code, message, environment=None, **options):
        try:
            done = subprocess.run([PROGRAM, *words], cwd=self.path, capture_output=True, timeout=60,
                                  env={**os.environ, **(environment or {})}, **options)
        except subprocess.TimeoutExpired:
            self.fail(f"{words} does not end")
        told = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, code, told[:2000])
        self.assertIn(message, told)
        self.assertEqual(told.count("error: "), 1, told[:2000])
        self.assertLess(len(told), 3000, "a sentence, not a page")
        self.assertNotIn("hush", told + done.stdout.decode(errors="replace"))

    def test_files(self):
        make_files(self.path)
        for file, command, code, message in FILES:
            with self.subTest(file=file[:40], command=command):
                self.check(COMMANDS[command](file), code, message)

    def test_arguments(self):
        for words, code, message in ARGUMENTS:
            with self.subTest(words=words):
                self.check([os.fsencode(word) for word in words], code, message)

    def test_no_setting_takes_what_is_no_number(self):
        """Every number among the settings: NaN, infinity, words and what lies beyond its range."""
        done = self.run_renkei("help", "settings")
        names = [line.split("`")[1] for line in done.stdout.splitlines() if line.startswith("| `")]
        config = self.run_renkei("plan", "--print-config", "--model", "mlp").stdout
        section, numbers = "", []
        for line in config.splitlines():
            if line.startswith("["):
                section = line.strip("[]")
            elif " = " in line and line.split(" = ")[1].split("  #")[0].replace(".", "").replace("e-", "").isdigit():
                numbers.append(f"{section}.{line.split(' = ')[0]}")
        self.assertGreater(len(numbers), 20)
        for name in numbers:
            self.assertIn(name, names)
            for value in ("nan", "inf", "-1e400"):
                with self.subTest(name=name, value=value):
                    self.check(("plan", "--print-config", "--model", "mlp", "--set", f"{name}={value}"), 2, name)

    def test_output_that_can_not_be_written(self):
        for words in (("model", "list"), ("model", "list", "--json"), ("help", "settings")):
            with self.subTest(words=words), open("/dev/full", "w") as full:
                done = subprocess.run([PROGRAM, *words], cwd=self.path, stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=60)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn("could not write to stdout", done.stderr)

    def test_short_s3_keys_are_only_refused_by_the_server(self):
        self.check(("data", "info", "s3://bucket/x", "--set", "data.s3_endpoint=http://127.0.0.1:9",
                    "--set", "data.s3_patience=0s"), 4, "127.0.0.1",
                   {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "x"})

    def test_a_directory_for_temporary_files_that_is_missing(self):
        self.check(("bench", "collectives", "-n", "2", "--sizes", "4"), 2, "TMPDIR",
                   {"TMPDIR": "/nonexistent"})


if __name__ == "__main__":
    sys.exit(unittest.main())
