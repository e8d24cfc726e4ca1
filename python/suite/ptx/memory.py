"""Loads and stores of every space, type, width, order, scope and cache hint; address spaces; asynchronous copies; cache control."""
# ruff: noqa: D103 - each function yields the rows that its name says.
from itertools import product

from integers import mask, signed
from row import row

TYPES = [f"{letter}{bits}" for letter in "bus" for bits in (8, 16, 32, 64)] + ["f32", "f64", "b128"]
HELD = {"8": "b32", "16": "b16", "32": "b32", "64": "b64"}
SCOPES = ("cta", "cluster", "gpu", "sys")
# Memory that is only read: 256 bytes, the same in every run. `%common` is its address.
COMMON = bytes((37 * k + 11) & 255 for k in range(256))
POLICY = "{.reg .b64 %policy; createpolicy.fractional.L2::evict_first.b64 %policy, 1.0; "
# PTX that fills the thread's cell from two registers. The loads then read the cell.
FILL = "st.{space}.b64 [{at}], %a; st.{space}.b64 [{at}+8], %b; st.{space}.b64 [{at}+16], %c; st.{space}.b64 [{at}+24], %e; "
AT = {"global": "%out", "shared": "%sh", "local": "%lo"}
LEVELS = ["L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate"]
PREFETCH = ["L2::64B", "L2::128B", "L2::256B"]


def ordered(sem):
    """The orders that name a scope, and those that do not."""
    return ["", "weak", "volatile", *(f"{s}.{scope}" for s in ("relaxed", sem) for scope in SCOPES), "mmio.relaxed.sys"]


def vectors(ty):
    return [n for n in (1, 2, 4, 8) if n * int(ty[1:]) <= 128 or n == 8 and ty[1:] == "32" or n == 4 and ty[1:] == "64"]


def registers(count, names="xyzw"):
    one = ", ".join("%" + n for n in names[:count])
    return one if count == 1 else "{" + one + "}"


def extended(data, ty, at):
    """An element of memory in a register, which may be wider."""
    bits = int(ty[1:])
    x = data >> 8 * at & mask(bits)
    return signed(x, bits) if ty[0] == "s" else x


def elements(ty, count, at):
    def reference(a, b, c, e):
        data = a | b << 64 | c << 128 | e << 192
        found = tuple(extended(data, ty, at + k * int(ty[1:]) // 8) for k in range(count))
        return found if count > 1 else found[0]
    return reference


def offsets(ty, count):
    size = count * int(ty[1:]) // 8
    return (0,) if size >= 16 else (size,)


def load_rows(space, stem, operand, before, after=""):
    """Loads from the thread's cell, with `stem` and every type and width."""
    for ty in TYPES:
        for count in vectors(ty):
            if ty == "b128" or count == 8:
                continue
            held = {"f32": "f32", "f64": "f64"}.get(ty, HELD[ty[1:]] if ty[0] != "f" else "")
            gives = " ".join([held if held[0] != "f" else ty] * count)
            for at in offsets(ty, count):
                vector = f".v{count}" if count > 1 else ""
                text = f"{before}{stem}{vector}.{ty} {registers(count)}, [{operand}+{at}]{after}"
                yield row(text, "b64 b64 b64 b64", gives, elements(ty, count, at), values=bitwise, shaped=False)


def bitwise(got, want):
    """Loads of floats, which must not change any bits. They are extended to 64 bits at most."""
    return any(got == want & mask(bits) for bits in (16, 32, 64))


def hinted(order, more):
    return ".".join(p for p in (order, *more) if p)


def loads():
    for space in AT:
        fill = FILL.format(space=space, at=AT[space])
        for order in ordered("acquire"):
            yield from load_rows(space, "ld." + hinted(order, (space,)), AT[space], fill)
        if space == "shared":
            yield from load_rows(space, "ld.shared::cta", AT[space], fill)
        for cop in ("ca", "cg", "cs", "lu", "cv"):
            yield from load_rows(space, f"ld.{space}.{cop}", AT[space], fill)
    fill = FILL.format(space="global", at="%out")
    for hint in [*LEVELS, *PREFETCH, "L1::evict_first.L2::128B", "L2::evict_first", "L2::evict_last"]:
        yield from load_rows("global", f"ld.global.{hint}", "%out", fill)
    yield from load_rows("global", "ld.global.L2::cache_hint", "%out", POLICY + fill, ", %policy;}")
    yield from load_rows("global", "ld.global.L1::evict_last.L2::cache_hint.L2::256B", "%out", POLICY + fill, ", %policy;}")


def widest():
    """Loads and stores of 128 bits in one register, and of 256 bits, which only later generations have."""
    both = "b64 b64"
    for space, at in AT.items():
        for order in ("", ".volatile", ".relaxed.gpu", ".acquire.sys"):
            if space != "global" and order:
                continue
            yield row(f"{{.reg .b128 %q; st.{space}.b64 [{at}], %a; st.{space}.b64 [{at}+8], %b; ld{order}.{space}.b128 %q, [{at}]; "
                      "mov.b128 {%x, %y}, %q;}", both, both, lambda a, b: (a, b), shaped=False)
        for order in ("", ".volatile", ".relaxed.gpu", ".release.sys"):
            if space != "global" and order:
                continue
            yield row(f"{{.reg .b128 %q; mov.b128 %q, {{%a, %b}}; st{order}.{space}.b128 [{at}], %q; ld.{space}.b64 %x, [{at}]; "
                      f"ld.{space}.b64 %y, [{at}+8];}}", both, both, lambda a, b: (a, b), shaped=False)
    for op in ("exch", "cas"):
        more = ", %r" if op == "cas" else ""
        yield row(f"{{.reg .b128 %p, %q, %r; mov.b128 %q, {{%a, %b}}; mov.b128 %r, %q; atom.global.{op}.b128 %p, [%out], %q{more};}}", both, both, None)
    eight = "{" + ", ".join(f"%v{k}" for k in range(8)) + "}"
    for ty in ("b32", "f32", "u32"):
        yield row(f"{{.reg .{ty} %v<8>; ld.global.v8.{ty} {eight}, [%out]; st.global.v8.{ty} [%out], {eight};}}", "", "b32", None)
    yield row("{.reg .b64 %v<4>; ld.global.v4.b64 {%v0, %v1, %v2, %v3}, [%out]; st.global.v4.b64 [%out], {%v0, %v1, %v2, %v3};}", "", "b32", None)


def generic_loads():
    for space, at in AT.items():
        wide = "cvt.u64.u32 %g, %sh; cvta.shared.u64 %g, %g; " if space == "shared" else f"cvta.{space}.u64 %g, {at}; "
        fill = "{.reg .b64 %g; " + wide + FILL.format(space=space, at=at)
        for order in ("", "volatile", "relaxed.gpu", "acquire.sys"):
            yield from load_rows(space, "ld." + order if order else "ld", "%g", fill, ";}")
        for cop in ("ca", "cg", "cs", "cv"):
            yield from load_rows(space, f"ld.{cop}", "%g", fill, ";}")


def constants():
    """Loads of memory that is only read: `.nc`, `ldu`, constant banks and parameters."""
    def from_common(stem, operand, declares="", before="", after=""):
        for ty in TYPES:
            for count in vectors(ty):
                if ty == "b128" or count == 8 or int(ty[1:]) * count > 128:
                    continue
                size = int(ty[1:]) * count // 8

                def reference(a, ty=ty, count=count, size=size):
                    base = 16 * (a % 8) + 16 - size
                    data = int.from_bytes(COMMON, "little")
                    found = tuple(extended(data, ty, base + k * int(ty[1:]) // 8) for k in range(count))
                    return found if count > 1 else found[0]
                held = ty if ty in ("f32", "f64") else HELD[ty[1:]]
                vector = f".v{count}" if count > 1 else ""
                address = ("{.reg .b64 %g; and.b32 %lane, %a, 7; mul.wide.u32 %g, %lane, 16; " + before +
                           f"{stem}{vector}.{ty} {registers(count)}, [%g+{16 - size}]{after};}}")
                yield row(address, "u32", " ".join([held] * count), reference, values=bitwise, shaped=False, declares=declares)
    near = "add.u64 %g, %g, %common; "
    for more in ["", "ca", "cg", "cs", *LEVELS, *PREFETCH]:
        yield from from_common(f"ld.global.nc.{more}" if "::" in more else hinted("ld.global", (more, "nc")), "%g", before=near)
    yield from from_common("ldu.global", "%g", before=near)
    yield from from_common("ldu", "%g", before=near + "cvta.global.u64 %g, %g; ")
    table = ".const .align 16 .b8 constants_{n}[256] = {" + ", ".join(map(str, COMMON)) + "};"
    base = "{.reg .b64 %t; mov.u64 %t, constants_{n}; add.u64 %g, %g, %t;} "
    yield from from_common("ld.const", "%g", declares=table, before=base)
    yield from from_common("ld", "%g", declares=table, before="{.reg .b64 %t; mov.u64 %t, constants_{n}; cvta.const.u64 %t, %t; add.u64 %g, %g, %t;} ")
    yield from from_common("ld.volatile.const", "%g", declares=table, before=base)
    # The address of the common block is a parameter of the kernel. It is read in parts.
    for ty in ("b8", "u16", "s32", "b64"):
        yield row(f"{{.reg .{'b64' if ty == 'b64' else 'b16' if ty == 'u16' else 'b32'} %p; .reg .b64 %q; ld.param.{ty} %p, [p_a]; "
                  f"ld.param::entry.{ty} %p, [p_a]; mov.b64 %x, 1;}}", "b64", "b64", lambda a: 1)


def stored(ty, count, at):
    def reference(a, b, c, e):
        bits = int(ty[1:])
        values = (a, b, c, e)[:count]
        data = int.from_bytes(b"\xa5" * 32, "little")
        for k, x in enumerate(values):
            place = 8 * at + k * bits
            data = data & ~(mask(bits) << place) | (x & mask(bits)) << place
        return tuple(data >> 64 * k & mask(64) for k in range(4))
    return reference


PAINT = "{{.reg .b64 %f; mov.b64 %f, 0xa5a5a5a5a5a5a5a5; st.{s}.b64 [{at}], %f; st.{s}.b64 [{at}+8], %f; st.{s}.b64 [{at}+16], %f; st.{s}.b64 [{at}+24], %f;}} "
READ = " ld.{s}.b64 %x, [{at}]; ld.{s}.b64 %y, [{at}+8]; ld.{s}.b64 %z, [{at}+16]; ld.{s}.b64 %w, [{at}+24];"


def store_rows(space, stem, operand, before="", after="", policy=""):
    at_cell = AT[space]
    for ty in TYPES:
        for count in vectors(ty):
            if ty == "b128" or count == 8:
                continue
            kind = ty if ty in ("f32", "f64") else HELD[ty[1:]]
            takes = " ".join([kind] * 4)
            at = offsets(ty, count)[0]
            vector = f".v{count}" if count > 1 else ""
            text = (PAINT.format(s=space, at=at_cell) + before + f"{stem}{vector}.{ty} [{operand}+{at}], {registers(count, 'abce')}{policy};"
                    + after + READ.format(s=space, at=at_cell))
            yield row(text, takes, "b64 b64 b64 b64", stored(ty, count, at), shaped=False)


def stores():
    for space in AT:
        for order in ordered("release"):
            yield from store_rows(space, "st." + hinted(order, (space,)), AT[space])
        for cop in ("wb", "cg", "cs", "wt"):
            yield from store_rows(space, f"st.{space}.{cop}", AT[space])
    yield from store_rows("shared", "st.shared::cta", "%sh")
    for hint in [*LEVELS, "L2::evict_first"]:
        yield from store_rows("global", f"st.global.{hint}", "%out")
    yield from store_rows("global", "st.global.L2::cache_hint", "%out", POLICY, "}", ", %policy")
    for space, at in AT.items():
        wide = "cvt.u64.u32 %g, %sh; cvta.shared.u64 %g, %g; " if space == "shared" else f"cvta.{space}.u64 %g, {at}; "
        for order in ("", "volatile", "relaxed.gpu", "release.sys", "wt", "cs"):
            yield from store_rows(space, "st." + order if order else "st", "%g", "{.reg .b64 %g; " + wide, "}")


def spaces():
    for space in ("global", "shared", "local", "const", "param", "shared::cta", "shared::cluster"):
        for other, at in AT.items():
            wide = "cvt.u64.u32 %g, %sh; cvta.shared.u64 %g, %g; " if other == "shared" else f"cvta.{other}.u64 %g, {at}; "
            yield row("{.reg .b64 %g; " + wide + f"isspacep.{space} %x, %g;}}", "", "pred", lambda s=space, o=other: s.split(":")[0] == o)
    for space, at in AT.items():
        size = "u32" if space == "shared" else "u64"
        go = f"cvta.{space}.u64 %g, {at}; " if size == "u64" else "cvt.u64.u32 %g, %sh; cvta.shared.u64 %g, %g; "
        yield row("{.reg .b64 %g, %h, %i64; " + go + f"cvta.to.{space}.u64 %h, %g; "
                  + (f"st.{space}.b64 [{at}], %a; ld.{space}.b64 %x, [%h];}}"), "b64", "b64", lambda a: a)
    yield row("prefetch.global.L1 [%out]; prefetch.global.L2 [%out]; prefetch.local.L1 [%lo]; prefetch.local.L2 [%lo]; prefetchu.L1 [%out]; "
              "mov.b32 %x, %a", "b32", "b32", lambda a: a)
    for text in ("prefetch.L1 [%out]", "prefetch.L2 [%out]", "prefetch.global.L2::evict_last [%out]", "prefetch.global.L2::evict_normal [%out]",
                 "applypriority.global.L2::evict_normal [%g], 128", "discard.global.L2 [%g], 128", "applypriority.L2::evict_normal [%g], 128"):
        yield row("{.reg .b64 %g; and.b64 %g, %out, -128; " + text + "; mov.b32 %x, %a;}", "b32", "b32", lambda a: a)
    for first, second in product(("evict_last", "evict_normal", "evict_first", "evict_unchanged"), ("", "evict_first", "evict_unchanged")):
        more = f".L2::{second}" if second else ""
        yield row("{.reg .b64 %p; createpolicy.fractional.L2::" + first + more + ".b64 %p, 0.5; st.global.b32 [%out], %a; "
                  "ld.global.L2::cache_hint.b32 %x, [%out], %p;}", "b32", "b32", lambda a: a)
        yield row("{.reg .b64 %p; createpolicy.range.global.L2::" + first + more + ".b64 %p, [%out], 4096, 8192; st.global.b32 [%out], %a; "
                  "ld.global.L2::cache_hint.b32 %x, [%out], %p;}", "b32", "b32", lambda a: a)
    yield row("{.reg .b64 %p; createpolicy.cvt.L2.b64 %p, 0x1; mov.b32 %x, %a;}", "b32", "b32", lambda a: a)


def copies():
    """`cp.async` of every size, with ignored and zero-filled parts."""
    wait = {"all": "cp.async.wait_all; ", "group": "cp.async.commit_group; cp.async.wait_group 0; "}
    stage = "st.global.b64 [%out], %a; st.global.b64 [%out+8], %b; st.shared.b64 [%sh], -1; st.shared.b64 [%sh+8], -1; "
    read = "ld.shared.b64 %x, [%sh]; ld.shared.b64 %y, [%sh+8]"

    def copied(size, filled):
        def reference(a, b, *_):
            data = (a | b << 64) & mask(8 * filled)
            whole = data | (mask(128) & ~mask(8 * size))
            return whole & mask(64), whole >> 64
        return reference
    for (way, size), how, space in product((("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)), wait, ("shared", "shared::cta")):
        for hint in ("", *("." + p for p in PREFETCH)):
            stem = f"cp.async.{way}.{space}.global{hint}"
            yield row(f"{stage}{stem} [%sh], [%out], {size}; {wait[how]}{read}", "b64 b64", "b64 b64", copied(size, size), shaped=False)
        for filled in sorted({0, 1, size // 2, size - 1, size}):
            yield row(f"{stage}cp.async.{way}.{space}.global [%sh], [%out], {size}, {filled}; {wait[how]}{read}", "b64 b64", "b64 b64",
                      copied(size, filled), shaped=False)
        for no in ("", "!"):
            yield row(f"{stage}cp.async.{way}.{space}.global [%sh], [%out], {size}, {no}%c; {wait[how]}{read}", "b64 b64 pred", "b64 b64",
                      lambda a, b, c, size=size, no=no: copied(size, 0 if bool(c) != (no == "!") else size)(a, b), shaped=False)
        yield row(stage + POLICY + f"cp.async.{way}.{space}.global.L2::cache_hint [%sh], [%out], {size}, %policy;}} {wait[how]}{read}",
                  "b64 b64", "b64 b64", copied(size, size), shaped=False)
    yield row("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%sh], [%out], 16, [%sh]", "", "b32", None)
    yield row("cp.async.bulk.commit_group", "", "b32", None)


FAMILIES = {"loads": loads, "loads and stores of 128 bits": widest, "generic loads": generic_loads, "constant loads": constants, "stores": stores, "address spaces": spaces,
            "cp.async": copies}
