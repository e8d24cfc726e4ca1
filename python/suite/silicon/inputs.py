"""The inputs of the recorded kernels, which are the same on every machine.

A pool gives the operands of one item as a list of 32-bit words. The first items combine edge values with each other. The others are
random, from a fixed seed.
"""
import random

SINGLES = [0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000,
           0x80800001, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001, 0xff923456,
           0x3f800001, 0x3f7fffff, 0xbf000000, 0x34000000, 0x4b7fffff, 0x1f812345, 0x5f7edcba]
DOUBLES = [0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x0000000000000001,
           0x800fffffffffffff, 0x0010000000000000, 0x8010000000000001, 0x7fefffffffffffff, 0xffefffffffffffff,
           0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0xfff8123456789abc, 0x7ff0000000000001,
           0xfff4fedcba987654, 0x3ff0000000000001, 0x3fefffffffffffff, 0xbfe0000000000000, 0x3cb0000000000000,
           0x433fffffffffffff, 0x1ff123456789abcd, 0x5fedcba987654321]
HALVES = [0x0000, 0x8000, 0x3c00, 0xbc00, 0x0001, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x8401, 0x7bff, 0xfbff, 0x7c00, 0xfc00,
          0x7e00, 0xfe12, 0x7c01, 0xfd23, 0x3c01, 0x3bff, 0xb800, 0x1000, 0x63ff, 0x0a12, 0x5edc]
BRAINS = [x >> 16 for x in SINGLES] + [0x0001, 0x8001, 0x7f81, 0x3f81, 0xff92]
WORDS = [0, 1, 2, 7, 8, 15, 16, 31, 32, 33, 63, 64, 127, 128, 255, 256, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffffff,
         0x80000000, 0x80000001, 0xffffffff, 0xfffffffe, 0xffffff80, 0xffff8000, 0x80ff7f01, 0x01020304]
LONGS = [0, 1, 2, 31, 32, 33, 63, 64, 65, 0xff, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffffffff,
         0x8000000000000000, 0x8000000000000001, 0xffffffffffffffff, 0xfffffffffffffffe, 0xffffffff80000000,
         0xffffffff00000000, 0x0123456789abcdef, 0xfedcba9876543210]
# The values at which conversions to integers change.
TURNS = [0x3f000000, 0x3fc00000, 0x40200000, 0xbfc00000, 0x42fe0000, 0x42ff0000, 0x43000000, 0xc3000000, 0xc3008000,
         0x437f0000, 0x437f8000, 0x43800000, 0x46fffe00, 0x47000000, 0xc7000000, 0xc7000100, 0x477fff00, 0x477fff80,
         0x47800000, 0x4effffff, 0x4f000000, 0xcf000000, 0xcf000001, 0x4f7fffff, 0x4f800000, 0x5effffff, 0x5f000000,
         0xdf000000, 0xdf000001, 0x5f7fffff, 0x5f800000, 0xbf7fffff, 0xbf000001, 0x477fefff, 0x477ff000, 0x38800000,
         0x387fffff, 0x33000000, 0x33000001, 0x7f7f7fff, 0x7f7f8000, 0x3f801000, 0x3f803000, 0x3f808000, 0x3f818000]


def _single(rng):
    form = rng.randrange(4)
    if form == 0:
        return rng.getrandbits(32)
    spread = (4, 24, 60)[form - 1]
    return rng.getrandbits(1) << 31 | (127 + rng.randint(-spread, spread)) << 23 | rng.getrandbits(23)


def _double(rng):
    form = rng.randrange(4)
    if form == 0:
        return rng.getrandbits(64)
    spread = (4, 53, 600)[form - 1]
    return rng.getrandbits(1) << 63 | (1023 + rng.randint(-spread, spread)) << 52 | rng.getrandbits(52)


def _half(rng):
    if rng.randrange(3) == 0:
        return rng.getrandbits(16)
    return rng.getrandbits(1) << 15 | (15 + rng.randint(-6, 6)) << 10 | rng.getrandbits(10)


def _brain(rng):
    if rng.randrange(3) == 0:
        return rng.getrandbits(16)
    return rng.getrandbits(1) << 15 | (127 + rng.randint(-10, 10)) << 7 | rng.getrandbits(7)


def _word(rng):
    form = rng.randrange(3)
    return rng.getrandbits(32) if form else rng.getrandbits(rng.randint(1, 32))


def _long(rng):
    form = rng.randrange(3)
    return rng.getrandbits(64) if form else rng.getrandbits(rng.randint(1, 64))


def _combined(edges, draw, count, operands, rng):
    """Combines every pair of edge values in the first two operands, while the other operands take turns. Then come random operands, some
    of them edge values.
    """
    size = len(edges)
    for i in range(count):
        if i < size * size:
            yield [edges[(i % size, i // size, i % size * 7 + i // size * 3)[k] % size] for k in range(operands)]
        else:
            yield [rng.choice(edges) if rng.randrange(8) == 0 else draw(rng) for _ in range(operands)]


def _packed(edges, draw, count, operands, rng):
    """Packs two halves into a word. The upper halves take the edge values in another order."""
    low, high = _combined(edges, draw, count, operands, rng), list(_combined(edges, draw, count, operands, rng))
    for i, halves in enumerate(low):
        yield [x | high[(i * 5 + 3) % count][k] << 16 for k, x in enumerate(halves)]


def _wide(edges, draw, count, operands, rng):
    for item in _combined(edges, draw, count, operands, rng):
        yield [word for x in item for word in (x & 0xffffffff, x >> 32)]


def _unary(count, rng):
    """One single: edge values, every exponent, the values at which conversions change, and their neighbours."""
    values = list(dict.fromkeys(SINGLES + TURNS + [x ^ 1 << 31 for x in TURNS]))
    values += [sign << 31 | e << 23 | m for sign in (0, 1) for e in range(0, 256, 3) for m in (0, 0x2aaaab)]
    values += [x + 1 for x in TURNS]
    while len(values) < count:
        values.append(_single(rng))
    return [[x] for x in values[:count]]


def _unary_double(count, rng):
    def widen(x):
        exponent, rest = x >> 23 & 255, (x & 0x7fffff) << 29
        wide = 0x7ff if exponent == 255 else exponent + 896 if exponent else 0
        return x >> 31 << 63 | wide << 52 | rest
    values = DOUBLES + [widen(x) for x in TURNS] + [widen(x) | 1 for x in TURNS] + [widen(x) - 1 for x in TURNS]
    values += [sign << 63 | e << 52 | m for sign in (0, 1) for e in range(0, 2048, 41) for m in (0, 0xaaaaaaaaaaaab)]
    values += [sign << 63 | (1023 + e) << 52 | m for sign in (0, 1) for e in range(-160, 140, 8) for m in (0, 0x5555555555555)]
    while len(values) < count:
        values.append(_double(rng))
    return [[x & 0xffffffff, x >> 32] for x in values[:count]]


def _angles(count, rng):
    """Singles in the ranges that elementary functions use."""
    values = list(SINGLES) + [sign << 31 | e << 23 | m for sign in (0, 1) for e in range(0, 256, 2) for m in (0, 0x123456)]
    while len(values) < count:
        values.append(rng.getrandbits(1) << 31 | (127 + rng.randint(-8, 8)) << 23 | rng.getrandbits(23))
    return [[x, (values[i * 7 % len(values)])] for i, x in enumerate(values[:count])]


def _all_halves(count, rng):
    """`count` halves that are spread over all halves, with every edge value."""
    values = HALVES + [(i * 65521) & 0xffff for i in range(count)]
    return [[x | values[-1 - i] << 16] for i, x in enumerate(values[:count])]


def _lanes(count, rng):
    """Values that lanes exchange with each other, a lane or a distance, and a mask."""
    for i in range(count):
        yield [rng.choice((7, 7, 0xffffffff, 0x80000000, rng.getrandbits(32))) if i % 64 < 32 else rng.getrandbits(2),
               rng.choice((0, 1, 2, 5, 8, 16, 31, 32, 33, 63, 0xffffffff, rng.getrandbits(5))),
               rng.getrandbits(32), rng.getrandbits(1)]


POOLS = {
    "single": lambda n, rng: _combined(SINGLES, _single, n, 3, rng),
    "double": lambda n, rng: _wide(DOUBLES, _double, n, 3, rng),
    "half": lambda n, rng: _packed(HALVES, _half, n, 3, rng),
    "brain": lambda n, rng: _packed(BRAINS, _brain, n, 3, rng),
    "word": lambda n, rng: _combined(WORDS, _word, n, 3, rng),
    "long": lambda n, rng: _wide(LONGS, _long, n, 3, rng),
    "one_single": _unary,
    "one_double": _unary_double,
    "one_half": _all_halves,
    "angle": _angles,
    "lane": _lanes,
}


def items(pool, count):
    """The operands of `count` items, as a list of lists of words."""
    made = list(POOLS[pool](count, random.Random(pool)))
    assert len(made) == count
    return made
