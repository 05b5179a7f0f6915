"""The samples of `--data random`, and the order in which a job takes them: what src/base/philox.h,
src/data/random_data.cpp and src/data/permutation.cpp compute, in NumPy."""

import math
from collections.abc import Sequence

import numpy as np

SHUFFLE, RANDOM_INPUT, RANDOM_TARGET = 1, 2, 3
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


def philox(seed: int, use: int, count: int, *, sample: int, epoch: int = 0) -> np.ndarray:
    """`count` random words of one (seed, use, epoch, sample)."""
    key = (seed ^ (use * 0x9E3779B97F4A7C15)) & (2**64 - 1)
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    counter = [blocks] + [np.full_like(blocks, word) for word in (sample & 0xFFFFFFFF, sample >> 32, epoch)]
    k0, k1 = np.uint64(key & 0xFFFFFFFF), np.uint64(key >> 32)
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * counter[0], np.uint64(0xCD9E8D57) * counter[2]
        counter = [(p1 >> HALF) ^ counter[1] ^ k0, p1 & LOW, (p0 >> HALF) ^ counter[3] ^ k1, p0 & LOW]
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & LOW, (k1 + np.uint64(0xBB67AE85)) & LOW
    return np.stack(counter, axis=1).reshape(-1)[:count]


def _below(words: np.ndarray, limit: int) -> np.ndarray:
    return (words * np.uint64(limit)) >> HALF


def input_row(seed: int, sample: int, parts: Sequence[tuple[int, int | None]]) -> list[np.ndarray]:
    """The inputs of a sample: (size, None) are normal numbers, (size, n) whole ones below n."""
    rows = []
    for place, (size, below) in enumerate(parts):
        needed = size * (2 if below is None else 1)
        words = philox(seed, RANDOM_INPUT, needed, sample=sample, epoch=place)
        rows.append(_normal(words) if below is None else _below(words, below).astype(np.int64))
    return rows


def _normal(words: np.ndarray) -> np.ndarray:
    """By Box and Muller; in double and rounded, as the C library's functions for float nearly are."""
    uniform = (words >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)
    u, v = np.float32(1) - uniform[0::2], uniform[1::2]
    logarithm = np.log(u.astype(np.float64)).astype(np.float32)
    cosine = np.cos((np.float32(2 * math.pi) * v).astype(np.float64)).astype(np.float32)
    return np.sqrt(np.float32(-2) * logarithm) * cosine


def labels(seed: int, sample: int, count: int, classes: int) -> np.ndarray:
    return _below(philox(seed, RANDOM_TARGET, count, sample=sample), classes).astype(np.int64)


def order(seed: int, count: int, epoch: int) -> list[int]:
    """The samples of an epoch, in the order in which they are taken."""
    a = (math.isqrt(count - 1) + 2 if count > 1 else 2) // 2 * 2
    b = -(-count // a)

    def value(step: int, half: int) -> int:
        high, low = philox(seed, SHUFFLE, 2, sample=step << 32 | half, epoch=epoch)
        return int(high) << 32 | int(low)

    def encrypt(x: int) -> int:
        left, right = x % a, x // a
        for step in range(0, 20, 2):
            left = (left + value(step, right)) % a
            right = (right + value(step + 1, left)) % b
        return left + a * right

    places = []
    for position in range(count):
        place = encrypt(position)
        while place >= count:
            place = encrypt(place)
        places.append(place)
    return places
