"""Networks of torchvision, timm and transformers, small, with the inputs that they take."""

import dataclasses
import pathlib
import sys
from collections.abc import Callable
from typing import Any

CAPTURE = pathlib.Path(__file__).resolve().parents[2] / "src" / "capture"
sys.path.insert(0, str(CAPTURE))

import torchvision_ops  # noqa: F401, I001  (before torchvision and timm)
import timm
import torch
import torchvision
import transformers

IDS = "input_ids=12<100"


@dataclasses.dataclass(frozen=True)
class Network:
    make: Callable[[], torch.nn.Module]
    inputs: tuple[str, ...]
    sample: bool = False  # part of the few that are always run


def _torchvision(name: str, size: int = 64, *, sample: bool = False, **options: Any) -> Network:
    def make() -> torch.nn.Module:
        return getattr(torchvision.models, name)(weights=None, num_classes=10, **options)

    return Network(make, (f"3x{size}x{size}",), sample)


def _timm(name: str, size: int = 64, *, sample: bool = False, **options: Any) -> Network:
    def make() -> torch.nn.Module:
        return timm.create_model(name, pretrained=False, num_classes=10, **options)

    return Network(make, (f"3x{size}x{size}",), sample)


def _transformer(model: str, config: str, *inputs: str, sample: bool = False, **options: Any) -> Network:
    def make() -> torch.nn.Module:
        return getattr(transformers, model)(getattr(transformers, config)(**options))

    return Network(make, inputs or (IDS,), sample)


BERT = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 64, "max_position_embeddings": 32}  # fmt: skip
LLAMA = {**BERT, "num_key_value_heads": 2, "head_dim": 8}
GPT2 = {"vocab_size": 100, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32}
VIT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
       "image_size": 32, "patch_size": 8, "num_labels": 10}  # fmt: skip

# fmt: off
NETWORKS: dict[str, Network] = {
    "alexnet": _torchvision("alexnet"),
    "vgg11_bn": _torchvision("vgg11_bn", 64),
    "resnet18": _torchvision("resnet18", 64, sample=True),
    "resnet50": _torchvision("resnet50", 64),
    "wide_resnet50_2": _torchvision("wide_resnet50_2", 64),
    "resnext50_32x4d": _torchvision("resnext50_32x4d", 64),
    "densenet121": _torchvision("densenet121", 64),
    "squeezenet1_1": _torchvision("squeezenet1_1"),
    "mobilenet_v2": _torchvision("mobilenet_v2", 64),
    "mobilenet_v3_small": _torchvision("mobilenet_v3_small"),
    # Smaller, its last 5 × 5 convolutions see 2 × 2 pixels, and single precision is off by 1e-5 in PyTorch, too.
    "mnasnet0_5": _torchvision("mnasnet0_5", 96),
    "shufflenet_v2_x0_5": _torchvision("shufflenet_v2_x0_5"),
    "googlenet": _torchvision("googlenet", 96, sample=True, aux_logits=True, init_weights=False),
    # Its auxiliary head takes images of 299 pixels.
    "inception_v3": _torchvision("inception_v3", 96, init_weights=False, aux_logits=False),
    "efficientnet_b0": _torchvision("efficientnet_b0"),
    "regnet_y_400mf": _torchvision("regnet_y_400mf"),
    "convnext_tiny": _torchvision("convnext_tiny"),
    "swin_t": _torchvision("swin_t", sample=True),
    "vit_b_16": _torchvision("vit_b_16", 32, image_size=32),
    "timm/resnet26d": _timm("resnet26d"),
    "timm/efficientnet_lite0": _timm("efficientnet_lite0"),
    "timm/vit_tiny_patch16_224": _timm("vit_tiny_patch16_224", 32, img_size=32),
    "timm/deit_tiny_distilled_patch16_224": _timm("deit_tiny_distilled_patch16_224", 32, img_size=32),
    "timm/mixer_s32_224": _timm("mixer_s32_224", 64, img_size=64),
    "timm/convnextv2_atto": _timm("convnextv2_atto", drop_path_rate=0.1),
    "timm/ghostnet_050": _timm("ghostnet_050"),
    "timm/hardcorenas_a": _timm("hardcorenas_a"),
    "timm/mobilevit_xxs": _timm("mobilevit_xxs", sample=True),
    "timm/poolformer_s12": _timm("poolformer_s12"),
    "timm/regnetx_002": _timm("regnetx_002"),
    "timm/repvgg_a0": _timm("repvgg_a0"),
    "timm/res2net50_14w_8s": _timm("res2net50_14w_8s"),
    "timm/rexnet_100": _timm("rexnet_100"),
    "timm/cait_xxs24_224": _timm("cait_xxs24_224", 32, img_size=32),
    "hf/gpt2": _transformer("GPT2LMHeadModel", "GPT2Config", sample=True, **GPT2),
    "hf/bert": _transformer("BertForMaskedLM", "BertConfig", sample=True, **BERT),
    "hf/bert_labels": _transformer("BertForMaskedLM", "BertConfig", IDS, "labels=12<100", **BERT),
    "hf/roberta": _transformer("RobertaForSequenceClassification", "RobertaConfig", **BERT),
    "hf/distilbert": _transformer("DistilBertForMaskedLM", "DistilBertConfig", vocab_size=100, dim=32, n_layers=2,
                                  n_heads=4, hidden_dim=64, max_position_embeddings=32),
    "hf/electra": _transformer("ElectraForPreTraining", "ElectraConfig", embedding_size=32, **BERT),
    "hf/albert": _transformer("AlbertForMaskedLM", "AlbertConfig", embedding_size=16, **BERT),
    "hf/llama": _transformer("LlamaForCausalLM", "LlamaConfig", **LLAMA),
    "hf/mistral": _transformer("MistralForCausalLM", "MistralConfig", **LLAMA),
    "hf/qwen2": _transformer("Qwen2ForCausalLM", "Qwen2Config", **LLAMA),
    "hf/gpt_neox": _transformer("GPTNeoXForCausalLM", "GPTNeoXConfig", **BERT),
    "hf/t5": _transformer("T5ForConditionalGeneration", "T5Config", IDS, "decoder_input_ids=7<100", vocab_size=100,
                          d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4),
    "hf/vit": _transformer("ViTForImageClassification", "ViTConfig", "3x32x32", **VIT),
    "hf/deit": _transformer("DeiTForImageClassification", "DeiTConfig", "3x32x32", **VIT),
    "hf/convnext": _transformer("ConvNextForImageClassification", "ConvNextConfig", "3x64x64",
                                hidden_sizes=[8, 16, 32, 64], depths=[1, 1, 1, 1], num_labels=10),
}
# fmt: on
