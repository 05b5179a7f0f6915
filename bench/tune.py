"""TPE against Optuna, Hyperopt and random points on known functions: bench/tune.py [SEEDS [TRIALS]].

Same budget, each with its defaults and its own random numbers. "better" is the probability that a search of ours ends
with a lower value than one of theirs (ties count half), with a 95 % bootstrap interval; seconds are per suggestion."""

import logging
import math
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import hyperopt
import optuna

PROGRAM = Path(__file__).parent.parent / "build/bin/tune_functions"


def branin(x0, x1):
    a = x1 - 5.1 / (4 * math.pi**2) * x0**2 + 5 / math.pi * x0 - 6
    return a * a + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x0) + 10


def hartmann6(**x):
    c = (1, 1.2, 3, 3.2)
    a = ((10, 3, 17, 3.5, 1.7, 8), (0.05, 10, 17, 0.1, 8, 14), (3, 3.5, 1.7, 10, 17, 8),
         (17, 8, 0.05, 10, 0.1, 14))
    p = ((.1312, .1696, .5569, .0124, .8283, .5886), (.2329, .4135, .8307, .3736, .1004, .9991),
         (.2348, .1451, .3522, .2883, .3047, .6650), (.4047, .8828, .8732, .5743, .1091, .0381))
    x = [x[f"x{j}"] for j in range(6)]
    return -sum(c[i] * math.exp(-sum(a[i][j] * (x[j] - p[i][j]) ** 2 for j in range(6)))
                for i in range(4))


def ackley5(**x):
    x = list(x.values())
    return (-20 * math.exp(-0.2 * math.sqrt(sum(v * v for v in x) / 5))
            - math.exp(sum(math.cos(2 * math.pi * v) for v in x) / 5) + 20 + math.e)


def rosenbrock4(**x):
    x = [x[f"x{j}"] for j in range(4)]
    return sum(100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(3))


def mixed(rate, decay, depth, kind):
    return ((math.log10(rate) + 2) ** 2 + 0.5 * (math.log10(decay) + 4) ** 2
            + 0.05 * (depth - 7) ** 2 + {"a": 0.5, "b": 0, "c": 1}[kind])


FUNCTIONS = {
    branin: {"x0": ("real", -5, 10), "x1": ("real", 0, 15)},
    hartmann6: {f"x{j}": ("real", 0, 1) for j in range(6)},
    ackley5: {f"x{j}": ("real", -32.768, 32.768) for j in range(5)},
    rosenbrock4: {f"x{j}": ("real", -5, 10) for j in range(4)},
    mixed: {"rate": ("log", 1e-5, 1), "decay": ("log", 1e-6, 1e-1), "depth": ("int", 1, 20),
            "kind": ("choice", "a", "b", "c")},
}


def ours(function, seeds, trials, how):
    done = subprocess.run([PROGRAM, function.__name__, str(seeds), str(trials), how], check=True,
                          capture_output=True, text=True)
    *values, seconds = map(float, done.stdout.split())
    return values, seconds


def with_optuna(function, space, seeds, trials):
    def objective(trial):
        values = {}
        for name, (kind, *range_) in space.items():
            if kind == "choice":
                values[name] = trial.suggest_categorical(name, range_)
            elif kind == "int":
                values[name] = trial.suggest_int(name, *range_)
            else:
                values[name] = trial.suggest_float(name, *range_, log=kind == "log")
        return function(**values)

    best, begin = [], time.perf_counter()
    for seed in range(seeds):
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        study.optimize(objective, n_trials=trials)
        best.append(study.best_value)
    return best, (time.perf_counter() - begin) / seeds / trials


def with_hyperopt(function, space, seeds, trials):
    import numpy
    hp = hyperopt.hp
    spaces = {}
    for name, (kind, *range_) in space.items():
        if kind == "choice":
            spaces[name] = hp.choice(name, range_)
        elif kind == "int":
            spaces[name] = hp.uniformint(name, *range_)
        elif kind == "log":
            spaces[name] = hp.loguniform(name, math.log(range_[0]), math.log(range_[1]))
        else:
            spaces[name] = hp.uniform(name, *range_)
    best, begin = [], time.perf_counter()
    for seed in range(seeds):
        history = hyperopt.Trials()
        hyperopt.fmin(lambda point: function(**point), spaces, hyperopt.tpe.suggest, trials,
                      trials=history, rstate=numpy.random.default_rng(seed),
                      show_progressbar=False, verbose=False)
        best.append(min(history.losses()))
    return best, (time.perf_counter() - begin) / seeds / trials


def better(a, b):
    return sum((x < y) + (x == y) / 2 for x in a for y in b) / len(a) / len(b)


def interval(a, b):
    draw = random.Random(1)
    values = sorted(better(draw.choices(a, k=len(a)), draw.choices(b, k=len(b)))
                    for _ in range(400))
    return values[10], values[-11]


def main():
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    trials = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    logging.getLogger("hyperopt").setLevel(logging.ERROR)
    print(f"{seeds} seeds, {trials} trials; Optuna {optuna.__version__}, "
          f"Hyperopt {hyperopt.__version__}")
    for function, space in FUNCTIONS.items():
        mine, seconds = ours(function, seeds, trials, "tpe")
        print(f"{function.__name__:12} renkei    median {statistics.median(mine):10.4g}  "
              f"{seconds * 1e3:8.3f} ms")
        peers = {"random": ours(function, seeds, trials, "random"),
                 "optuna": with_optuna(function, space, seeds, trials),
                 "hyperopt": with_hyperopt(function, space, seeds, trials)}
        for name, (values, theirs) in peers.items():
            low, high = interval(mine, values)
            print(f"{'':12} {name:9} median {statistics.median(values):10.4g}  "
                  f"{theirs * 1e3:8.3f} ms  better {better(mine, values):.2f} [{low:.2f}, {high:.2f}]"
                  f"  time ratio {theirs / seconds:.0f}", flush=True)


if __name__ == "__main__":
    main()
