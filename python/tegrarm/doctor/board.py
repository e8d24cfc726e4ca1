"""Checks of the board and of the program's surroundings. They only read files, so that they work on images of other machines too."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .. import where
from .check import Check, note, ok, problem, skipped
from .machine import Machine

NODES = ("/dev/nvmap", "/dev/nvgpu/igpu0/ctrl", "/dev/nvgpu/igpu0/as", "/dev/nvgpu/igpu0/tsg")
UDEV = 'ENV{DEVNAME}=="/dev/nvmap|/dev/nvgpu/igpu0/*", GROUP="video", MODE="0660"'
RELEASES = {"35": "JetPack 5", "36": "JetPack 6", "39": "JetPack 7"}
LITTLE_MEMORY = 256 << 20
ONLY_SHARING = "Only needed to share buffers that are not made here, cameras' for example."


def system(machine: Machine) -> Iterator[Check]:
    """Checks which module this is."""
    model = machine.read("/proc/device-tree/model")
    if model is None:
        yield skipped("module", "this machine has no device tree: no Jetson, or a virtual one")
    elif "Orin" in model:
        yield ok("module", model)
    elif "Jetson" in model or "Tegra" in model:
        yield problem("module", f"{model}: only the modules of the Orin family are supported",
                      "Use an AGX Orin, Orin NX or Orin Nano, or TEGRARM_BACKEND=sim.")
    else:
        yield note("module", f"{model} is no Jetson", "Use TEGRARM_BACKEND=sim.")


def nodes(machine: Machine) -> Iterator[Check]:
    """Checks that the device nodes exist and that this user may open them."""
    for node in NODES:
        if not machine.exists(node):
            yield problem("node", f"{node} does not exist", missing(machine, node))
        elif error := machine.may_open(node):
            yield problem("node", f"{node}: {error.strerror}", refused(machine, node, error))
        else:
            yield ok("node", node)


def missing(machine: Machine, node: str) -> str:
    """Advice about a node that does not exist."""
    if runtime := container_of(machine):
        return f"Give it to the container: {DEVICES[runtime]}"
    if node == "/dev/nvmap" and machine.exists("/dev/nvgpu"):
        return "nvmap is not loaded: sudo modprobe nvmap, and look into dmesg."
    if machine.exists("/dev/nvmap"):
        return "nvgpu is not loaded, or the GPU did not come up: sudo modprobe nvgpu, then dmesg | grep nvgpu."
    return "This machine is no Jetson, or has no L4T kernel. Use TEGRARM_BACKEND=sim."


def refused(machine: Machine, node: str, error: OSError) -> str:
    """Advice about a node that this user may not open."""
    if not isinstance(error, PermissionError):
        return "The driver refuses to open it: look into dmesg, and boot again."
    name, gid = machine.group_of(node)
    rule = f"Put this line into /etc/udev/rules.d/60-tegrarm.rules, then sudo udevadm trigger:\n  {UDEV}"
    if gid in machine.groups or name == "root":
        return f"Its group is {name}, which does not help. {rule}"
    return f"sudo usermod -aG {name} $USER, then log in again. If the group is not to have it:\n{rule}"


def release(machine: Machine) -> Iterator[Check]:
    """Checks which L4T release the files name."""
    text = machine.read("/etc/nv_tegra_release")
    if text is None:
        yield skipped("release", "there is no /etc/nv_tegra_release (in a container that is usual)")
        return
    found = re.match(r"# R(\d+) \(release\), REVISION: ([\d.]+)", text)
    if not found:
        yield note("release", f"/etc/nv_tegra_release begins {text[:40]!r}, which names no release",
                   "The kernel is asked instead: see the line `kernel`.")
    elif found[1] in RELEASES:
        yield ok("release", f"L4T r{found[1]}.{found[2]} ({RELEASES[found[1]]})")
    else:
        yield problem("release", f"L4T r{found[1]}.{found[2]} is not supported",
                      f"Supported are r{', r'.join(RELEASES)}. Send us the output of `tegrarm doctor --kernel`.")


def driver(machine: Machine) -> Iterator[Check]:
    """Checks that the drivers are loaded and that the GPU's firmware is there."""
    modules = machine.read("/proc/modules")
    loaded = {line.split()[0] for line in (modules or "").splitlines() if line}
    if not machine.exists("/proc/device-tree/model"):
        yield skipped("driver", "no Jetson: there are no drivers to look for")
    elif machine.exists("/sys/module/nvgpu") or "nvgpu" in loaded:
        yield ok("driver", "nvgpu is loaded")
    else:
        yield problem("driver", "the kernel module nvgpu is not loaded", "sudo modprobe nvgpu, and see `lsmod | grep nv` and dmesg.")


def desktop(machine: Machine) -> Iterator[Check]:
    """Looks for the desktop's driver. JetPack 7 has it for the display, and its nodes take no compute work on an Orin."""
    loaded = {line.split()[0] for line in (machine.read("/proc/modules") or "").splitlines() if line}
    signs = (("nvidia.ko is loaded", "nvidia" in loaded), ("/dev/nvidiactl exists", machine.exists("/dev/nvidiactl")))
    there = [what for what, found in signs if found]
    if not machine.exists("/proc/device-tree/model"):
        yield skipped("nvidia.ko", "no Jetson: another GPU's driver is nobody's business here")
    elif there:
        yield note("nvidia.ko", f"{' and '.join(there)}: on JetPack 7 that is the display's driver, and no RM for compute",
                   "Programs that open /dev/nvidiactl get the display's driver. "
                   "`tegrarm run --preload -- PROGRAM` gives them this library's.")
    else:
        yield skipped("nvidia.ko", "the desktop's driver is not loaded; an Orin computes with nvgpu")


def memory(machine: Machine) -> Iterator[Check]:
    """Checks how much memory is left. The GPU has no memory of its own."""
    sizes = dict(re.findall(r"^(\w+): +(\d{1,18}) kB$", machine.read("/proc/meminfo") or "", re.M))
    if not {"MemTotal", "MemAvailable"} <= sizes.keys():
        yield note("memory", "/proc/meminfo does not say how much there is")
        return
    total, free = int(sizes["MemTotal"]) << 10, int(sizes["MemAvailable"]) << 10
    if free < LITTLE_MEMORY:
        yield problem("memory", f"{free >> 20} MiB of {total >> 20} MiB are free, and the GPU shares them",
                      "End other programs; `free -h` and `sudo cat /sys/kernel/debug/nvmap/iovmm/clients` show who holds what.")
    else:
        yield ok("memory", f"{free >> 20} MiB of {total >> 20} MiB are free")


def devfreq(machine: Machine) -> Iterator[Check]:
    """Checks the GPU's clock."""
    place = machine.path("/sys/class/devfreq")
    gpus = sorted(place.glob("*.gpu")) + sorted(place.glob("*.g[av][0-9][0-9]b")) if place.is_dir() else []
    if not gpus:
        yield note("devfreq", "no GPU under /sys/class/devfreq", "Clocks are not shown, and programs cannot ask for the highest one.")
        return
    rate, name = machine.read(f"/sys/class/devfreq/{gpus[0].name}/cur_freq"), gpus[0].name
    if rate is None or not re.fullmatch(r"\d{1,19}", rate, re.ASCII):
        yield note("devfreq", f"{name} does not tell its clock", "A container needs -v /sys:/sys:ro for that.")
    else:
        yield ok("devfreq", f"{name} at {int(rate) / 1e6:.0f} MHz, governor {machine.read(f'/sys/class/devfreq/{name}/governor')}")


def heap(machine: Machine) -> Iterator[Check]:
    """Checks where the buffers of other drivers come from."""
    name = "/dev/dma_heap/system"
    if not machine.exists(name):
        yield note("dmabuf heap", f"{name} does not exist", ONLY_SHARING)
    elif machine.may_open(name):
        yield note("dmabuf heap", f"{name} may not be opened", ONLY_SHARING)
    else:
        yield ok("dmabuf heap", name)


NEEDED = " ".join(f"--device {node}" for node in ("/dev/nvmap", "/dev/nvgpu"))
DEVICES = {
    "Docker": f"docker run --runtime nvidia, or {NEEDED} --group-add video",
    "Podman": f"podman run {NEEDED} --group-add keep-groups",
    "Kubernetes": "a device plugin or CDI that gives the pod /dev/nvmap and /dev/nvgpu, and securityContext.supplementalGroups with video",
}


def container_of(machine: Machine) -> str:
    """The runtime of the container in which this process runs. It is empty outside of a container."""
    if machine.environ.get("KUBERNETES_SERVICE_HOST"):
        return "Kubernetes"
    if machine.exists("/run/.containerenv"):
        return "Podman"
    return "Docker" if machine.exists("/.dockerenv") else ""


def container(machine: Machine) -> Iterator[Check]:
    """Checks the container in which this process runs: its devices, its system-call filter and its namespaces."""
    runtime = container_of(machine)
    yield ok("container", f"in {runtime}" if runtime else "none that is known (Docker, Podman, Kubernetes)")
    filtered = re.search(r"^Seccomp:\s*([012])", machine.read("/proc/self/status") or "", re.M)
    namespaces = machine.read("/proc/sys/user/max_user_namespaces")
    restricted = machine.read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1"
    if machine.here and where.census() is not None:
        yield skipped("seccomp", "the filter around us is that of tegrarm-sim run")
    elif filtered and filtered[1] == "1":
        yield problem("seccomp", "strict mode: no program of ours can run here",
                      "Start the container with --security-opt seccomp=unconfined.")
    elif filtered and filtered[1] == "2" and runtime:
        yield note("seccomp", "a filter is on; boards need only ioctl and mmap, which Docker's own filter allows",
                   "tegrarm-sim run needs Linux 5.14 and the calls seccomp and pidfd_getfd; if it says that it may not: "
                   "--security-opt seccomp=unconfined")
    else:
        yield ok("seccomp", "no filter of a container")
    if machine.uid != 0 and (namespaces == "0" or restricted):
        yield note("namespaces", "user namespaces are not for everybody here",
                   "tegrarm-sim run then traps every call that takes a path, which is slower: sysctl user.max_user_namespaces, "
                   "kernel.apparmor_restrict_unprivileged_userns")
    else:
        yield ok("namespaces", "allowed")
