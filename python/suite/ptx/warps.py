"""Functions of a warp and of a block: shuffles, votes, matches, reductions, barriers, fences, mbarriers."""
# ruff: noqa: D103 - each function yields the rows that its name says.
from itertools import product

from integers import mask
from row import ITEMS, row

WARP = 32


def by_warp(reference):
    """Makes a reference for the lists of a block from a reference for the lists of a warp."""
    def all_warps(*columns):
        parts = [reference(*(c[w:w + WARP] for c in columns)) for w in range(0, len(columns[0]), WARP)]
        if isinstance(parts[0], tuple):
            return tuple([x for part in parts for x in part[k]] for k in range(len(parts[0])))
        return [x for part in parts for x in part]
    return all_warps


def shuffled(mode, c):
    clamp, segment = c & 31, c >> 8 & 31

    def reference(a, b):
        x, p = [], []
        for lane in range(WARP):
            top = lane & segment | clamp & ~segment
            low, by = lane & segment, b[lane] & 31
            j, ok = {"up": (lane - by, lane - by >= top), "down": (lane + by, lane + by <= top), "bfly": (lane ^ by, (lane ^ by) <= top),
                     "idx": (low | by & ~segment, (low | by & ~segment) <= top)}[mode]
            x.append(a[j] if ok else a[lane])
            p.append(ok)
        return x, p
    return reference


def shuffles():
    for mode, c in product(("up", "down", "bfly", "idx"), (0, 31, 0x1803, 0x181f, 0x1c07, 0x1c00, 0x0f, 0x100f, 0x101f)):
        exchange = shuffled(mode, c)
        yield row(f"shfl.sync.{mode}.b32 %x|%y, %a, %b, {c}, -1", "b32 u32", "b32 pred", by_warp(exchange), warp=True)
        yield row(f"shfl.sync.{mode}.b32 %x, %a, %b, {c}, 0xffffffff", "b32 u32", "b32", by_warp(lambda a, b, s=exchange: s(a, b)[0]), warp=True)
        for n in (1, 5, 16, 31):
            yield row(f"shfl.sync.{mode}.b32 %x|%y, %a, {n}, {c}, -1", "b32", "b32 pred",
                      by_warp(lambda a, n=n, s=exchange: s(a, [n] * WARP)), warp=True)
    yield row("shfl.up.b32 %x, %a, 1, 0", "b32", "b32", None)


# The lanes of a warp are in two groups. Each group executes the instruction with its own mask.
def grouped(text):
    """The text, with MASK replaced by the mask of the lanes of a group."""
    return ("{.reg .pred %g; .reg .b32 %m; setp.ne.b16 %g, %e, 0; vote.sync.ballot.b32 %m, %g, -1; @%g bra ONE; not.b32 %m, %m; "
            + text + " bra BOTH; ONE: " + text + " BOTH: bar.warp.sync -1;}").replace("MASK", "%m")


def halves(reference):
    """The results of a warp function if the lanes with an odd group number form one group, and the others form another one."""
    def split(*columns):
        *columns, side = columns
        found = [None] * WARP
        for want in (0, 1):
            lanes = [k for k in range(WARP) if (side[k] != 0) == want]
            for lane, x in zip(lanes, reference(lanes, *([c[k] for k in lanes] for c in columns)), strict=True):
                found[lane] = x
        return [x[0] for x in found] if len(found[0]) == 1 else tuple([x[k] for x in found] for k in range(len(found[0])))
    return by_warp(split)


def bits_of(lanes, flags):
    return sum(1 << lane for lane, f in zip(lanes, flags, strict=True) if f)


VOTES = {"all": all, "any": any, "uni": lambda p: len({bool(x) for x in p}) == 1}


def votes():
    def whole(function):
        return by_warp(lambda *c: (lambda found: found[0] if len(found) == 1 else found)(
            tuple(map(list, zip(*function(list(range(WARP)), *c), strict=True)))))

    def both(text, takes, gives, function):
        yield row(text.replace("MASK", "-1"), takes, gives, whole(function), warp=True)
        split = grouped(text if text.endswith((";", "}")) else text + ";").replace("%e", "%b")
        yield row(split, f"{takes} b16", gives, halves(function), warp=True, limits=lambda *o: [*o[:-1], o[-1] & 1])
    for mode, test in VOTES.items():
        for no in ("", "!"):
            yield from both(f"vote.sync.{mode}.pred %x, {no}%a, MASK", "pred", "pred",
                            lambda lanes, a, t=test, n=no: [(t([bool(x) != (n == "!") for x in a]),)] * len(lanes))
    for no in ("", "!"):
        yield from both(f"vote.sync.ballot.b32 %x, {no}%a, MASK", "pred", "b32",
                        lambda lanes, a, n=no: [(bits_of(lanes, [bool(x) != (n == "!") for x in a]),)] * len(lanes))
    for bits in ("32", "64"):
        one = f"and.b{bits} %a, %a, 3; " if bits == "32" else "and.b64 %a, %a, 0x100000001; "
        cut = 3 if bits == "32" else 0x100000001
        yield from both(f"{one}match.any.sync.b{bits} %x, %a, MASK", f"b{bits}", "b32",
                        lambda lanes, a, cut=cut: [(bits_of(lanes, [y & cut == x & cut for y in a]),) for x in a])
        for divisor in (cut, 0):
            shape = one if divisor else f"and.b{bits} %a, %a, 0; "

            def same(lanes, a, divisor=divisor):
                agree = len({x & divisor for x in a}) == 1
                return [(bits_of(lanes, [1] * len(lanes)) if agree else 0, agree)] * len(lanes)
            yield from both(f"{shape}match.all.sync.b{bits} %x|%y, %a, MASK", f"b{bits}", "b32 pred", same)
    sums = {"add": lambda a: sum(a), "min": min, "max": max}
    for op, ty in product(sums, ("u32", "s32")):
        yield from both(f"redux.sync.{op}.{ty} %x, %a, MASK", ty, ty, lambda lanes, a, f=sums[op]: [(f(a),)] * len(lanes))
    logic = {"and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y}
    for op, f in logic.items():
        def folded(lanes, a, f=f):
            x = a[0]
            for y in a[1:]:
                x = f(x, y)
            return [(x,)] * len(lanes)
        yield from both(f"redux.sync.{op}.b32 %x, %a, MASK", "b32", "b32", folded)
    for op, nan in product(("min", "max"), ("", ".NaN")):
        yield row(f"redux.sync.{op}{nan}.f32 %x, %a, -1", "f32", "f32", None)
    yield row("{.reg .pred %g; setp.ne.b16 %g, %a, 0; mov.b32 %x, 0; @%g activemask.b32 %x; bar.warp.sync -1;}", "b16", "b32",
              None, warp=True, limits=lambda a: [a & 1], note="PTX does not say which lanes run together")
    yield row("{.reg .b32 %m; activemask.b32 %m; bar.warp.sync -1; mov.b32 %x, %m;}", "b32", "b32", lambda a: [mask(32)] * len(a), warp=True)
    yield row("elect.sync %x|%y, -1", "b32", "b32 pred", None)
    yield row("vote.ballot.b32 %x, %a", "pred", "b32", None)


def barriers():
    def exchanged(distance):
        return lambda a: [a[k ^ distance] for k in range(len(a))]

    def across(wait, distance=32):
        text = ("{.reg .b32 %base, %t; st.shared.b32 [%sh], %a; " + wait + f" shl.b32 %t, %i, 7; sub.u32 %base, %sh, %t; xor.b32 %t, %i, {distance}; "
                "mad.lo.u32 %base, %t, 128, %base; ld.shared.b32 %x, [%base];}")
        return row(text, "b32", "b32", exchanged(distance), warp=True)
    for number in ("0", "1", "15"):
        yield across(f"bar.sync {number};")
        yield across(f"bar.sync {number}, {ITEMS};")
        yield across(f"barrier.sync {number};")
        yield across(f"barrier.sync {number}, {ITEMS};")
        yield across(f"barrier.sync.aligned {number};")
        yield across(f"bar.cta.sync {number};")
        yield across(f"barrier.cta.sync.aligned {number}, {ITEMS};")
    yield across("{.reg .b32 %n; mov.b32 %n, 3; add.u32 %n, %n, 4; bar.sync %n;}")
    yield across("{.reg .b32 %n, %c; mov.u32 %c, %ntid.x; mov.b32 %n, 3; bar.sync %n, %c;}")
    # Two barriers are used at once, each by half of the block.
    yield across("{.reg .b32 %n; shr.u32 %n, %i, 7; add.u32 %n, %n, 1; barrier.sync %n, 128;}", 64)
    # One half arrives, and the other half waits.
    for arrive in ("bar.arrive", "barrier.arrive", "barrier.cta.arrive", "barrier.arrive.aligned"):
        wait = arrive.replace("arrive", "sync", 1)
        yield row("{.reg .pred %h; .reg .b32 %base, %t; setp.lt.u32 %h, %i, 128; st.shared.b32 [%sh], %a; "
                  f"@!%h {wait} 1, 256; @%h {arrive} 1, 256; "
                  "shl.b32 %t, %i, 7; sub.u32 %base, %sh, %t; sub.u32 %t, %i, 128; @%h mov.b32 %t, %i; mad.lo.u32 %base, %t, 128, %base; "
                  "ld.shared.b32 %x, [%base];}", "b32", "b32", lambda a: a[:128] * 2, warp=True)
    for name in ("bar.red", "barrier.red", "barrier.red.aligned", "barrier.cta.red"):
        for no, count in product(("", "!"), ("", f", {ITEMS}")):
            yield row(f"{name}.popc.u32 %x, 0{count}, {no}%a", "pred", "u32",
                      lambda a, no=no: [sum(bool(x) != (no == "!") for x in a)] * len(a), warp=True)
            for op, test in (("and", all), ("or", any)):
                yield row(f"{name}.{op}.pred %x, 0{count}, {no}%a", "pred", "pred",
                          lambda a, no=no, test=test: [test([bool(x) != (no == "!") for x in a])] * len(a), warp=True)
    text = ("{.reg .b32 %base, %t; st.shared.b32 [%sh], %a; bar.warp.sync -1; shl.b32 %t, %i, 7; sub.u32 %base, %sh, %t; xor.b32 %t, %i, 5; "
            "mad.lo.u32 %base, %t, 128, %base; ld.shared.b32 %x, [%base];}")
    yield row(text, "b32", "b32", exchanged(5), warp=True)
    # fence.acquire and fence.release need sm_90. ptxas 12.9 accepts them for sm_87, but makes a word of zeros, which is no instruction.
    for fence in ("membar.cta", "membar.gl", "membar.sys",
                  *(f"fence{sem}.{scope}" for sem in ("", ".sc", ".acq_rel") for scope in ("cta", "cluster", "gpu", "sys")),
                  "fence.proxy.alias", "fence.proxy.async", "fence.mbarrier_init.release.cluster", "barrier.cluster.arrive", "barrier.cluster.wait",
                  "griddepcontrol.wait", "griddepcontrol.launch_dependents"):
        yield row(f"st.global.b32 [%out], %a; {fence}; ld.global.b32 %x, [%out]", "b32", "b32", lambda a: a)


def mbarriers():
    """One mbarrier for each thread in its own cell, and one mbarrier for the block."""
    spaces = {"shared": ("", "%sh"), "shared::cta": ("", "%sh"), "": (".reg .b64 %g; cvt.u64.u32 %g, %sh; cvta.shared.u64 %g, %g; ", "%g")}
    for space, (make, at) in spaces.items():
        dot = f".{space}" if space else ""
        begin = "{" + make + f"mbarrier.init{dot}.b64 [{at}], 1; "
        yield row(begin + f".reg .b64 %s; mbarrier.arrive{dot}.b64 %s, [{at}]; mbarrier.test_wait{dot}.b64 %x, [{at}], %s; mbarrier.inval{dot}.b64 [{at}];}}",
                  "", "pred", lambda: True)
        two = begin.replace("], 1", "], 2")
        yield row(two + f".reg .b64 %s, %t; mbarrier.arrive{dot}.b64 %s, [{at}]; mbarrier.test_wait{dot}.b64 %x, [{at}], %s; "
                  f"mbarrier.arrive{dot}.b64 %t, [{at}]; mbarrier.test_wait{dot}.b64 %y, [{at}], %s;}}", "", "pred pred", lambda: (False, True))
        yield row(two + f".reg .b64 %s; mbarrier.arrive.noComplete{dot}.b64 %s, [{at}], 1; mbarrier.test_wait{dot}.b64 %x, [{at}], %s; "
                  f"mbarrier.arrive{dot}.b64 %s, [{at}]; mbarrier.test_wait{dot}.b64 %y, [{at}], %s;}}", "", "pred pred", lambda: (False, True))
        yield row(two + f".reg .b64 %s, %t; mbarrier.arrive_drop{dot}.b64 %s, [{at}]; mbarrier.arrive{dot}.b64 %t, [{at}]; "
                  f"mbarrier.test_wait{dot}.b64 %x, [{at}], %s; mbarrier.arrive{dot}.b64 %t, [{at}]; mbarrier.test_wait{dot}.b64 %y, [{at}], %t;}}",
                  "", "pred pred", lambda: (True, True))
        yield row(two + f".reg .b64 %s; mbarrier.arrive_drop.noComplete{dot}.b64 %s, [{at}], 1; mbarrier.arrive{dot}.b64 %s, [{at}]; "
                  f"mbarrier.test_wait{dot}.b64 %x, [{at}], %s;}}", "", "pred", lambda: True)
        yield row(two + f".reg .b64 %s; .reg .b32 %n; mbarrier.arrive{dot}.b64 %s, [{at}]; mbarrier.pending_count.b64 %x, %s;}}", "", "u32", lambda: 2)
        yield row(two + f".reg .b64 %s; mbarrier.test_wait.parity{dot}.b64 %x, [{at}], 0; mbarrier.arrive{dot}.b64 %s, [{at}]; "
                  f"mbarrier.arrive{dot}.b64 %s, [{at}]; mbarrier.test_wait.parity{dot}.b64 %y, [{at}], 0;}}", "", "pred pred", lambda: (False, True))
        # A copy arrives at the barrier. With .noinc, the barrier already expects this arrival. Without it, NVIDIA's code for sm_87 adds to the count
        # only once for all lanes of a warp, so all these lanes must have the same barrier.
        copy = "st.global.b64 [%out], %a; st.shared.b64 [%sh+16], -1; cp.async.ca.shared.global [%sh+16], [%out], 8; "
        wait = "W: mbarrier.test_wait.parity{d}.b64 %y, [{at}], 0; @!%y bra W; ld.shared.b64 %x, [%sh+16];}}"
        yield row(begin + f"{copy}cp.async.mbarrier.arrive.noinc{dot}.b64 [{at}]; {wait.format(d=dot, at=at)}", "b64", "b64 pred", lambda a: (a, True))
        of_block = ("{.reg .b32 %one; .reg .b64 %s, %g; .reg .pred %first; shl.b32 %one, %i, 7; sub.u32 %one, %sh, %one; cvt.u64.u32 %g, %one; "
                    "cvta.shared.u64 %g, %g; setp.eq.u32 %first, %i, 0; ")
        here = "%one" if space else "%g"
        yield row(f"{of_block}@%first mbarrier.init{dot}.b64 [{here}], {ITEMS}; bar.sync 0; {copy}cp.async.mbarrier.arrive{dot}.b64 [{here}]; "
                  f"mbarrier.arrive{dot}.b64 %s, [{here}]; {wait.format(d=dot, at=here)}", "b64", "b64 pred", lambda a: (a, [True] * ITEMS), warp=True)
        for later in ("mbarrier.try_wait{d}.b64 %x, [{at}], %s", "mbarrier.arrive.expect_tx{d}.b64 %s, [{at}], 8",
                      "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%sh], 8", "mbarrier.test_wait.acquire.cta{d}.b64 %x, [{at}], %s",
                      "mbarrier.arrive.release.cta{d}.b64 %s, [{at}]", "mbarrier.arrive{d}.b64 %s, [{at}], 1"):
            yield row("{.reg .b64 %s; " + make + f"mbarrier.init{dot}.b64 [{at}], 1; mbarrier.arrive{dot}.b64 %s, [{at}]; "
                      + later.format(d=dot, at=at) + ";}", "", "pred", None)


FAMILIES = {"shuffles": shuffles, "votes, matches, reductions": votes, "barriers and fences": barriers, "mbarriers": mbarriers}
