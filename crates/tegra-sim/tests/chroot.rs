//! `tegrarm-sim run` in a root directory that chroot(2) made of a plain directory, as a build root of debootstrap is.

use std::path::Path;
use std::process::{Command, Output};

/// Mounts what programs need below the directory, and runs a program with that directory as its root. What is mounted is
/// gone when the namespace ends.
const IN_CHROOT: &str = r#"
set -e
root=$1; shift
for d in /usr /bin /lib /lib64 /etc /proc /sys /dev /tmp "${1%/*}"; do
    [ -d "$d" ] || continue
    mkdir -p "$root$d"
    mount --rbind "$d" "$root$d"
done
exec chroot "$root" "$@"
"#;

fn in_chroot(unshare: &[&str], program: &[&str]) -> Output {
    // Nobody removes it: should a mount ever stay, the host's files would be in it.
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("chroot");
    std::fs::create_dir_all(&root).expect("a directory");
    Command::new("unshare")
        .args(unshare)
        .args(["sh", "-c", IN_CHROOT, "sh"])
        .arg(root)
        .args(program)
        // The folders of the caller's PATH are not in it.
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .output()
        .expect("unshare of util-linux")
}

/// There the mounts for the program cannot be kept from the host, so every call that takes a path is trapped. All that a
/// program sees must be as elsewhere, also what it names relatively to its working directory.
#[test]
fn a_program_in_a_chroot_sees_the_board() {
    let way: &[&str] = match nix::unistd::geteuid().is_root() {
        true => &["--mount", "--propagation", "private"],
        false => &["--mount", "--map-root-user"],
    };
    if !in_chroot(way, &["/bin/true"]).status.success() {
        eprintln!("SKIPPED: this host lets nobody make a root directory");
        return;
    }
    let simulator = env!("CARGO_BIN_EXE_tegrarm-sim");
    assert!(Path::new(simulator).is_absolute());
    let script = "test -c /dev/nvmap && cd /dev && test -c nvmap && test -c nvgpu/../nvgpu/igpu0/as && \
                  stat -c %a /sys/class/devfreq/17000000.gpu/cur_freq";
    let out = in_chroot(way, &[simulator, "run", "-v", "--", "/bin/sh", "-c", script]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(said.contains("no mount namespace (EINVAL"), "{out:?}");
    assert_eq!((out.status.code(), String::from_utf8_lossy(&out.stdout).as_ref()), (Some(0), "444\n"), "{out:?}");
}
