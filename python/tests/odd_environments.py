"""Puts a program into an odd environment: ``python odd_environments.py NAME PROGRAM ARGUMENTS``.

Each environment lacks something that most machines have. If an environment cannot be made here, for example without privileges, the status
is 77, which means that the test is skipped.
"""

import ctypes
import errno
import os
import platform
import resource
import struct
import subprocess
import sys
import tempfile

SKIP = 77
CALLS = {  # the numbers of system calls on each kind of machine
    "x86_64": {"memfd_create": 319, "clone": 56, "clone3": 435, "unshare": 272, "mount": 165, "umount2": 166, "setns": 308, "ptrace": 101,
               "add_key": 248, "keyctl": 250, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "kexec_load": 246, "kcmp": 312,
               "open_by_handle_at": 304, "io_uring_setup": 425, "pivot_root": 155, "init_module": 175, "swapon": 167, "reboot": 169,
               "move_pages": 279, "pidfd_getfd": 438, "process_madvise": 440, "fsopen": 430, "open_tree": 428, "move_mount": 429},
    "aarch64": {"memfd_create": 279, "clone": 220, "clone3": 435, "unshare": 97, "mount": 40, "umount2": 39, "setns": 268, "ptrace": 117,
                "add_key": 217, "keyctl": 219, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "kexec_load": 104, "kcmp": 272,
                "open_by_handle_at": 265, "io_uring_setup": 425, "pivot_root": 41, "init_module": 105, "swapon": 224, "reboot": 142,
                "move_pages": 239, "pidfd_getfd": 438, "process_madvise": 440, "fsopen": 430, "open_tree": 428, "move_mount": 429},
}
CLONE_THREAD, CLONE_NEWUSER = 0x10000, 0x10000000
NAMESPACES = 0x7E020000  # every CLONE_NEW flag that Docker's profile looks at
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000


def skip(why):
    print(f"SKIPPED: {why}", file=sys.stderr)
    sys.exit(SKIP)


def deny(rules):
    """Installs a seccomp filter. A rule has the name of a call, an errno, and for some calls bits that the first argument must have."""
    numbers = CALLS.get(platform.machine())
    if numbers is None:
        skip(f"no numbers of system calls for {platform.machine()}")
    code = [(LOAD, 0, 0, 0)]
    for name, number, *flags in rules:
        back = ERRNO | number
        if flags:
            code += [(EQUAL, 0, 4, numbers[name]), (LOAD, 0, 0, 16), (ANY_BIT, 0, 1, flags[0]), (RETURN, 0, 0, back), (LOAD, 0, 0, 0)]
        else:
            code += [(EQUAL, 0, 1, numbers[name]), (RETURN, 0, 0, back)]
    code.append((RETURN, 0, 0, ALLOW))
    packed = b"".join(struct.pack("HBBI", *step) for step in code)
    memory = ctypes.create_string_buffer(packed)
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(memory)))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0):
        skip(f"no seccomp filter: {os.strerror(ctypes.get_errno())}")


def in_mount_namespace(script, command):
    """Runs a script and then the program in a new mount namespace."""
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*unshare, "sh", "-c", script + "; exit 0"], capture_output=True, check=False).returncode:
        skip("this host allows no mount namespace")
    os.execvp("unshare", [*unshare, "sh", "-c", f'{script} && exec "$@"', "sh", *command])


def in_chroot(command):
    """Runs the program in a root directory where nothing is mounted, such as those that debootstrap makes."""
    directories = "for d in /*; do [ $d = /mnt ] || [ ! -d $d ] || { mkdir /mnt/root$d && mount --rbind $d /mnt/root$d; } || exit 1; done"
    in_mount_namespace(f"mount -t tmpfs none /mnt && mkdir /mnt/root && {directories}", ["chroot", "/mnt/root", *command])


def docker():
    """Denies what Docker's default profile denies to a container without capabilities."""
    denied = ["unshare", "mount", "umount2", "setns", "add_key", "keyctl", "bpf", "perf_event_open", "userfaultfd", "kexec_load", "kcmp",
              "open_by_handle_at", "io_uring_setup", "pivot_root", "init_module", "swapon", "reboot", "move_pages", "pidfd_getfd",
              "process_madvise", "fsopen", "open_tree", "move_mount"]
    deny([("clone3", errno.ENOSYS), ("clone", errno.EPERM, NAMESPACES), *[(name, errno.EPERM) for name in denied]])


ENVIRONMENTS = {
    "an ordinary machine": lambda _: None,
    "no /proc": lambda command: in_mount_namespace("mount -t tmpfs none /proc", command),
    "no memfd": lambda _: deny([("memfd_create", errno.ENOSYS)]),
    "memfd forbidden": lambda _: deny([("memfd_create", errno.EPERM)]),
    "no threads": lambda _: deny([("clone3", errno.ENOSYS), ("clone", errno.EAGAIN, CLONE_THREAD)]),
    "16 descriptors": lambda _: resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16)),
    "256 descriptors": lambda _: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)),
    "64 MiB of addresses": lambda _: resource.setrlimit(resource.RLIMIT_AS, (64 << 20, 64 << 20)),
    "1 GiB of addresses": lambda _: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)),
    "read-only /tmp": lambda command: in_mount_namespace(f"mount -t tmpfs -o ro none {tempfile.gettempdir()}", command),
    "no user namespaces": lambda _: deny([("unshare", errno.EPERM), ("clone", errno.EPERM, CLONE_NEWUSER), ("clone3", errno.ENOSYS)]),
    "a chroot": in_chroot,
    "Docker's seccomp profile": lambda _: docker(),
    "files of at most 4 KiB": lambda _: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    "no environment": lambda command: os.execve(command[0], command, {}),
}


def main():
    name, *command = sys.argv[1:]
    ENVIRONMENTS[name](command)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
