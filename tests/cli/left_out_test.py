import unittest

from renkei import Case


class LeftOut(Case):
    def test_training_without_torch_is_a_named_error(self):
        self.assert_fails(2, "this renkei was built without PyTorch", "-DRENKEI_TORCH=ON",
                          "train", "--model", "mlp", "--batch", 64)


if __name__ == "__main__":
    unittest.main()
