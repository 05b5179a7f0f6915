"""Networks of torchvision, timm and transformers, small: those of tests/support/zoo.py and more."""

import pathlib
import sys

import torch
from case import Case, distance, without_dropout

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "support"))
import zoo  # noqa: E402

IDS = zoo.IDS
LABELS = "labels=12<100"
LLAMA = {**zoo.LLAMA, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
BART = {"vocab_size": 100, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 32}
MORE = {
    "resnet34": zoo._torchvision("resnet34"),
    "maxvit_t": zoo._torchvision("maxvit_t", 32, input_size=(32, 32), partition_size=1),
    "timm/resnetv2_18": zoo._timm("resnetv2_18"),
    "timm/swin_tiny": zoo._timm("swin_tiny_patch4_window7_224", 56, img_size=56, window_size=7),
    "timm/levit_128s": zoo._timm("levit_128s", 224),
    "timm/coat_tiny": zoo._timm("coat_tiny", 64, img_size=64),
    "timm/edgenext_xx_small": zoo._timm("edgenext_xx_small"),
    "hf/bart": zoo._transformer("BartForConditionalGeneration", "BartConfig", IDS, LABELS, **BART, **TOKENS),
    "hf/opt": zoo._transformer("OPTForCausalLM", "OPTConfig", IDS, LABELS, vocab_size=100, hidden_size=32, ffn_dim=64,
                               num_hidden_layers=2, num_attention_heads=4, word_embed_proj_dim=32,
                               max_position_embeddings=32),
    "hf/deberta_v2": zoo._transformer("DebertaV2ForMaskedLM", "DebertaV2Config", IDS, LABELS, relative_attention=True,
                                      pos_att_type=["p2c", "c2p"], **zoo.BERT),
    "hf/mixtral": zoo._transformer("MixtralForCausalLM", "MixtralConfig", IDS, LABELS, num_local_experts=2, **LLAMA),
    "hf/gemma": zoo._transformer("GemmaForCausalLM", "GemmaConfig", IDS, LABELS, **LLAMA),
    "hf/phi": zoo._transformer("PhiForCausalLM", "PhiConfig", IDS, LABELS, **zoo.BERT, pad_token_id=0, bos_token_id=1,
                               eos_token_id=2),
    "hf/falcon": zoo._transformer("FalconForCausalLM", "FalconConfig", IDS, LABELS, vocab_size=100, hidden_size=32,
                                  num_hidden_layers=2, num_attention_heads=4, bos_token_id=1, eos_token_id=2),
    "hf/bloom": zoo._transformer("BloomForCausalLM", "BloomConfig", IDS, LABELS, vocab_size=100, hidden_size=32,
                                 n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2),
    "hf/marian": zoo._transformer("MarianMTModel", "MarianConfig", IDS, LABELS, **BART, **TOKENS),
    "hf/whisper": zoo._transformer("WhisperForConditionalGeneration", "WhisperConfig", "8x20", LABELS, num_mel_bins=8,
                                   max_source_positions=10, max_target_positions=16,
                                   **{k: v for k, v in BART.items() if "position" not in k}, **TOKENS),
    "hf/wav2vec2": zoo._transformer("Wav2Vec2ForCTC", "Wav2Vec2Config", "400", "labels=3<12", vocab_size=12,
                                    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                                    conv_dim=(8, 8), conv_stride=(5, 2), conv_kernel=(10, 3), num_conv_pos_embeddings=4,
                                    num_conv_pos_embedding_groups=2, mask_time_prob=0.0, ctc_loss_reduction="mean"),
}


def numbers(spec, generator, samples):
    """3x64x64: real numbers; 12<100: whole ones below; a name before it."""
    name, _, form = spec.rpartition("=")
    sizes, _, below = form.partition("<")
    shape = (samples, *map(int, sizes.split("x")))
    if not below:
        return name, torch.randn(shape, generator=generator)
    return name, torch.randint(1, int(below), shape, generator=generator)


def case(name, network):
    own_loss = any(spec.startswith("labels=") for spec in network.inputs)
    samples = 2 if name.startswith("timm/levit") else 4

    def batch(generator):
        given = [numbers(spec, generator, samples) for spec in network.inputs]
        arguments = [value for key, value in given if not key]
        if not own_loss:
            arguments.append(torch.randn(samples, generator=generator))
        return tuple(arguments), {key: value for key, value in given if key}

    def make():
        return without_dropout(network.make())

    family = name if "/" in name else f"torchvision/{name}"
    image = not family.startswith("hf/")
    return Case(family, make, batch, None if own_loss else distance, sample=network.sample, mixes=image,
                samples=samples, rate=1e-3)


CASES = [case(name, network) for name, network in {**zoo.NETWORKS, **MORE}.items()]
