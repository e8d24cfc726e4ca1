"""Makes PTX of rows: one kernel for each. The text of a row is on its own line, so that a message of the assembler names the row."""
import row

HEADER = ".version {version}\n.target sm_87\n.address_size 64\n"
PARAMETERS = "abce"  # operands that can come from the kernel's parameters
OPERANDS = [*PARAMETERS, *(f"m{k}" for k in range(20))]
RESULTS = [*"xyzw", *(f"r{k}" for k in range(8))]
# Where operands come from. A compiler encodes each of these in another way: all operands in registers that differ between threads; the last
# operand in a kernel parameter; the last operand as a number in the instruction; all operands the same in the whole warp.
SHAPES = ("registers", "uniform last", "number last", "uniform")

# For each class of registers: PTX that converts a slot of 64 bits to the register, and the register to a slot.
TO = {"pred": "setp.ne.b64 {r}, {w}, 0;", "b16": "cvt.u16.u64 {r}, {w};", "b32": "cvt.u32.u64 {r}, {w};", "b64": "mov.b64 {r}, {w};",
      "f32": "{{.reg .b32 %low; cvt.u32.u64 %low, {w}; mov.b32 {r}, %low;}}", "f64": "mov.b64 {r}, {w};"}
FROM = {"pred": "selp.u64 {w}, 1, 0, {r};", "b16": "cvt.u64.u16 {w}, {r};", "b32": "cvt.u64.u32 {w}, {r};", "b64": "mov.b64 {w}, {r};",
        "f32": "{{.reg .b32 %low; mov.b32 %low, {r}; cvt.u64.u32 {w}, %low;}}", "f64": "mov.b64 {w}, {r};"}


def shapes(r):
    """The shapes in which the code of a row differs."""
    if r.warp or not r.takes or r.declares or not r.shaped or r.reference is None:
        return SHAPES[:1]
    return SHAPES if len(r.takes) > 1 else (SHAPES[0], SHAPES[3])


def shaped(shape, items):
    """The operands of all threads, for a shape."""
    first = items[0]
    if shape == "uniform":
        return [first] * len(items)
    return items if shape == "registers" else [[*one[:-1], first[-1]] for one in items]


def kernel(name, r, shape, items):
    """The lines of a kernel: those before the row's own text, the text, and those after it."""
    lines = [r.declares] if r.declares else []
    count = len(r.takes)
    lines += [f".visible .entry {name}(.param .b64 p_in, .param .b64 p_out, .param .b64 p_cells, .param .b64 p_common, "
              + ", ".join(f".param .b64 p_{k}" for k in PARAMETERS) + ") {",
              ".reg .b64 %word, %in, %results, %out, %lo, %common; .reg .b32 %i, %sh, %offset, %lane;",
              f".shared .align 64 .b8 cell[{row.ITEMS * row.CELL}]; .local .align 64 .b8 local[{row.CELL}];",
              "mov.u32 %i, %tid.x; mov.u32 %lane, %laneid; ld.param.b64 %in, [p_in]; ld.param.b64 %results, [p_out]; "
              "ld.param.b64 %out, [p_cells]; ld.param.b64 %common, [p_common];",
              f"mul.lo.u32 %offset, %i, {row.CELL}; cvt.u64.u32 %word, %offset; add.u64 %out, %out, %word; "
              "mov.u32 %sh, cell; add.u32 %sh, %sh, %offset; mov.u64 %lo, local;",
              "cvt.u64.u32 %word, %i; shl.b64 %word, %word, 3; add.u64 %in, %in, %word; add.u64 %results, %results, %word;"]
    for k, kind in enumerate(r.takes):
        held = row.KINDS[kind][0]
        last = k == count - 1
        if shape == "uniform" or shape == "uniform last" and last:
            load = f"ld.param.b64 %word, [p_{OPERANDS[k]}];"
        elif shape == "number last" and last:
            load = f"mov.b64 %word, {items[0][k]};"
        else:
            load = f"ld.global.b64 %word, [%in+{8 * row.ITEMS * k}];"
        lines.append(f".reg .{held} %{OPERANDS[k]}; {load} {TO[held].format(r='%' + OPERANDS[k], w='%word')}")
    for k, kind in enumerate(r.gives):
        lines.append(f".reg .{row.KINDS[kind][0]} %{RESULTS[k]};")
    after = []
    for k, kind in enumerate(r.gives):
        held = row.KINDS[kind][0]
        after.append(f"{FROM[held].format(r='%' + RESULTS[k], w='%word')} st.global.b64 [%results+{8 * row.ITEMS * k}], %word;")
    text = r.text if r.text[-1] == ";" or r.text[0] + r.text[-1] == "{}" else r.text + ";"
    number = name.removeprefix("k")
    return [line.replace("{n}", number) for line in lines], ("{" + text + "}").replace("{n}", number), [*after, "ret; }"]


def module(rows, version="8.8"):
    """The PTX of kernels k0, k1 and so on, and for each line the number of its kernel. `rows` are (row, shape, items)."""
    lines, at = HEADER.format(version=version).splitlines(), {}
    for number, (r, shape, items) in enumerate(rows):
        before, text, after = kernel(f"k{number}", r, shape, items)
        begin = len(lines) + 1
        lines += before + [text] + after
        for line in range(begin, len(lines) + 1):
            at[line] = number
    return "\n".join(lines) + "\n", at
