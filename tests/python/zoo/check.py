"""Trains models of the table under several plans, against plain PyTorch in one process.

    renkei run -n 2 check.py [--plans data,stages] [--random N] [--out FILE] NAME …   (NAME ends a name of the table, or all)

A line for each model; the last one says how many were right. What a plan computes is what one process computes on the
batches of all ranks: data parallel on each rank's batch apart (as DDP), in stages on all of them together.
"""

import argparse
import contextlib
import json
import pathlib
import random as python_random
import sys
import tempfile
import time
import warnings

import numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import shapes  # noqa: E402
import users  # noqa: E402

import renkei  # noqa: E402
from renkei import _engine, capture  # noqa: E402

STEPS = 3
TOLERANCE = 1e-5


def table(families):
    cases = [*users.CASES, *shapes.CASES]
    if any(not f.startswith(("users", "shapes")) for f in families):
        import libraries

        cases += libraries.CASES
    return {case.name: case for case in cases}


def seed(number):
    torch.manual_seed(number)
    python_random.seed(number)
    numpy.random.seed(number)


def batches_of(case, step):
    return [case.batch(torch.Generator().manual_seed(1000 * step + rank)) for rank in range(renkei.size())]


def joined(parts):
    """Batches one after the other."""
    first, spec = torch.utils._pytree.tree_flatten(parts[0])
    columns = zip(*(torch.utils._pytree.tree_leaves(part) for part in parts))
    leaves = [torch.cat(c) if isinstance(c[0], torch.Tensor) else c[0] for c in columns]
    return torch.utils._pytree.tree_unflatten(leaves, spec)


def loss_of(case, model, batch):
    arguments, named = batch
    if case.loss is not None:
        return case.loss(model(*arguments[:-1], **named), arguments[-1])
    output = model(*arguments, **named)
    found = getattr(output, "loss", None) if not isinstance(output, (dict, torch.Tensor)) else output
    return found["loss"] if isinstance(found, dict) else found


def plain(case, model, parts):
    """Plain PyTorch: the losses, and the state afterwards, with the buffers of the first part."""
    optimizer = torch.optim.SGD(model.parameters(), lr=case.rate, momentum=0.9)
    buffers = [{n: b.clone() for n, b in model.named_buffers()} for _ in range(parts)]
    memories = [memory_of(model) for _ in range(parts)]
    losses = []
    for step in range(STEPS):
        every, ranks = batches_of(case, step), renkei.size() // parts
        given = [joined(every[i : i + ranks]) for i in range(0, len(every), ranks)]
        optimizer.zero_grad()
        total = 0.0
        for part, batch in enumerate(given):
            for name, buffer in model.named_buffers():
                buffer.data.copy_(buffers[part][name])
            remember(model, memories[part])
            loss = loss_of(case, model, batch).mean() / parts
            loss.backward()
            total += loss.item()
            buffers[part] = {n: b.clone() for n, b in model.named_buffers()}
            memories[part] = memory_of(model)
        optimizer.step()
        losses.append(total)
    for name, buffer in model.named_buffers():
        buffer.data.copy_(buffers[0][name])
    return losses, {n: t.detach().clone() for n, t in model.state_dict().items()}


def engine(case, model, flat, captured, plan, options):
    """The same steps by Renkei."""
    optimizer = torch.optim.SGD(model.parameters(), lr=case.rate, momentum=0.9)
    step = renkei.train_step(model, optimizer, case.loss, plan=plan, **options)
    step._flat, step._captured = flat, captured  # one capture for all plans
    losses = []
    try:
        for number in range(STEPS):
            arguments, named = batches_of(case, number)[renkei.rank()]
            losses.append(step(*arguments, **named))
        state = step.state_dict()
        step.close()
        return losses, state
    finally:
        step.release()


def plan_file(folder, ops, cuts, samples, micro, replicas=1, recompute=(), schedule="1f1b"):
    """A plan in stages, cut at places of the list of ops."""
    borders = [0, *cuts, len(ops)]
    ranks = iter(range(len(cuts) * replicas + replicas))
    stages = [
        {"ranks": [next(ranks) for _ in range(replicas)], "ops": ops[a:b], "recompute": i in recompute, "loads": True}
        for i, (a, b) in enumerate(zip(borders, borders[1:]))
    ]
    kind = "data" if not cuts else "pipeline" if replicas == 1 else "hybrid"
    plan = {"version": 1, "kind": kind, "stages": len(stages), "replicas": replicas, "tensor": 1,
            "ranks": len(stages) * replicas, "batch": samples, "micro_batch": -(-samples // micro // replicas),
            "micro_batches": micro, "schedule": schedule, "chunks": 1, "stage_list": stages}
    file = pathlib.Path(folder) / f"plan-{renkei.rank()}.json"
    file.write_text(json.dumps(plan))
    return str(file)


def difference(found, wanted):
    losses, state = found
    for i, (a, b) in enumerate(zip(losses, wanted[0])):
        if abs(a - b) > TOLERANCE * max(abs(b), 1e-3):
            return f"the loss of step {i} is {a} and not {b}"
    for name, value in wanted[1].items():
        here = state.get(name)
        if here is None:
            return f"{name} is missing"
        if not value.dtype.is_floating_point and not value.dtype.is_complex:
            if not torch.equal(here, value):
                return f"{name} differs"
            continue
        largest = max(value.abs().max().item() if value.numel() else 0.0, 0.01)
        worst = (here - value).abs().max().item() if value.numel() else 0.0
        if not worst <= TOLERANCE * largest:
            return f"{name} differs by {worst:.2g} of {largest:.2g}"
    return ""


@contextlib.contextmanager
def told_by_rank_0():
    """An assertion of rank 0 ends all."""
    text = [""]
    yield text
    text[0] = renkei.allgather_object(text[0])[0]


def random_plans(ops, samples, count, chooser, mixes):
    ranks = renkei.size()
    for _ in range(count):
        replicas = chooser.choice([r for r in range(1, ranks + 1) if ranks % r == 0])
        stages = ranks // replicas
        most = min(stages - 1, len(ops) - 1)
        cuts = sorted(chooser.sample(range(1, len(ops)), most)) if most else []
        if len(cuts) + 1 != stages:
            continue
        micro = 1 if mixes else chooser.choice([m for m in (1, 2, 4) if samples % (m * replicas) == 0])
        schedule = chooser.choice(["gpipe", "1f1b"] if stages > 1 else ["accumulate"])
        yield replicas, cuts, micro, [i for i in range(stages) if chooser.random() < 0.4], schedule


def check(case, args, folder):
    """What was opaque, assumed or refused; asserts that all that was trained was right."""
    seed(7)
    model = case.make().train()
    start = {n: t.detach().clone() for n, t in [*model.named_parameters(), *model.named_buffers()]}
    arguments, named = batches_of(case, 0)[0]
    flat = capture.FlatModel(model, (arguments, named), case.loss, only_loss=True)
    calls = [flat.flatten(batch) for batch in batches_of(case, 0)]
    captured = capture.capture_flat(flat, calls)
    if case.opaque == "none":
        assert not captured.opaque, captured.opaque
    elif case.opaque:
        assert any(case.opaque in key for key in captured.opaque), captured.opaque
    assert bool(captured.whole) == case.whole, captured.whole
    ops = _engine.ops_of(captured.text, captured.tied, {"train.loss": "model"})
    samples = case.samples * renkei.size()
    mixes = case.mixes or bool(captured.stateful)
    runs = []
    if "data" in args.plans:
        runs.append(("data", "data", renkei.size(), {}))
    if "stages" in args.plans and renkei.size() > 1 and not case.whole:
        n, stages = len(ops), renkei.size()
        shares = (0.5,) if stages > 2 or args.sample else (0.35, 0.7)
        for number, share in enumerate(shares):
            cuts = [max(1, int(n * share))] if stages == 2 else [max(1, n // 3), max(2, 2 * n // 3)]
            if cuts[-1] < n:
                runs.append((f"cut at {cuts} of {n}", ("stages", cuts, 1 if mixes else 2, number), 1, {}))
    if args.random and not case.whole:
        chooser = python_random.Random(hash_of(case.name))
        for replicas, cuts, micro, recompute, schedule in random_plans(ops, samples, args.random, chooser, mixes):
            if captured.stateful:
                recompute = []
            plan = ("random", cuts, micro, replicas, recompute, schedule)
            runs.append((f"{schedule} {cuts} × {replicas}, {micro} micro-batches, again {recompute}", plan, replicas, {}))
    references, firsts = {}, {}
    for words, plan, parts, options in runs:
        micro = 1
        if isinstance(plan, tuple):
            kind, cuts, micro, *rest = plan
            if kind == "stages":
                plan = plan_file(folder, ops, cuts, samples, micro)
            else:
                plan = plan_file(folder, ops, cuts, samples, micro, rest[0], rest[1], rest[2])
        if not case.random and parts not in references:
            reset(model, start)
            references[parts] = plain(case, model, parts) if renkei.rank() == 0 else None
        reset(model, start)
        seed(7)
        found = engine(case, model, flat, captured, plan, options)
        with told_by_rank_0() as text:
            if renkei.rank() == 0:
                if case.random:  # masks depend on the micro-batch, and not on who computes it
                    if parts == 1:
                        text[0] = difference(found, firsts.setdefault(micro, found))
                else:
                    text[0] = difference(found, references[parts])
        assert not text[0], f"{words}: {text[0]}"
    return captured, [words for words, *_ in runs]


def hash_of(text):
    return sum((i + 1) * ord(c) for i, c in enumerate(text))


def reset(model, start):
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        tensor.data = start[name].clone()
        tensor.grad = None
    remember(model, {name: (0, []) for name, _ in model.named_modules()})


def memory_of(model):
    """What models of the table keep in attributes; each replica has its own."""
    return {n: (getattr(m, "calls", 0), list(getattr(m, "history", []))) for n, m in model.named_modules()}


def remember(model, memory):
    for name, module in model.named_modules():
        if isinstance(getattr(module, "calls", None), int):
            module.calls = memory[name][0]
        if isinstance(getattr(module, "history", None), list):
            module.history[:] = memory[name][1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--plans", default="data,stages")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("names", nargs="+")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    cases = table(args.names)
    chosen = [c for c in cases.values() if any(c.name.startswith(n) for n in args.names) and (c.sample or not args.sample)]
    rows, wrong = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for case in chosen:
            begin = time.time()
            row = {"name": case.name}
            try:
                captured, plans = check(case, args, folder)
                row |= {"opaque": captured.opaque, "assumptions": captured.assumptions, "whole": captured.whole}
                words = f"equal under {len(plans)} plans"
            except renkei.RenkeiError as error:
                row |= {"refused": error.message}
                expected = bool(case.error) and case.error in error.message
                wrong += not expected
                words = f"{'refused' if expected else 'NOT RIGHT'}: {error.message}"
            except AssertionError as error:
                wrong += 1
                words = f"NOT RIGHT: {error}"
            rows.append(row)
            if renkei.rank() == 0:
                extra = "; ".join(row.get("opaque", {}))
                print(f"{case.name}: {words}{f' (opaque: {extra})' if extra else ''} {time.time() - begin:.1f} s",
                      flush=True)
    if renkei.rank() == 0:
        if args.out:
            pathlib.Path(args.out).write_text(json.dumps(rows))
        print(f"{len(chosen)} models, {wrong} not right", flush=True)


if __name__ == "__main__":
    main()
