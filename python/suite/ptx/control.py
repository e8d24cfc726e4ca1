"""Control flow, functions, special registers, stacks, and instructions without a result."""
# ruff: noqa: D103 - each function yields the rows that its name says.
from itertools import product

from integers import mask
from row import ITEMS, row


def branches():
    yield row("{.reg .pred %p; setp.lt.u32 %p, %a, 1000; mov.b32 %x, 1; @%p bra OVER; mov.b32 %x, 2; OVER: }", "u32", "b32",
              lambda a: 1 if a < 1000 else 2)
    yield row("{.reg .pred %p; setp.lt.u32 %p, %a, 1000; mov.b32 %x, 1; @!%p bra.uni OVER; mov.b32 %x, 2; OVER: bar.warp.sync -1; }", "u32", "b32",
              lambda a: [2] * len(a), warp=True, limits=lambda a: [a % 1000])
    yield row("{.reg .b32 %n; .reg .pred %p; and.b32 %n, %a, 63; mov.b32 %x, 0; AGAIN: setp.eq.u32 %p, %n, 0; @%p bra DONE; "
              "add.u32 %x, %x, %n; sub.u32 %n, %n, 1; bra AGAIN; DONE: }", "u32", "b32", lambda a: sum(range((a & 63) + 1)))
    table = "TABLE: .branchtargets ONE, TWO, THREE, FOUR; "
    arms = "ONE: mov.b32 %x, 11; bra END; TWO: mov.b32 %x, 22; bra END; THREE: mov.b32 %x, 33; bra END; FOUR: mov.b32 %x, 44; END: }"
    for uni in ("", ".uni"):
        pick = "{.reg .b32 %n; and.b32 %n, %a, 3; " if not uni else "{.reg .b32 %n; shr.u32 %n, %i, 5; and.b32 %n, %n, 3; "
        yield row(f"{pick}{table}brx.idx{uni} %n, TABLE; {arms}", "u32", "b32",
                  (lambda a: [11 * (k // 32 % 4 + 1) for k in range(ITEMS)]) if uni else (lambda a: 11 * ((a & 3) + 1)), warp=bool(uni))
    yield row("{.reg .pred %p; setp.lt.u32 %p, %a, 1000; mov.b32 %x, 7; @%p bra SIDE; bra END; SIDE: bra MORE; MORE: mov.b32 %x, 9; END: }",
              "u32", "b32", lambda a: 9 if a < 1000 else 7)
    # The barrier does not wait for lanes that have left.
    yield row("{.reg .pred %p; .reg .b64 %w; setp.lt.u32 %p, %a, 0x80000000; mov.b64 %w, 77; @!%p st.global.b64 [%results], %w; @!%p exit; "
              "mov.b32 %x, 5; bar.sync 0; }", "u32", "b32", lambda a: [5 if x < 1 << 31 else 77 for x in a], warp=True)
    yield row("{.reg .pred %p; .reg .b64 %w; setp.lt.u32 %p, %a, 0x80000000; mov.b64 %w, 78; @!%p st.global.b64 [%results], %w; @!%p ret; "
              "mov.b32 %x, 6; }", "u32", "b32", lambda a: [6 if x < 1 << 31 else 78 for x in a], warp=True)


ADD = ".func (.reg .b32 %r) sum_{n} (.reg .b32 %p, .reg .b32 %q) {{ add.u32 %r, %p, %q; ret; }} "
PARAMETERS = (".func (.param .b32 r) both_{n} (.param .b32 p, .param .align 8 .b8 q[16]) { .reg .b32 %v, %w; .reg .b64 %d; ld.param.b32 %v, [p]; "
              "ld.param.b64 %d, [q+8]; cvt.u32.u64 %w, %d; mul.lo.u32 %v, %v, %w; ld.param.b32 %w, [q]; add.u32 %v, %v, %w; "
              "st.param.b32 [r], %v; ret; } ")
FACTORIAL = (".func (.param .b32 r) factorial_{n} (.param .b32 p) { .reg .b32 %v, %w; .reg .pred %z; ld.param.b32 %v, [p]; setp.lt.u32 %z, %v, 2; "
             "mov.b32 %w, 1; @%z bra OUT; sub.u32 %w, %v, 1; { .param .b32 a; .param .b32 b; st.param.b32 [a], %w; call (b), factorial_{n}, (a); "
             "ld.param.b32 %w, [b]; } mul.lo.u32 %w, %w, %v; OUT: st.param.b32 [r], %w; ret; } ")
TWO = (".func (.param .b32 r) twice_{n} (.param .b32 p) { .reg .b32 %v; ld.param.b32 %v, [p]; shl.b32 %v, %v, 1; st.param.b32 [r], %v; ret; } "
       ".func (.param .b32 r) thrice_{n} (.param .b32 p) { .reg .b32 %v; ld.param.b32 %v, [p]; mul.lo.u32 %v, %v, 3; st.param.b32 [r], %v; ret; } ")


def factorial(n):
    return n * factorial(n - 1) & mask(32) if n > 1 else 1


def calls():
    yield row("call (%x), sum_{n}, (%a, %b)", "b32 b32", "b32", lambda a, b: a + b, declares=ADD.replace("{{", "{").replace("}}", "}"))
    pass_ = ("{.param .b32 p; .param .align 8 .b8 q[16]; .param .b32 r; .reg .b64 %w; st.param.b32 [p], %a; st.param.b32 [q], %b; "
             "st.param.b32 [q+4], 0; cvt.u64.u32 %w, %c; st.param.b64 [q+8], %w; call (r), both_{n}, (p, q); ld.param.b32 %x, [r];}")
    yield row(pass_, "b32 b32 b32", "b32", lambda a, b, c: a * c + b, declares=PARAMETERS)
    yield row(pass_.replace("call ", "call.uni "), "b32 b32 b32", "b32", lambda a, b, c: a * c + b, declares=PARAMETERS)
    yield row("{.param .b32 p; .param .b32 r; .reg .b32 %w; and.b32 %w, %a, 7; st.param.b32 [p], %w; call (r), factorial_{n}, (p); ld.param.b32 %x, [r];}",
              "b32", "b32", lambda a: factorial(a & 7), declares=FACTORIAL)
    yield row("{.reg .pred %p; setp.lt.u32 %p, %a, 0x10000; mov.b32 %x, 0; @!%p bra OVER; {.param .b32 p; .param .b32 r; .reg .b32 %w; "
              "and.b32 %w, %a, 7; st.param.b32 [p], %w; call (r), factorial_{n}, (p); ld.param.b32 %x, [r];} OVER: }",
              "b32", "b32", lambda a: factorial(a & 7) if a < 0x10000 else 0, declares=FACTORIAL)
    indirect = ("{.reg .b64 %f, %g; .reg .pred %p; mov.u64 %f, twice_{n}; mov.u64 %g, thrice_{n}; setp.lt.u32 %p, %a, 0x10000; "
                "selp.b64 %f, %f, %g, %p; PROTO: .callprototype (.param .b32 _) _ (.param .b32 _); {.param .b32 p; .param .b32 r; "
                "st.param.b32 [p], %a; call (r), %f, (p), PROTO; ld.param.b32 %x, [r];}}")
    yield row(indirect, "b32", "b32", lambda a: 2 * a if a < 0x10000 else 3 * a, declares=TWO)
    yield row(indirect.replace("PROTO: .callprototype (.param .b32 _) _ (.param .b32 _);", "PROTO: .calltargets twice_{n}, thrice_{n};"),
              "b32", "b32", lambda a: 2 * a if a < 0x10000 else 3 * a, declares=TWO)


def stacks():
    yield row("{.reg .b64 %p, %q; .reg .b32 %n; and.b32 %n, %a, 15; add.u32 %n, %n, 1; shl.b32 %n, %n, 3; cvt.u64.u32 %q, %n; "
              "alloca.u64 %p, %q, 16; cvta.to.local.u64 %p, %p; st.local.b32 [%p], %b; st.local.b32 [%p+4], %a; ld.local.b32 %x, [%p];}",
              "b32 b32", "b32", lambda a, b: b)
    yield row("{.reg .b64 %s, %p; stacksave.u64 %s; alloca.u64 %p, 64, 16; stackrestore.u64 %s; mov.b32 %x, %a;}", "b32", "b32", lambda a: a)
    yield row("{.local .align 4 .b8 many[64]; .reg .b64 %p, %q; .reg .b32 %n; mov.u64 %p, many; and.b32 %n, %a, 15; mul.wide.u32 %q, %n, 4; "
              "add.u64 %p, %p, %q; st.local.b32 [%p], %b; ld.local.b32 %x, [%p];}", "b32 b32", "b32", lambda a, b: b)


LANE_MASKS = {"eq": lambda k: 1 << k, "lt": lambda k: mask(k), "le": lambda k: mask(k + 1), "gt": lambda k: mask(32) & ~mask(k + 1),
              "ge": lambda k: mask(32) & ~mask(k)}


def special():
    each = {f"%lanemask_{name}": f for name, f in LANE_MASKS.items()}
    for name, f in each.items():
        yield row(f"mov.u32 %x, {name}", "b32", "b32", lambda a, f=f: [f(k % 32) for k in range(ITEMS)], warp=True)
    known = {"%tid.x": range(ITEMS), "%tid.y": [0] * ITEMS, "%tid.z": [0] * ITEMS, "%ntid.x": [ITEMS] * ITEMS, "%ntid.y": [1] * ITEMS,
             "%ntid.z": [1] * ITEMS, "%laneid": [k % 32 for k in range(ITEMS)], "%ctaid.x": [0] * ITEMS, "%ctaid.y": [0] * ITEMS,
             "%ctaid.z": [0] * ITEMS, "%nctaid.x": [1] * ITEMS, "%nctaid.y": [1] * ITEMS, "%nctaid.z": [1] * ITEMS}
    for name, values in known.items():
        yield row(f"mov.u32 %x, {name}", "b32", "b32", lambda a, values=values: list(values), warp=True)
        if "." in name:
            yield row(f"{{.reg .b16 %h; mov.u16 %h, {name}; cvt.u32.u16 %x, %h;}}", "b32", "b32", lambda a, values=values: list(values), warp=True)
    below = {"%warpid": 64, "%nwarpid": 65, "%smid": 64, "%nsmid": 65}
    for name, most in below.items():
        yield row(f"{{.reg .pred %p; mov.u32 %x, {name}; setp.lt.u32 %p, %x, {most}; selp.u32 %x, 1, 0, %p;}}", "b32", "b32", lambda a: [1] * ITEMS,
                  warp=True)
    for name in ("%clock", "%clock_hi"):
        yield row(f"{{.reg .b32 %p; .reg .pred %q; mov.u32 %p, {name}; mov.u32 %x, {name}; setp.ge.u32 %q, %x, %p; selp.u32 %x, 1, 0, %q;}}",
                  "b32", "b32", lambda a: 1)
    for name in ("%clock64", "%globaltimer"):
        yield row(f"{{.reg .b64 %p, %r; .reg .pred %q; mov.u64 %p, {name}; mov.u64 %r, {name}; setp.ge.u64 %q, %r, %p; selp.u32 %x, 1, 0, %q;}}",
                  "b32", "b32", lambda a: 1)
    for name, width in (("%gridid", 64), ("%globaltimer_lo", 32), ("%globaltimer_hi", 32), ("%total_smem_size", 32), ("%aggr_smem_size", 32),
                        ("%dynamic_smem_size", 32), ("%is_explicit_cluster", 1), ("%clusterid.x", 32), ("%nclusterid.x", 32), ("%cluster_ctaid.x", 32),
                        ("%cluster_nctaid.x", 32), ("%cluster_ctarank", 32), ("%cluster_nctarank", 32), ("%current_graph_exec", 64),
                        ("%reserved_smem_offset_begin", 32), ("%reserved_smem_offset_end", 32), ("%reserved_smem_offset_cap", 32),
                        *((f"%pm{k}", 32) for k in range(8)), *((f"%pm{k}_64", 64) for k in range(8)), *((f"%envreg{k}", 32) for k in (0, 7, 31))):
        register = "pred" if width == 1 else f"b{width}"
        yield row(f"{{.reg .{register} %p; mov.{register} %p, {name}; mov.b32 %x, %a;}}", "b32", "b32", lambda a: a)


def others():
    for text in ("nanosleep.u32 100", "nanosleep.u32 %a", "pmevent 1", "pmevent.mask 3", "setmaxnreg.inc.sync.aligned.u32 64"):
        yield row(f"{{and.b32 %a, %a, 63; {text}; mov.b32 %x, %a;}}", "b32", "b32", lambda a: a & 63)
    # The trap is not executed: the predicate is false in every thread.
    for text in ("trap", "brkpt"):
        yield row(f"{{.reg .pred %p; setp.gt.u32 %p, %i, 5000; @%p {text}; mov.b32 %x, %a;}}", "b32", "b32", lambda a: a)
    for text in ("mapa.shared::cluster.u32 %x, %sh, 0", "getctarank.shared::cluster.u32 %x, %sh"):
        yield row(text, "b32", "b32", None)
    for number, text in product((2,), ('.pragma "nounroll"; mov.b32 %x, %a;',)):
        yield row(text, "b32", "b32", lambda a, n=number: a)


FAMILIES = {"branches": branches, "calls": calls, "stacks": stacks, "special registers": special, "other instructions": others}
