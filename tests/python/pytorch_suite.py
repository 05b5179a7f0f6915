"""PyTorch's own tests for backends (they are in its wheel) on the backend renkei, 3 ranks each.

python pytorch_suite.py [-k NAME …]: those that PyTorch writes for a backend of the CPU. docs/backend.md says which of them
do not apply.
"""

import os
import tempfile
import unittest

os.environ.setdefault("BACKEND", "renkei")
os.environ.setdefault("WORLD_SIZE", "3")
os.environ.setdefault("TEMP_DIR", tempfile.mkdtemp())

import torch
from torch.testing._internal.common_distributed import DistTestCases

for feature in ("ddp", "subgroup", "plugin"):
    DistTestCases.backend_feature[feature].add("renkei")

from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend  # noqa: E402

torch.set_num_threads(1)


class Suite(TestDistBackend, DistributedTest._DistTestBase):
    """Ranks are forked: what they import is imported once."""

    def setUp(self) -> None:
        super().setUp()
        self._fork_processes()


if __name__ == "__main__":
    unittest.main()
