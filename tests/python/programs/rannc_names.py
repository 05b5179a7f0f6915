"""A RaNNC program that uses every name of RaNNC's users, against plain PyTorch with the joined batches."""

import os
import pathlib
import sys
import tempfile
import warnings

import torch

import renkei
import renkei.pyrannc as pyrannc

rank, size = pyrannc.get_rank(), pyrannc.get_world_size()
assert (rank, size) == (renkei.rank(), renkei.size())


def make() -> torch.nn.Module:
    """With buffers."""
    norm = torch.nn.BatchNorm1d(6, momentum=None)
    return torch.nn.Sequential(torch.nn.Linear(4, 6), norm, torch.nn.ReLU(), torch.nn.Linear(6, 2))


torch.manual_seed(rank)
net = make().eval()  # by running statistics, which all ranks have in common
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
model = pyrannc.RaNNCModule(net, optimizer, gather_inputs=True, load_deployment=None, check_unused_values=True)
plain = make().eval()
plain.load_state_dict(renkei.world.broadcast_object({k: v.clone() for k, v in model.model.state_dict().items()}))
assert all(torch.equal(a, b) for a, b in zip(model.parameters(), plain.parameters(), strict=True)), "rank 0's hold"
plain_optimizer = torch.optim.AdamW(plain.parameters(), lr=0.01)
torch.manual_seed(5)
for step in range(4):
    x, y = torch.randn(size, 3, 4), torch.randn(size, 3, 2)
    model.zero_grad()
    plain_optimizer.zero_grad()
    pyrannc.delay_grad_allreduce(step >= 2)
    for _ in range(1 + step // 2):
        torch.nn.functional.mse_loss(model(x[rank]), y[rank]).backward()
        torch.nn.functional.mse_loss(plain(x.reshape(-1, 4)), y.reshape(-1, 2)).backward()
    if step >= 2:
        model.allreduce_grads()
    norm = model.clip_grad_norm(0.05)
    wanted = torch.nn.utils.clip_grad_norm_(plain.parameters(), 0.05)
    assert torch.allclose(norm, wanted, rtol=1e-5), (norm, wanted)
    optimizer.step()
    plain_optimizer.step()
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-6), step
pyrannc.delay_grad_allreduce(False)
pyrannc.barrier()

# state_dict() is collective and complete on rank 0; the optimizer's too.
saved, saved_optimizer = model.state_dict(), optimizer.state_dict(from_global=True)
if rank == 0:
    assert list(saved) == list(plain.state_dict())
    assert all(torch.allclose(saved[name], value, atol=1e-6) for name, value in plain.state_dict().items())
    assert saved_optimizer["state"].keys() == plain_optimizer.state_dict()["state"].keys()
else:
    assert len(saved) == 0 and not saved_optimizer
other = make().eval()
other_optimizer = torch.optim.AdamW(other.parameters(), lr=0.3)
again = pyrannc.RaNNCModule(other, other_optimizer)
again.load_state_dict(saved)
other_optimizer.load_state_dict(saved_optimizer, from_global=True)
assert other_optimizer.param_groups[0]["lr"] == 0.01
x, y = torch.randn(size, 3, 4), torch.randn(size, 3, 2)
for m, o in ((again, other_optimizer), (model, optimizer)):
    o.zero_grad()
    torch.nn.functional.mse_loss(m(x[rank]), y[rank]).backward()
    o.step()
for ours, theirs in zip(again.parameters(), model.parameters(), strict=True):
    assert torch.allclose(ours, theirs, atol=1e-7)

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.gettempdir())
file = folder / "deployment.json"
model.save_deployment(str(file))
assert '"kind"' in pyrannc.show_deployment(str(file)) and model.show_deployment()
model.close()
pyrannc.RaNNCModule(make(), load_deployment=str(file)).close()
pyrannc.barrier()

pyrannc.sync_params_on_init(False)
torch.manual_seed(rank)
own = torch.nn.Linear(1, 1)
before = own.weight.detach().clone()
pyrannc.RaNNCModule(own)
assert torch.equal(own.weight, before)
pyrannc.sync_params_on_init(True)

everyone = pyrannc.RaNNCModule(torch.nn.Identity(), gather_inputs=False)
assert torch.equal(everyone(torch.tensor([float(rank)])), torch.tensor([0.0])), "the input of rank 0"
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    assert everyone.to("cpu") is everyone and everyone.cuda() is everyone
assert len(told) == 2
assert not everyone.eval().training and everyone.train().training
for wrong, words in ((lambda: pyrannc.RaNNCModule(make(), enable_apex_amp=True), "Apex"),
                     (lambda: pyrannc.dump_events(), "dump_events"),
                     (lambda: pyrannc.keep_graph(True), "keep_graph")):
    try:
        wrong()
    except renkei.RenkeiError as error:
        assert words in error.message and error.hint
    else:
        raise AssertionError(words)

# In stages backward() reduces, whatever is asked for.
os.environ["RENKEI_DEVICE_MEMORY"] = "1GiB"
pyrannc.delay_grad_allreduce(True)
staged = pyrannc.RaNNCModule(torch.nn.Linear(4, 2))
whole = torch.nn.Linear(4, 2)
whole.load_state_dict(renkei.world.broadcast_object({k: v.clone() for k, v in staged.model.state_dict().items()}))
torch.manual_seed(7)
x = torch.randn(size, 3, 4)
staged(x[rank]).square().mean().backward()
whole(x.reshape(-1, 4)).square().mean().backward()
assert torch.allclose(staged.weight.grad, whole.weight.grad, atol=1e-6)
staged.close()
print("equal")
