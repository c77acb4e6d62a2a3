"""What the tests of ``magazin files`` put, how, and what they read."""

import random

CHUNK = 261_120


def noise(size, seed=0):
    return random.Random(seed).randbytes(size)


def put(magazin, data, name, *more):
    status, out, err = magazin("put", "-", name, *more, data=data)
    assert (status, err) == (0, "")
    return out.decode().strip()


def lines(out):
    return out.decode().splitlines()
