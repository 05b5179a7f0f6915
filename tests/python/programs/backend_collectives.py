"""Every collective of torch.distributed on the backend renkei, on tensors whose results any rank can compute."""

import torch
import torch.distributed as dist

dist.init_process_group("renkei")
me, n = dist.get_rank(), dist.get_world_size()
assert dist.get_backend() == "renkei"

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
COMPLEX = (torch.complex64, torch.complex128)
SIZES = (0, 1, 3, 1000, 70_001, 600_000)


def tensor(rank: int, size: int, dtype: torch.dtype) -> torch.Tensor:
    """Small whole numbers: their sums are exact in any type and order."""
    values = (torch.arange(size) * 7 + rank * 3) % 5
    if dtype is torch.bool:
        return values % 2 == 0
    return torch.complex(values.float(), -values.float()).to(dtype) if dtype.is_complex else values.to(dtype)


def equal(result: torch.Tensor, expected: torch.Tensor) -> None:
    assert result.dtype == expected.dtype and torch.equal(result, expected), (result, expected)


def all_tensors(size: int, dtype: torch.dtype) -> list[torch.Tensor]:
    return [tensor(rank, size, dtype) for rank in range(n)]


def reductions(size: int, dtype: torch.dtype) -> None:
    stack = torch.stack(all_tensors(size, dtype))
    expected = {dist.ReduceOp.SUM: stack.sum(0, dtype=dtype)}
    if not dtype.is_complex:
        expected[dist.ReduceOp.MAX] = stack.amax(0)
        expected[dist.ReduceOp.MIN] = stack.amin(0)
        expected[dist.ReduceOp.PRODUCT] = stack.prod(0, dtype=dtype)
    if dtype.is_floating_point:
        expected[dist.ReduceOp.AVG] = (stack.double().sum(0) / n).to(dtype)
    if dtype in INTEGERS:
        for op, function in (
            (dist.ReduceOp.BAND, torch.bitwise_and),
            (dist.ReduceOp.BOR, torch.bitwise_or),
            (dist.ReduceOp.BXOR, torch.bitwise_xor),
        ):
            result = stack[0]
            for other in stack[1:]:
                result = function(result, other)
            expected[op] = result
    for op, value in expected.items():
        result = tensor(me, size, dtype)
        dist.all_reduce(result, op)
        if op == dist.ReduceOp.AVG:
            torch.testing.assert_close(result, value)
        else:
            equal(result, value)
    root = size % n
    result = tensor(me, size, dtype)
    dist.reduce(result, root)
    equal(result, expected[dist.ReduceOp.SUM] if me == root else tensor(me, size, dtype))
    parts = [tensor(me + part, size, dtype) for part in range(n)]
    result = torch.empty(size, dtype=dtype)
    dist.reduce_scatter(result, parts)
    equal(result, torch.stack([tensor(rank + me, size, dtype) for rank in range(n)]).sum(0, dtype=dtype))
    dist.reduce_scatter_tensor(result, torch.cat(parts))
    equal(result, torch.stack([tensor(rank + me, size, dtype) for rank in range(n)]).sum(0, dtype=dtype))


def movements(size: int, dtype: torch.dtype) -> None:
    root = size % n
    mine, everyone = tensor(me, size, dtype), all_tensors(size, dtype)
    result = mine.clone()
    dist.broadcast(result, root)
    equal(result, everyone[root])
    results = [torch.empty(size, dtype=dtype) for _ in range(n)]
    dist.all_gather(results, mine)
    equal(torch.cat(results), torch.cat(everyone))
    together = torch.empty(size * n, dtype=dtype)
    dist.all_gather_into_tensor(together, mine)
    equal(together, torch.cat(everyone))
    results = [torch.empty(size, dtype=dtype) for _ in range(n)]
    dist.gather(mine, results if me == root else None, root)
    if me == root:
        equal(torch.cat(results), torch.cat(everyone))
    result = torch.empty(size, dtype=dtype)
    dist.scatter(result, [tensor(rank + 1, size, dtype) for rank in range(n)] if me == root else None, root)
    equal(result, tensor(me + 1, size, dtype))
    parts = [tensor(10 * me + rank, size + rank, dtype) for rank in range(n)]
    results = [torch.empty(size + me, dtype=dtype) for _ in range(n)]
    dist.all_to_all(results, parts)
    expected = [tensor(10 * rank + me, size + me, dtype) for rank in range(n)]
    equal(torch.cat(results), torch.cat(expected))
    result = torch.empty((size + me) * n, dtype=dtype)
    dist.all_to_all_single(result, torch.cat(parts), [size + me] * n, [size + rank for rank in range(n)])
    equal(result, torch.cat(expected))


def messages() -> None:
    after, before = (me + 1) % n, (me - 1) % n
    for size in SIZES:
        got = torch.empty(size)
        # All send first: a message must not need the one that is waited for.
        works = [dist.isend(tensor(me, size, torch.float32), after, tag=3), dist.irecv(got, before, tag=3)]
        for work in works:
            work.wait()
        equal(got, tensor(before, size, torch.float32))
    got = torch.empty(4, 5).t()
    operations = [dist.P2POp(dist.isend, torch.full((4, 5), float(me)).t(), after), dist.P2POp(dist.irecv, got, before)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    equal(got, torch.full((5, 4), float(before)))
    if me == 0:
        senders = {dist.recv(torch.empty(3), None) for _ in range(n - 1)}
        assert senders == set(range(1, n)), senders
    else:
        dist.send(torch.full((3,), float(me)), 0)
    # A receive that is posted before a collective and served during it.
    got = torch.empty(300_000)
    if me == 0:
        work = dist.irecv(got, n - 1)
        dist.barrier()
        work.wait()
        assert got[0] == n - 1
    elif me == n - 1:
        dist.send(torch.full((300_000,), float(me)), 0)
        dist.barrier()
    else:
        dist.barrier()


def the_rest() -> None:
    # Work objects and futures, in order.
    values = [torch.full((1000,), float(me + i)) for i in range(8)]
    works = [dist.all_reduce(value, async_op=True) for value in values]
    sums = [work.get_future().then(lambda future: future.value()[0].sum()) for work in works]
    for i, (work, value) in enumerate(zip(works, values, strict=True)):
        work.wait()
        assert work.is_completed() and work.is_success()
        equal(value, torch.full((1000,), float(sum(range(n)) + n * i)))
        assert sums[i].wait() == value.sum()
    # Strided tensors, lists, objects, sparse sums, multiplied sums.
    strided = torch.full((6, 4), float(me)).t()
    dist.all_reduce(strided)
    equal(strided, torch.full((4, 6), float(sum(range(n)))))
    with dist._coalescing_manager(async_ops=True) as manager:
        for value in values:
            dist.all_reduce(value)
    manager.wait()
    found = [None] * n
    dist.all_gather_object(found, {"rank": me})
    assert found == [{"rank": rank} for rank in range(n)]
    sparse = torch.sparse_coo_tensor(torch.tensor([[me, n]]), torch.tensor([1.0, 2.0]), (n + 1,))
    dist.all_reduce(sparse)
    equal(sparse.to_dense(), torch.tensor([1.0] * n + [2.0 * n]))
    value = torch.ones(3)
    dist.all_reduce(value, dist._make_nccl_premul_sum(0.5))
    equal(value, torch.full((3,), 0.5 * n))
    # Sub-groups that overlap, and go on beside each other.
    groups = [dist.new_group([rank for rank in range(n) if rank != out]) for out in range(n)] if n > 2 else []
    for out, group in enumerate(groups):
        if me != out:
            value = torch.full((5000,), float(me))
            dist.all_reduce(value, group=group)
            equal(value, torch.full((5000,), float(sum(range(n)) - out)))
            dist.destroy_process_group(group)


def callbacks() -> None:
    """What follows from an operation asks for others and waits for them, as hooks of DDP do it."""

    def sum_again(future: torch.futures.Future) -> torch.Tensor:
        found = future.value()
        return dist.all_reduce(found[0] if isinstance(found, list) else found, async_op=True).get_future().wait()[0]

    value = torch.ones(1000)
    last = dist.all_reduce(value, async_op=True).get_future().then(sum_again).then(sum_again)
    equal(last.wait(), torch.full((1000,), float(n**3)))
    # Messages as well: the second is waited for where the first has come.
    after, before = (me + 1) % n, (me - 1) % n
    one, two = torch.empty(3), torch.empty(3)
    follows = dist.irecv(one, before, tag=5).get_future().then(lambda _: dist.irecv(two, before, tag=6).wait())
    dist.barrier()
    for tag in (5, 6):
        dist.isend(torch.full((3,), float(tag)), after, tag=tag).wait()
    follows.wait()
    equal(torch.cat([one, two]), torch.tensor([5.0] * 3 + [6.0] * 3))


for dtype in (*INTEGERS, *FLOATS, *COMPLEX, torch.bool):
    for size in SIZES if dtype is torch.float32 else (3, 1000, 70_001):
        if dtype is not torch.bool:
            reductions(size, dtype)
        movements(size, dtype)
flags = torch.tensor([me == 0, True, False])
dist.all_reduce(flags, dist.ReduceOp.SUM)
equal(flags, torch.tensor([True, True, False]))
messages()
the_rest()
callbacks()
dist.barrier()
dist.destroy_process_group()
print("all as expected")
