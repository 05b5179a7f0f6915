"""Trains a Hugging Face GPT-2 that does not fit one device: LAYERS WIDTH DEVICE_MEMORY [RUN_DIR].

    renkei run -n 4 examples/gpt2.py 4 128 6MiB

The model is unmodified and computes its loss itself. It is captured, cut into stages that fit, and trained; each rank
brings its own sentences.
"""

import sys

import torch
import transformers

import renkei

layers, width, memory = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.manual_seed(0)
config = transformers.GPT2Config(
    vocab_size=512, n_positions=64, n_embd=width, n_layer=layers, n_head=4,
    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False,
)  # fmt: skip
model = transformers.GPT2LMHeadModel(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
model = renkei.parallelize(model, optimizer, device_memory=memory, run_dir=sys.argv[4] if len(sys.argv) > 4 else None)

generator = torch.Generator().manual_seed(renkei.rank())
losses = []
for _ in range(8):
    start = torch.randint(0, 500, (4, 1), generator=generator)
    tokens = (start + torch.arange(32)) % 512  # each word follows from the one before
    optimizer.zero_grad()
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    losses.append(float(renkei.allreduce(loss)))
    if len(sys.argv) > 4:
        model.log(loss=losses[-1])

if renkei.rank() == 0:
    print(f"{model.plan['stages']} stages, loss {losses[0]:.3f} -> {losses[-1]:.3f}")
model.close()
