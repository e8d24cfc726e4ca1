"""Files of other machines, for `doctor --root`: a board that is well, and everything that can be wrong with one."""

import dataclasses
import pathlib

WELL = {
    "/proc/device-tree/model": "NVIDIA Jetson AGX Orin Developer Kit\0",
    "/etc/nv_tegra_release": "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64\n",
    "/proc/modules": "nvgpu 2654208 21 - Live 0x0\nnvmap 204800 5 nvgpu, Live 0x0\n",
    "/proc/meminfo": "MemTotal:       64349196 kB\nMemFree:        1000000 kB\nMemAvailable:   60000000 kB\n",
    "/proc/self/status": "Name:\tpython\nSeccomp:\t0\n",
    "/proc/sys/user/max_user_namespaces": "251339\n",
    "/sys/class/devfreq/17000000.gpu/cur_freq": "306000000\n",
    "/sys/class/devfreq/17000000.gpu/governor": "nvhost_podgov\n",
    "/dev/nvmap": "",
    "/dev/nvgpu/igpu0/ctrl": "",
    "/dev/nvgpu/igpu0/as": "",
    "/dev/nvgpu/igpu0/tsg": "",
    "/dev/dma_heap/system": "",
}
NODES = [name for name in WELL if name.startswith("/dev/nv")]


@dataclasses.dataclass(frozen=True)
class Broken:
    """What is different from a board that is well, and what doctor must say about it."""

    name: str
    line: str  # the check
    state: str
    says: str
    todo: str
    files: dict[str, str | None] = dataclasses.field(default_factory=dict)  # None: missing
    modes: dict[str, int] = dataclasses.field(default_factory=dict)
    environ: dict[str, str] = dataclasses.field(default_factory=dict)


GONE = dict.fromkeys(NODES)
BROKEN = [
    Broken("no Jetson", "node", "problem", "/dev/nvmap does not exist", "TEGRARM_BACKEND=sim", {**GONE, "/proc/device-tree/model": None}),
    Broken("another board", "module", "note", "Raspberry Pi 5 is no Jetson", "TEGRARM_BACKEND=sim",
           {"/proc/device-tree/model": "Raspberry Pi 5"}),
    Broken("a Xavier", "module", "problem", "only the modules of the Orin family", "Use an AGX Orin",
           {"/proc/device-tree/model": "NVIDIA Jetson AGX Xavier"}),
    Broken("no nvmap", "node", "problem", "/dev/nvmap does not exist", "sudo modprobe nvmap", {"/dev/nvmap": None}),
    Broken("no nvgpu", "node", "problem", "/dev/nvgpu/igpu0/ctrl does not exist", "sudo modprobe nvgpu",
           {name: None for name in NODES if "nvgpu" in name}),
    Broken("one node is gone", "node", "problem", "/dev/nvgpu/igpu0/tsg does not exist", "dmesg | grep nvgpu",
           {"/dev/nvgpu/igpu0/tsg": None}),
    Broken("not in the group", "node", "problem", "/dev/nvmap: Permission denied", "/etc/udev/rules.d/60-tegrarm.rules",
           modes={"/dev/nvmap": 0o660}),
    Broken("nodes of root alone", "node", "problem", "/dev/nvgpu/igpu0/ctrl: Permission denied", 'GROUP="video", MODE="0660"',
           modes={"/dev/nvgpu/igpu0/ctrl": 0o600}),
    Broken("may only be read", "node", "problem", "/dev/nvmap: Permission denied", "udevadm trigger", modes={"/dev/nvmap": 0o644}),
    Broken("an old release", "release", "problem", "L4T r32.7.1 is not supported", "doctor --kernel",
           {"/etc/nv_tegra_release": "# R32 (release), REVISION: 7.1, GCID: 29818004\n"}),
    Broken("a release that nobody has seen", "release", "problem", "L4T r40.1 is not supported", "r35, r36, r39",
           {"/etc/nv_tegra_release": "# R40 (release), REVISION: 1, GCID: 1\n"}),
    Broken("a release file that says nothing", "release", "note", "which names no release", "line `kernel`",
           {"/etc/nv_tegra_release": "custom Yocto image\n"}),
    Broken("a driver that is not loaded", "driver", "problem", "nvgpu is not loaded", "sudo modprobe nvgpu",
           {"/proc/modules": "nvmap 1 0 - Live\n"}),
    Broken("JetPack 7's display driver", "nvidia.ko", "note", "nvidia.ko is loaded and /dev/nvidiactl exists", "tegrarm run --preload",
           {"/proc/modules": "nvgpu 1 0 - Live\nnvidia 1 0 - Live\n", "/dev/nvidiactl": ""}),
    Broken("no memory left", "memory", "problem", "97 MiB of", "iovmm/clients",
           {"/proc/meminfo": "MemTotal:       64349196 kB\nMemAvailable:     100000 kB\n"}),
    Broken("no clock", "devfreq", "note", "no GPU under /sys/class/devfreq", "Clocks are not shown",
           {name: None for name in WELL if "devfreq" in name}),
    Broken("a clock that is hidden", "devfreq", "note", "does not tell its clock", "-v /sys:/sys:ro",
           {"/sys/class/devfreq/17000000.gpu/cur_freq": None}),
    Broken("no heap", "dmabuf heap", "note", "/dev/dma_heap/system does not exist", "cameras'", {"/dev/dma_heap/system": None}),
    Broken("Docker without devices", "node", "problem", "/dev/nvmap does not exist", "docker run --runtime nvidia",
           {**GONE, "/.dockerenv": ""}),
    Broken("Podman without devices", "node", "problem", "/dev/nvmap does not exist", "--group-add keep-groups",
           {**GONE, "/run/.containerenv": ""}),
    Broken("Kubernetes without devices", "node", "problem", "/dev/nvmap does not exist", "supplementalGroups", GONE,
           environ={"KUBERNETES_SERVICE_HOST": "10.96.0.1"}),
    Broken("Docker's filter", "seccomp", "note", "a filter is on", "--security-opt seccomp=unconfined",
           {"/.dockerenv": "", "/proc/self/status": "Seccomp:\t2\n"}),
    Broken("strict seccomp", "seccomp", "problem", "strict mode", "seccomp=unconfined", {"/proc/self/status": "Seccomp:\t1\n"}),
    Broken("no user namespaces", "namespaces", "note", "not for everybody", "max_user_namespaces",
           {"/proc/sys/user/max_user_namespaces": "0\n"}),
    Broken("Ubuntu 24.04's namespaces", "namespaces", "note", "not for everybody", "apparmor_restrict_unprivileged_userns",
           {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"}),
]


def build(root: pathlib.Path, broken: Broken | None = None) -> pathlib.Path:
    """Writes the files of such a machine below a directory."""
    files = {**WELL, **(broken.files if broken else {})}
    for name, text in files.items():
        if text is None:
            continue
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod((broken.modes if broken else {}).get(name, 0o666))
    return root
