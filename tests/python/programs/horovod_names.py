"""A Horovod program that uses every name of Horovod's users, against what plain PyTorch gives; on any number of ranks."""

import copy

import torch

import renkei
import renkei.horovod.torch as hvd

assert not hvd.is_initialized()
hvd.init()
rank, size = hvd.rank(), hvd.size()
assert hvd.is_initialized() and (rank, size) == (renkei.rank(), renkei.size())
assert hvd.local_rank() == rank and hvd.local_size() == size and hvd.cross_rank() == 0 and hvd.cross_size() == 1
assert rank != 0 or hvd.is_homogeneous()  # of one rank alone
assert hvd.mpi_threads_supported() and hvd.mpi_built() and not hvd.nccl_built()
KINDS = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
         torch.uint8)


def of(r: int, shape: tuple[int, ...], kind: torch.dtype) -> torch.Tensor:
    """The tensor of rank r."""
    return (torch.arange(torch.Size(shape).numel()).reshape(shape) % 5 + r + 1).to(kind)


def same(found: torch.Tensor, wanted: torch.Tensor) -> None:
    """Equal, to the last bit but one of the type."""
    assert found.dtype == wanted.dtype and found.shape == wanted.shape, (found, wanted)
    slack = {torch.float16: 2e-3, torch.bfloat16: 2e-2}.get(found.dtype, 1e-6)
    assert torch.allclose(found.double(), wanted.double(), rtol=slack, atol=0), (found, wanted)


def collectives() -> None:
    """allreduce and its forms, allgather, broadcast, alltoall, reducescatter."""
    for kind in KINDS:
        for shape in ((), (0,), (3,), (5, 7)):
            mine = of(rank, shape, kind)
            every = torch.stack([of(r, shape, kind) for r in range(size)])
            total = every.sum(0, dtype=kind)
            same(hvd.allreduce(mine, op=hvd.Sum), total)
            same(hvd.allreduce(mine, average=False), total)
            same(hvd.allreduce(mine, op=hvd.Min), every.amin(0))
            same(hvd.allreduce(mine, op=hvd.Max), every.amax(0))
            same(hvd.allreduce(mine, op=hvd.Product), every.prod(0, dtype=kind))
            mean = every.double().mean(0) if kind.is_floating_point else every.double().mean(0).trunc()
            same(hvd.allreduce(mine), mean.to(kind))
            assert torch.equal(mine, of(rank, shape, kind)), "the argument stays as it is"
            same(hvd.broadcast(mine, root_rank=size - 1), every[-1])
            if kind.is_floating_point:
                scaled = hvd.allreduce(mine, op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0)
                same(scaled, (total.double() * 2).to(kind))
            place = mine.clone()
            assert hvd.allreduce_(place, op=hvd.Sum) is place
            same(place, total)
            handle = hvd.allreduce_async_(place.copy_(mine), name="x", op=hvd.Sum)
            assert hvd.synchronize(handle) is place and hvd.poll(handle)
            same(place, total)
            same(hvd.synchronize(hvd.allreduce_async(mine, op=hvd.Sum)), total)
            assert hvd.broadcast_(place.copy_(mine), root_rank=0) is place
            same(place, every[0])
            same(hvd.synchronize(hvd.broadcast_async(mine, 0)), every[0])
            hvd.synchronize(hvd.broadcast_async_(place.copy_(mine), size - 1))
            same(place, every[-1])
    complex_sum = hvd.allreduce(torch.tensor([complex(rank, 1)]), op=hvd.Sum)
    assert torch.equal(complex_sum, torch.tensor([complex(size * (size - 1) // 2, size)]))
    flags = hvd.allreduce(torch.tensor([True, rank == 0]), op=hvd.Min)
    assert torch.equal(flags, torch.tensor([True, size == 1]))
    strided = torch.arange(12.0).view(3, 4).t()
    same(hvd.allreduce(strided, op=hvd.Sum), strided * size)
    place = torch.arange(12.0).view(3, 4).t()
    hvd.allreduce_(place, op=hvd.Sum)
    same(place, strided * size)
    compressed = hvd.allreduce(torch.full((3,), 0.1 * (rank + 1)), compression=hvd.Compression.fp16)
    assert torch.allclose(compressed, torch.full((3,), 0.05 * (size + 1)), rtol=2e-3) and compressed.dtype is torch.float32

    many = [of(rank, (n, 2), torch.float32) for n in (1, 4, 2)]
    totals = [torch.stack([of(r, (n, 2), torch.float32) for r in range(size)]).sum(0) for n in (1, 4, 2)]
    for found, wanted in zip(hvd.grouped_allreduce(many, op=hvd.Sum), totals, strict=True):
        same(found, wanted)
    for found, wanted in zip(hvd.synchronize(hvd.grouped_allreduce_async(many, op=hvd.Sum)), totals, strict=True):
        same(found, wanted)
    for found, wanted in zip(hvd.grouped_allreduce_([m.clone() for m in many], op=hvd.Sum), totals, strict=True):
        same(found, wanted)

    ragged = torch.cat([of(r, (r + 1, 2), torch.int32) for r in range(size)])
    same(hvd.allgather(of(rank, (rank + 1, 2), torch.int32)), ragged)
    same(hvd.synchronize(hvd.allgather_async(of(rank, (rank + 1, 2), torch.int32), name="rows")), ragged)
    same(hvd.allgather(torch.tensor(rank)), torch.arange(size))
    same(hvd.allgather(torch.ones(0 if rank == 0 else 2, 3)), torch.ones(2 * (size - 1), 3))
    for found in hvd.grouped_allgather([of(rank, (rank + 1, 2), torch.int32)] * 2):
        same(found, ragged)

    splits = torch.tensor([(rank + q) % 3 for q in range(size)])
    rows = torch.cat([torch.full((int(n), 2), 10.0 * rank + q) for q, n in enumerate(splits)])
    received, counts = hvd.alltoall(rows, splits=splits)
    assert counts.tolist() == [(r + rank) % 3 for r in range(size)]
    same(received, torch.cat([torch.full(((r + rank) % 3, 2), 10.0 * r + rank) for r in range(size)]))
    even = torch.cat([torch.arange(2) + 2 * rank + 100 * r for r in range(size)])
    same(hvd.alltoall(torch.arange(size * 2) + 100 * rank), even)

    for length in (size * 2, size * 2 + 1):
        every = torch.stack([of(r, (length, 3), torch.float32) for r in range(size)])
        parts = every.sum(0).tensor_split(size)
        same(hvd.reducescatter(of(rank, (length, 3), torch.float32), op=hvd.Sum), parts[rank])
        same(hvd.reducescatter(of(rank, (length, 3), torch.float32)), parts[rank] / size)
    hvd.barrier()


def orders_may_differ() -> None:
    """Names bring together what ranks ask for in different orders."""
    names = ["a", "b", "c", "d"]
    mine = names if rank % 2 == 0 else names[::-1]
    handles = {name: hvd.allreduce_async(torch.full((2,), float(ord(name) + rank)), name=name, op=hvd.Sum) for name in mine}
    for name in names:
        wanted = float(sum(ord(name) + r for r in range(size)))
        assert torch.equal(hvd.synchronize(handles[name]), torch.full((2,), wanted)), name


def gradients_pass_through() -> None:
    """Of the sum over all ranks of (rank + 1) · result."""
    x = torch.full((2,), 3.0, requires_grad=True)
    (hvd.allreduce(x, op=hvd.Sum) * (rank + 1)).sum().backward()
    same(x.grad, torch.full((2,), float(size * (size + 1) // 2)))
    x = torch.full((rank + 1, 2), 3.0, requires_grad=True)
    (hvd.allgather(x) * (rank + 1)).sum().backward()
    same(x.grad, torch.full((rank + 1, 2), (size + 1) / 2))
    x = torch.full((2,), 3.0, requires_grad=True)
    (hvd.broadcast(x, 0) * (rank + 1)).sum().backward()
    same(x.grad, torch.full((2,), (size + 1) / 2 if rank == 0 else 0.0))
    x = torch.ones(size, requires_grad=True)
    (hvd.alltoall(x) * torch.arange(1.0, size + 1)).sum().backward()
    same(x.grad, torch.full((size,), rank + 1.0))
    x = torch.ones(size, requires_grad=True)
    (hvd.reducescatter(x, op=hvd.Sum) * (rank + 1)).sum().backward()
    same(x.grad, torch.arange(1.0, size + 1))


def objects() -> None:
    """Anything that pickle takes."""
    assert hvd.broadcast_object({"from": rank}, root_rank=size - 1) == {"from": size - 1}
    assert hvd.allgather_object({"rank": rank, "text": "x" * rank}) == [{"rank": r, "text": "x" * r} for r in range(size)]


def make(kind: str) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """A model with a layer that is not always used, and one that never is."""
    model = torch.nn.ModuleDict({"first": torch.nn.Linear(6, 8), "last": torch.nn.Linear(8, 3),
                                 "sometimes": torch.nn.Linear(8, 3), "never": torch.nn.Linear(2, 2)})
    options = {"lr": 0.1, "weight_decay": 0.01}
    return model, (torch.optim.SGD(model.parameters(), momentum=0.9, **options) if kind == "sgd"
                   else torch.optim.AdamW(model.parameters(), **options))


def loss_of(model: torch.nn.ModuleDict, x: torch.Tensor, y: torch.Tensor, extra: bool) -> torch.Tensor:
    """Mean squared error."""
    hidden = torch.tanh(model["first"](x))
    out = model["last"](hidden) + (model["sometimes"](hidden) if extra else 0)
    return ((out - y) ** 2).mean()


def training(kind: str, passes: int = 1, clip: bool = False, **how: object) -> None:
    """Every rank with its batch against one process with all of them."""
    torch.manual_seed(rank)  # other values on every rank, until they are broadcast
    model, optimizer = make(kind)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    plain_model, plain_optimizer = make(kind)
    plain_model.load_state_dict({name: value.clone() for name, value in model.state_dict().items()})
    if rank == 0:
        optimizer.param_groups[0]["lr"] = 0.05
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    assert optimizer.param_groups[0]["lr"] == 0.05
    plain_optimizer.param_groups[0]["lr"] = 0.05
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(),
                                         backward_passes_per_step=passes, **how)
    scheduler, plain_scheduler = (torch.optim.lr_scheduler.StepLR(o, 2, 0.5) for o in (optimizer, plain_optimizer))
    torch.manual_seed(7)
    for step in range(4):
        optimizer.zero_grad()
        plain_optimizer.zero_grad()
        for _ in range(passes):
            x, y = torch.randn(size, 5, 6), torch.randn(size, 5, 3)
            extra = [step % 2 == 1 and r == 0 for r in range(size)]
            loss_of(model, x[rank], y[rank], extra[rank]).backward()
            scale = 1.0 if how.get("op") is hvd.Sum else 1.0 / size
            sum(loss_of(plain_model, x[r], y[r], extra[r]) * scale for r in range(size)).backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(plain_model.parameters(), 0.1)
            optimizer.synchronize()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            with optimizer.skip_synchronize():
                optimizer.step()
        else:
            optimizer.step()
        plain_optimizer.step()
        scheduler.step()
        plain_scheduler.step()
        assert model["never"].weight.grad is None
    slack = 2e-2 if how.get("compression") is hvd.Compression.fp16 else 1e-5
    for (name, ours), wanted in zip(model.named_parameters(), plain_model.parameters(), strict=True):
        assert torch.allclose(ours, wanted, rtol=slack, atol=slack / 10), (kind, how, name, (ours - wanted).abs().max())
    saved = copy.deepcopy(optimizer.state_dict())
    optimizer.load_state_dict(saved)


def optimizer_state_is_broadcast() -> None:
    """Momentum too."""
    torch.manual_seed(rank)
    model, optimizer = make("adam")
    loss_of(model, torch.randn(2, 6), torch.randn(2, 3), True).backward()
    optimizer.step()
    hvd.broadcast_optimizer_state(optimizer, root_rank=size - 1)
    everyone = hvd.allgather_object(optimizer.state_dict())
    for theirs in everyone:
        for key, state in everyone[-1]["state"].items():
            assert all(torch.equal(state[name], theirs["state"][key][name]) for name in state)


def join() -> None:
    """A rank without data adds zeros."""
    for step in range(3):
        if step >= rank + 1:
            break
        total = hvd.allreduce(torch.ones(3), name=f"joined {step}", op=hvd.Sum)
        assert torch.equal(total, torch.full((3,), float(max(size - step, 1)) if size <= 3 else total[0])), (step, total)
    last = hvd.join()
    assert hvd.allgather_object(last) == [last] * size and 0 <= last < size
    assert torch.equal(hvd.allreduce(torch.ones(1), op=hvd.Sum), torch.tensor([float(size)]))


def elastic() -> None:
    """In a job whose ranks stay the same."""
    model = torch.nn.Linear(2, 1)
    torch.nn.init.constant_(model.weight, float(rank))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = hvd.elastic.ElasticSampler(range(10 * size), shuffle=False)
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, epoch=rank, batch=0)
    state.register_reset_callbacks([lambda: None])

    @hvd.elastic.run
    def train(state: hvd.elastic.TorchState) -> list[int]:
        assert state.epoch == 0 and float(state.model.weight.detach()[0, 0]) == 0.0
        state.commit()
        torch.nn.init.constant_(state.model.weight, 5.0)
        state.epoch = 9
        state.restore()
        assert state.epoch == 0 and float(state.model.weight.detach()[0, 0]) == 0.0
        state.sampler.record_batch(0, 4)
        state.sampler.reset()
        return list(state.sampler)

    assert train(state) == list(range(4 * size + rank, 10 * size, size))


def batch_norm() -> None:
    """hvd.SyncBatchNorm, on the CPU, against one process with all samples."""
    torch.manual_seed(3)
    x = torch.randn(size, 3, 4, 2)
    ours, plain = hvd.SyncBatchNorm(4), torch.nn.BatchNorm1d(4)
    mine = x[rank].clone().requires_grad_()
    joined = x.reshape(-1, 4, 2).clone().requires_grad_()
    weights = torch.randn(size * 3, 4, 2)
    found, wanted = ours(mine), plain(joined)
    (found * weights.view(size, 3, 4, 2)[rank]).sum().backward()
    (wanted * weights).sum().backward()
    assert torch.allclose(found, wanted.view(size, 3, 4, 2)[rank], atol=1e-6)
    assert torch.allclose(mine.grad, joined.grad.view(size, 3, 4, 2)[rank], atol=1e-6)
    assert torch.allclose(ours.running_var, plain.running_var, atol=1e-6)
    assert torch.allclose(hvd.allreduce(ours.weight.grad, op=hvd.Sum), plain.weight.grad, atol=1e-5)


def sentences() -> None:
    """What is not there, or not right, gets one."""
    for wrong, words in (
        (lambda: hvd.add_process_set([0]), "add_process_set"),
        (lambda: hvd.allreduce(torch.ones(1), op=hvd.Adasum), "Adasum"),
        (lambda: hvd.start_timeline("x"), "timeline"),
        (lambda: hvd.ProcessSet([0, 77]), "ProcessSet"),
        (lambda: hvd.broadcast(torch.ones(1), size), f"no rank {size}"),
        (lambda: hvd.alltoall(torch.ones(2), splits=[7] * size), "alltoall"),
    ):
        try:
            wrong()
        except renkei.RenkeiError as error:
            assert words in error.message and error.hint, error
        else:
            raise AssertionError(words)
    try:
        hvd.nonsense  # noqa: B018
    except AttributeError as error:
        assert "nonsense" in str(error)
    if size > 1:
        try:
            hvd.allreduce(torch.ones(2 + rank), name="different")
        except renkei.RenkeiError as error:
            assert "different: rank 1 calls allreduce of float32, [3]" in error.message, error
        else:
            raise AssertionError("different sizes")
    layer = torch.nn.Linear(1, 1)
    hvd.broadcast_parameters(layer.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(layer.parameters(), lr=0.1), layer.named_parameters())
    layer(torch.ones(1, 1)).sum().backward()
    if size > 1:
        try:
            optimizer.zero_grad()
        except renkei.RenkeiError as error:
            assert "zero_grad" in error.message
        else:
            raise AssertionError("zero_grad")
    optimizer.step()


collectives()
orders_may_differ()
gradients_pass_through()
objects()
training("sgd")
training("adam", passes=2)
training("sgd", clip=True)
training("sgd", op=hvd.Sum)
training("sgd", gradient_predivide_factor=2.0)
training("sgd", num_groups=2)
training("sgd", compression=hvd.Compression.fp16)
optimizer_state_is_broadcast()
join()
elastic()
batch_norm()
sentences()
hvd.shutdown()
assert not hvd.is_initialized()
hvd.init()
hvd.barrier()
print("equal")
