"""The lists of mixed precision are those of PyTorch's autocast for CPUs."""

import re
import unittest
from pathlib import Path

import torch

SOURCE = Path(__file__).parents[2] / "src/rewrite/cast_policy.cpp"
# Not among PyTorch's lists, with the reason in the source.
OURS = {"einsum", "tensordot", "nll_loss_nd"}
RECURRENT = {f"{kind}.{overload}" for kind in ("lstm", "gru", "rnn_tanh", "rnn_relu") for overload in ("input", "data")}


def listed(function: str) -> set[str]:
    body = SOURCE.read_text().split(f"const Names& {function}() {{")[1].split("return names")[0]
    return set(re.findall(r'"([\w.]+)"', body)) - OURS - RECURRENT


class AutocastListsTest(unittest.TestCase):
    def test_all_that_pytorch_registers_is_in_one_list(self):
        registered = torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCPU")
        theirs = {name.removeprefix("aten::") for name in registered}
        ours = [listed(name) for name in ("in_bf16", "in_f32", "widest")]
        self.assertEqual(set.union(*ours), theirs)
        self.assertEqual(sum(map(len, ours)), len(theirs))

    def test_results_have_the_dtype_of_their_list(self):
        x = torch.rand(4, 4) + 1
        low = x.bfloat16()
        picture = x[None, None]
        calls = {
            "mm": lambda: torch.mm(x, x),
            "bmm": lambda: torch.bmm(x[None], x[None]),
            "addmm": lambda: torch.addmm(x, x, x),
            "linear": lambda: torch.nn.functional.linear(x, x),
            "matmul": lambda: torch.matmul(x, x),
            "einsum": lambda: torch.einsum("ij,jk->ik", x, x),
            "tensordot": lambda: torch.tensordot(x, x, 1),
            "conv2d": lambda: torch.conv2d(picture, picture),
            "prelu": lambda: torch.prelu(x, x[0, :1]),
            "linalg_vecdot": lambda: torch.linalg.vecdot(x, x),
            "scaled_dot_product_attention": lambda: torch.nn.functional.scaled_dot_product_attention(x, x, x),
        }
        wide = {
            "prod": lambda: torch.prod(low),
            "mse_loss": lambda: torch.nn.functional.mse_loss(low, low),
            "cross_entropy_loss": lambda: torch.nn.functional.cross_entropy(low, torch.arange(4)),
            "nll_loss_nd": lambda: torch.nn.functional.nll_loss(low, torch.arange(4)),
            "cdist": lambda: torch.cdist(low, low),
            "trace": lambda: torch.trace(low),
            "cat": lambda: torch.cat([x, low]),
        }
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for name, call in calls.items():
                self.assertEqual(call().dtype, torch.bfloat16, name)
            for name, call in wide.items():
                self.assertEqual(call().dtype, torch.float32, name)


if __name__ == "__main__":
    unittest.main()
