"""Import this before torchvision or timm: torchvision's compiled operators do not load beside a CPU build of
torch, and without their schemas the import fails. The networks use none of them."""

import torch

torch.library.define("torchvision::nms", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
torch.library.define("torchvision::qnms", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
