"""Unmodified models of many kinds under many plans: what is computed is what one process computes, or it is refused.

The table is in zoo/: users.py (the treacherous kinds first), shapes.py (RaNNC's), libraries.py (torchvision, timm,
transformers). A job trains many models, one after the other, so that the start is paid once.
"""

from jobs import check


def test_treacherous_models_and_shapes_are_right_data_parallel_and_in_stages() -> None:
    check(2, "--sample", "users", "shapes")


def test_networks_of_libraries_are_right_data_parallel_and_in_stages() -> None:
    check(2, "--sample", "--plans", "stages", "hf/gpt2", "timm", "torchvision/resnet18")
