"""Kernels that are made from forms: one kernel for each family, one thread for each item, and one column of results for each result of a
form.
"""
import re

# The names of results, their widths in bytes, and the instructions that store them.
RESULTS = {"r": (4, "st.global.b32 [%o], %r;"), "s": (4, "st.global.b32 [%o], %s;"),
           "h": (4, "cvt.u32.u16 %x, %h; st.global.b32 [%o], %x;"),
           "p": (4, "selp.u32 %x, 1, 0, %p; st.global.b32 [%o], %x;"),
           "q": (4, "selp.u32 %x, 1, 0, %q; st.global.b32 [%o], %x;"),
           "R": (8, "st.global.b64 [%o], %R;"), "S": (8, "st.global.b64 [%o], %S;")}
RESULTS |= {f"d{k}": (4, f"st.global.b32 [%o], %d{k};") for k in range(8)}
BLOCK = 64


def results(form):
    """The results that a form names, in the order of RESULTS."""
    named = set(re.findall(r"%([a-zA-Z]\w*)", form))
    return [name for name in RESULTS if name in named]


def columns(forms):
    """The columns of a family: (form, result, width in bytes)."""
    return [(form, name, RESULTS[name][0]) for form in forms for name in results(form)]


def kernel(name, words, count, forms):
    """The kernel of a family. Each item has `words` words. There are `count` items, which fill whole blocks."""
    assert count % BLOCK == 0
    lines = [".version 8.0", ".target sm_86", ".address_size 64", f".visible .entry {name}(.param .u64 out, .param .u64 in)", "{",
             ".reg .b64 %A, %B, %C, %R, %S, %o, %w4, %w8, %in, %out;", ".reg .b32 %a, %b, %c, %r, %s, %x, %y, %i, %z;",
             ".reg .b16 %h, %ha, %hb, %hc, %hx;", ".reg .pred %p, %q;", ".reg .b32 %v<16>, %d<8>;", ".shared .align 16 .b8 slots[8192];",
             "mov.u32 %i, %ctaid.x;", f"mov.u32 %x, %tid.x; mad.lo.u32 %i, %i, {BLOCK}, %x;",
             "mov.u32 %z, slots; mad.lo.u32 %z, %x, 16, %z;",
             "ld.param.u64 %out, [out]; mul.wide.u32 %w4, %i, 4; mul.wide.u32 %w8, %i, 8;",
             f"ld.param.u64 %in, [in]; mul.wide.u32 %o, %i, {4 * words}; add.u64 %in, %in, %o;"]
    lines += [f"ld.global.b32 %v{k}, [%in+{4 * k}];" for k in range(words)]
    for name, wide, narrow in ("A", 0, 0), ("B", 2, 1), ("C", 4, 2):
        # If an item has too few words for an operand, the operand is one of its other words.
        first, second = (k if k < words else 0 for k in (wide, wide + 1))
        single = first if words == 6 else narrow if narrow < words else 0
        lines += [f"mov.b64 %{name}, {{%v{first}, %v{second}}}; mov.b32 %{name.lower()}, %v{single};"]
    lines += [f"mov.b32 {{%h{name}, %hx}}, %{name};" for name in "abc"]
    at = 0
    for form in forms:
        lines.append("{")
        for k, result in enumerate(results(form)):
            width, store = RESULTS[result]
            lines.append(f"add.u64 %o, %out, %w{width}; add.u64 %o, %o, {at};")
            if k == 0:
                lines.append(form + ";")
            lines.append(store)
            at += width * count
        lines.append("}")
    return "\n".join(lines + ["ret;", "}", ""])


def hashes(name, form):
    """A kernel that sums a hash of x and f(x) over 2^20 words x for each of its blocks of 1024 threads. f(x) is the form's %r for the
    operand %a.
    """
    return f"""
.version 8.0
.target sm_86
.address_size 64
.visible .entry {name}(.param .u64 out, .param .u64 in)
{{
    .reg .b64 %out, %word, %sum, %hash, %high, %A, %R;
    .reg .b32 %a, %r, %x, %left, %block;
    .reg .pred %more;
    ld.param.u64 %out, [out];
    mov.u32 %block, %ctaid.x;
    mul.wide.u32 %word, %block, 8;
    add.u64 %out, %out, %word;
    mov.u32 %x, %tid.x;
    mad.lo.u32 %a, %block, {1 << 20}, %x;
    mov.u64 %sum, 0;
    mov.u32 %left, 1024;
again:
    {form};
    cvt.u64.u32 %word, %a;
    mul.lo.u64 %hash, %word, 0x9e3779b97f4a7c15;
    cvt.u64.u32 %word, %r;
    xor.b64 %hash, %hash, %word;
    shr.u64 %high, %hash, 32;
    xor.b64 %hash, %hash, %high;
    mul.lo.u64 %hash, %hash, 0xff51afd7ed558ccd;
    shr.u64 %high, %hash, 29;
    xor.b64 %hash, %hash, %high;
    add.u64 %sum, %sum, %hash;
    add.u32 %a, %a, 1024;
    sub.u32 %left, %left, 1;
    setp.ne.u32 %more, %left, 0;
    @%more bra again;
    red.global.add.u64 [%out], %sum;
    ret;
}}
"""
