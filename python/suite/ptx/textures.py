"""Textures and surfaces. The library has no texture objects and refuses such kernels when they are loaded. The rows test the refusal."""
# ruff: noqa: D103 - each function yields the rows that its name says.
from itertools import product

from row import row

GEOMETRIES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 2, "a2d": 3, "cube": 3, "acube": 4}
REFUSED = "the library has no texture objects and refuses the module when it is loaded"


def coordinates(count, register):
    names = [f"%{register}{k}" for k in range(count)]
    return names[0] if count == 1 else "{" + ", ".join([*names, *names[-1:]] if count == 3 else names) + "}"


def refused(text):
    return row(f"{{.reg .f32 %f<8>, %g<8>; .reg .b32 %s<8>, %t<8>; mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0; "
               f"mov.b32 %s0, 0; mov.b32 %s1, 0; mov.b32 %s2, 0; mov.b32 %s3, 0; {text}}}", "b64", "b32", None, note=REFUSED)


def textures():
    out, words = "{%g0, %g1, %g2, %g3}", "{%t0, %t1, %t2, %t3}"
    end = " mov.b32 %x, %g0;"
    for (geometry, count), (to, of) in product(GEOMETRIES.items(), (("f32", "f32"), ("s32", "f32"), ("u32", "f32"), ("f32", "s32"), ("u32", "s32"))):
        got = out if to == "f32" else words
        where = coordinates(count, "f" if of == "f32" else "s")
        if geometry[0] == "a":
            where = where.replace("%f0", "%s0")
        yield refused(f"tex.{geometry}.v4.{to}.{of} {got}, [%a, {where}];" + (end if to == "f32" else " mov.b32 %x, %t0;"))
        if of == "f32":
            yield refused(f"tex.level.{geometry}.v4.{to}.{of} {got}, [%a, {where}], %f0;" + (end if to == "f32" else " mov.b32 %x, %t0;"))
    for component, to in product("rgba", ("f32", "u32")):
        got = out if to == "f32" else words
        yield refused(f"tld4.{component}.2d.v4.{to}.f32 {got}, [%a, {{%f0, %f1}}]; mov.b32 %x, {'%g0' if to == 'f32' else '%t0'};")
    yield refused("tex.grad.2d.v4.f32.f32 {%g0, %g1, %g2, %g3}, [%a, {%f0, %f1}], {%f0, %f1}, {%f2, %f3}; mov.b32 %x, %g0;")
    for what in ("width", "height", "depth", "channel_data_type", "channel_order", "num_mipmap_levels", "array_size"):
        yield refused(f"txq.{what}.b32 %x, [%a];")
    for what in ("width", "height", "depth", "channel_data_type", "channel_order", "array_size"):
        yield refused(f"suq.{what}.b32 %x, [%a];")


def surfaces():
    clamps = ("trap", "clamp", "zero")
    for geometry, mode, size in product(("1d", "2d", "3d", "a1d", "a2d"), clamps, ("b8", "b16", "b32", "b64")):
        where = coordinates(GEOMETRIES[geometry], "s")
        register = {"b8": "b16", "b16": "b16", "b32": "b32", "b64": "b64"}[size]
        yield refused(f".reg .{register} %v; suld.b.{geometry}.{size}.{mode} %v, [%a, {where}]; mov.b32 %x, 0; "
                      f"sust.b.{geometry}.{size}.{mode} [%a, {where}], %v;")
    for op, size, mode in product(("add", "min", "max", "and", "or"), ("u32", "s32", "b32", "u64"), clamps):
        if (op in ("and", "or")) == (size == "b32"):
            register = "b64" if size == "u64" else "b32"
            yield refused(f".reg .{register} %v; mov.{register} %v, 1; sured.b.{op}.2d.{size}.{mode} [%a, {{%s0, %s1}}], %v; mov.b32 %x, 0;")
    yield refused("sust.p.2d.v4.b32.trap [%a, {%s0, %s1}], {%s0, %s1, %s2, %s3}; mov.b32 %x, 0;")


FAMILIES = {"textures": textures, "surfaces": surfaces}
