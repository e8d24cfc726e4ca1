"""``tegrarm info`` shows the library, the kernel that it uses, and the device."""

from __future__ import annotations

import importlib.metadata
import os

from . import _ffi, rm, say, where


def package_version() -> str:
    """The version of the Python package. The library has a version of its own."""
    try:
        return importlib.metadata.version("tegrarm")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def facts() -> dict:
    """Everything that is shown, for programs."""
    backend, kind = where.backend(), where.kind()
    profile = rm.device_profile()
    memory = profile.memory_size
    supervisor = where.supervisor() if kind == "tegrarm-sim run" else None
    if supervisor and "memory" in supervisor:
        memory = int(supervisor["memory"])  # in a supervised program, /proc/meminfo is that of this computer
    if kind == "in-process":
        power = os.environ.get("TEGRARM_SIM_POWER")
        simulated = {"module": os.environ.get("TEGRARM_SIM_CHIP", "agx-orin"), **({"power": power} if power else {}),
                     "l4t": os.environ.get("TEGRARM_SIM_L4T", "r36")}
    else:
        simulated = {k: v for k, v in (supervisor or {}).items() if k != "memory"}
    return {
        "library": {"version": _ffi.version(), "path": _ffi.find()},
        "package": package_version(),
        "backend": backend,
        "kind": kind,
        "simulator": simulated or None,
        "device": {
            "name": profile.name.decode(),
            "sm": f"sm_{profile.sm_version >> 8}{profile.sm_version & 0xff}",
            "uuid": bytes(profile.uuid).hex(),
            "memory": memory,
            "shared_memory": bool(profile.shared_memory),
            "compute_units": profile.compute_units,
            "warp": profile.simd_width,
            "max_clock_hz": profile.max_clock_hz,
        },
    }


def text(known: dict) -> str:
    """Everything that is shown, as text for people."""
    device, kind = known["device"], known["kind"]
    short = "board" if kind == "board" else "recording" if kind == "recording" else "virtual Orin"
    simulator = known["simulator"]
    what = f" ({', '.join(f'{k} {v}' for k, v in simulator.items())})" if simulator else ""
    return "\n".join([
        f"library   {known['library']['version']}  {known['library']['path']}",
        f"backend   {known['backend']}",
        f"kernel    {where.KINDS[kind]}{what}",
        f"device    {device['name']} ({short}), {device['sm']}",
        f"memory    {device['memory'] >> 20} MiB, {'shared with the CPU' if device['shared_memory'] else 'its own'}",
        f"compute   {device['compute_units']} SMs of {device['warp']}-thread warps, up to {device['max_clock_hz'] / 1e6:.0f} MHz",
    ])


def info(args) -> int:
    """Prints the properties of the library and of the device."""
    known = facts()
    if args.json:
        say.as_json(known)
    else:
        print(text(known))
    return say.OK
