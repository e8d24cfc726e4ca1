//! `tegrarm-sim run` executes programs that know nothing of the simulator, in processes of their own.

use std::path::PathBuf;
use std::process::{Command, Output};

fn run(options: &[&str], program: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tegrarm-sim")).arg("run").args(options).arg("--").args(program).output().unwrap()
}

/// Runs a program with the board's files mounted, if the host allows that.
fn supervised(program: &[&str]) -> Output {
    run(&[], program)
}

fn shell(script: &str) -> Output {
    supervised(&["sh", "-c", script])
}

/// Runs a program with both ways to the device nodes. The results must be the same, and that of the mounted files is
/// returned.
fn both_ways(program: &[&str]) -> Output {
    let trapped = run(&["--trap-paths"], program);
    let mounted = supervised(program);
    assert_eq!(
        (trapped.status, text(&trapped)),
        (mounted.status, text(&mounted)),
        "--trap-paths: {trapped:?}, mounted: {mounted:?}"
    );
    mounted
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Compiles a C program that knows only the kernel's interface.
fn compile(name: &str, source: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (code, program) = (dir.join(format!("{name}.c")), dir.join(name));
    std::fs::write(&code, source).unwrap();
    let status = Command::new("cc").args(["-O1", "-Wall", "-Werror", "-o"]).arg(&program).arg(&code).status().unwrap();
    assert!(status.success());
    program
}

#[test]
fn exit_codes_and_signals_pass_through() {
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(shell("exit 7").status.code(), Some(7));
    assert_eq!(shell("kill -TERM $$").status.signal(), Some(15));
    assert_eq!(supervised(&["/no/such/program"]).status.code(), Some(127));
}

#[test]
fn nodes_are_there_for_stat_access_and_listing_and_only_theirs() {
    let script = "test -c /dev/nvmap && test -r /dev/nvgpu/igpu0/ctrl && test ! -e /dev/nvgpu/igpu0/nothing && \
         ls /dev/nvgpu/igpu0 | tr '\\n' ' ' && test -c /dev/null && test ! -c /etc/passwd && cd /dev && test -c nvmap && test -c nvgpu/../nvgpu/igpu0/as";
    let out = both_ways(&["sh", "-c", script]);
    assert!(out.status.success(), "{out:?}");
    assert!(text(&out).contains("ctrl") && text(&out).contains("tsg"), "{out:?}");
}

#[test]
fn devfreq_files_read_and_write_like_sysfs() {
    let script = "f=/sys/class/devfreq/17000000.gpu; cat $f/max_freq; cat $f/max_freq > $f/min_freq; \
         for i in 1 2 3 4 5 6 7 8 9; do [ \"$(cat $f/min_freq)\" = \"$(cat $f/max_freq)\" ] && break; sleep 0.1; done; cat $f/min_freq";
    let out = both_ways(&["sh", "-c", script]);
    assert!(out.status.success(), "{out:?}");
    let lines: Vec<String> = text(&out).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0], lines[1]);
}

/// A file of sysfs that cannot be written cannot be opened for writing, not even by root.
#[test]
fn devfreq_files_that_show_things_are_not_opened_for_writing() {
    let script = "f=/sys/class/devfreq/17000000.gpu; stat -c %a $f/cur_freq $f/min_freq; \
         for n in cur_freq available_frequencies; do (echo 1 > $f/$n) 2>/dev/null && echo $n; done; true";
    let out = both_ways(&["sh", "-c", script]);
    assert_eq!(text(&out), "444\n644\n", "{out:?}");
}

const TWO_PROCESSES: &str = r#"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int tsg(int ctrl) {
  struct { int fd; uint32_t flags; uint64_t source, token; } a = {0};
  assert(ioctl(ctrl, 0xc0184709, &a) == 0);
  return a.fd;
}

int main(void) {
  int ctrl = open("/dev/nvgpu/igpu0/ctrl", O_RDWR | O_CLOEXEC);
  assert(ctrl >= 0 && (fcntl(ctrl, F_GETFD) & FD_CLOEXEC));
  volatile uint32_t *page = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, ctrl, 0);
  assert(page != MAP_FAILED);
  /* Wrong size inside the range, unknown number, bad pointer. */
  assert(ioctl(ctrl, 0xc0084709, 0) == -1 && (errno == ENOTTY || errno == EFAULT));
  uint8_t big[64] = {0};
  assert(ioctl(ctrl, 0xc01047ff, big) == -1 && errno == EINVAL);
  assert(ioctl(ctrl, 0xc0184709, (void *)8) == -1 && errno == EFAULT);
  /* A terminal ioctl shares TSG's magic and is none of ours. */
  assert(isatty(0) == 0 && errno != EFAULT);
  int32_t channel = -1;
  assert(ioctl(ctrl, 0xc004470b, &channel) == 0);
  int t = tsg(ctrl);
  /* Memory is shared with a child through the dmabuf, as between any two processes. */
  int nvmap = open("/dev/nvmap", O_RDWR);
  struct { uint32_t size, handle; } create = {4096, 0};
  assert(ioctl(nvmap, 0xc0084e00, &create) == 0);
  struct { uint32_t handle, heap, flags, align; int32_t nid; } alloc = {create.handle, 1u << 30, 2, 4096, 0};
  assert(ioctl(nvmap, 0x40144e03, &alloc) == 0);
  struct { int32_t fd; uint32_t handle; } get = {0, create.handle};
  assert(ioctl(nvmap, 0xc0084e0f, &get) == 0);
  volatile uint32_t *mem = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, get.fd, 0);
  assert(mem != MAP_FAILED && mem[0] == 0);
  pid_t child = fork();
  if (child == 0) {
    int other = open("/dev/nvgpu/igpu0/ctrl", O_RDWR);
    int32_t c = -1;
    if (other < 0 || ioctl(other, 0xc004470b, &c) != 0) _exit(1);
    uint32_t *m = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, get.fd, 0);
    m[0] = 0x600d;
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  assert(status == 0);
  assert(mem[0] == 0x600d);
  close(t);
  puts("fine");
  return 0;
}
"#;

#[test]
fn a_c_program_and_its_child_use_one_board() {
    let program = compile("two_processes", TWO_PROCESSES);
    let out = both_ways(&[program.to_str().unwrap()]);
    assert!(out.status.success() && text(&out) == "fine\n", "{out:?}");
}

/// Terminals of their own, as `tmux` and monitors want them.
#[test]
fn programs_can_make_terminals() {
    let out = both_ways(&["script", "-qec", "test -t 0 && echo a terminal", "/dev/null"]);
    assert!(out.status.success() && text(&out).trim_end().ends_with("a terminal"), "{out:?}");
}

#[test]
fn listings_and_real_paths_work() {
    // Modes, numbers and times are those of the placeholder where it is mounted.
    let script = r"ls -l /dev/nvgpu/igpu0 | sed 's/^\(.\).* /\1 /' && realpath /dev/nvgpu/igpu0/../igpu0/ctrl";
    let out = both_ways(&["sh", "-c", script]);
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
    assert!(text(&out).ends_with("/dev/nvgpu/igpu0/ctrl\n"), "{out:?}");
}

const MAPS: &str = r#"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
static void *map(int fd, size_t len, off_t at) { return mmap(0, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at); }
int main(void) {
  int ctrl = open("/dev/nvgpu/igpu0/ctrl", O_RDWR);
  assert(map(ctrl, 1 << 20, 0) == MAP_FAILED && errno == EINVAL);
  void *page = map(ctrl, 65536, 0);
  assert(page != MAP_FAILED);
  assert(map(ctrl, 65536, 0) == MAP_FAILED && errno == EBUSY);
  munmap(page, 65536);
  assert(map(ctrl, 65536, 0) != MAP_FAILED);
  int nvmap = open("/dev/nvmap", O_RDWR);
  assert(map(nvmap, 4096, 0) == MAP_FAILED && errno == EPERM);
  /* Other files are the host's. */
  assert(map(-1, 4096, 0) == MAP_FAILED && errno == EBADF);
  assert(mmap(0, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
  /* Buffers whose descriptors are closed and handles freed do not pile up: 64 GiB in pieces of 64 MiB. */
  for (int i = 0; i < 1024; i++) {
    struct { uint32_t size, handle; } create = {64 << 20, 0};
    assert(ioctl(nvmap, 0xc0084e00, &create) == 0);
    struct { uint32_t handle, heap, flags, align; int32_t nid; } alloc = {create.handle, 1u << 30, 2, 4096, 0};
    assert(ioctl(nvmap, 0x40144e03, &alloc) == 0);
    struct { int32_t fd; uint32_t handle; } get = {0, create.handle};
    assert(ioctl(nvmap, 0xc0084e0f, &get) == 0);
    assert(ioctl(nvmap, 0x4e04, (unsigned long)create.handle) == 0);
    close(get.fd);
  }
  return 0;
}
"#;

#[test]
fn mappings_are_checked_and_forgotten_buffers_reclaimed() {
    let program = compile("maps", MAPS);
    let out = both_ways(&[program.to_str().unwrap()]);
    assert!(out.status.success(), "{out:?}");
}

const REUSE: &str = r#"
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <unistd.h>
int main(void) {
  int ctrl = open("/dev/nvgpu/igpu0/ctrl", O_RDWR);
  /* There are 512 channels: without noticing closes, the 513th open would fail. */
  for (int i = 0; i < 600; i++) {
    int32_t channel = -1;
    assert(ioctl(ctrl, 0xc004470b, &channel) == 0);
    close(channel);
  }
  return 0;
}
"#;

#[test]
fn objects_end_when_their_descriptors_are_closed() {
    let program = compile("reuse", REUSE);
    let out = both_ways(&[program.to_str().unwrap()]);
    assert!(out.status.success(), "{out:?}");
}

#[test]
fn strace_names_calls_and_fields() {
    let program = compile("strace_me", REUSE);
    let out = Command::new(env!("CARGO_BIN_EXE_tegrarm-sim"))
        .args(["run", "--l4t", "r35", "--chip", "orin-nx", "--strace", "--"])
        .arg(program)
        .output()
        .unwrap();
    let trace = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{trace}");
    assert!(trace.contains("open(\"/dev/nvgpu/igpu0/ctrl\")"), "{trace}");
    assert!(trace.contains("NVGPU_GPU_IOCTL_OPEN_CHANNEL("), "{trace}");
}

const REFUSED: &str = r#"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static void fails(int fd, unsigned long request, void *arg, int number) {
  assert(ioctl(fd, request, arg) == -1 && errno == number);
}

int main(void) {
  int ctrl = open("/dev/nvgpu/igpu0/ctrl", O_RDWR), nvmap = open("/dev/nvmap", O_RDWR);
  int32_t channel = -1;
  assert(ioctl(ctrl, 0xc004470b, &channel) == 0);
  struct { uint32_t big_page; int32_t fd; uint32_t flags, pad; uint64_t start, end, split; uint32_t reserved[6]; } as =
    {0, -1, 0, 0, 1 << 26, 1ull << 37, 0, {0}};
  assert(ioctl(ctrl, 0xc0404708, &as) == 0);
  struct { int fd; uint32_t flags; uint64_t source, token; } tsg = {0, 0, 0, 0};
  assert(ioctl(ctrl, 0xc0184709, &tsg) == 0);
  struct { uint32_t entries, jobs, flags; int32_t userd, ring; uint32_t token; uint64_t a[5]; uint32_t pad[10]; } setup;
  memset(&setup, 0, sizeof setup);
  setup.entries = 512, setup.flags = 8;
  fails(channel, 0xc0684880, &setup, EINVAL);
  assert(ioctl(as.fd, 0xc0044101, &channel) == 0 && ioctl(tsg.fd, 0x40045401, &channel) == 0);
  fails(channel, 0xc0684880, &setup, EINVAL);
  setup.flags = 0xa;
  fails(channel, 0xc0684880, &setup, EINVAL);
  fails(channel, 0xc0684880, (void *)8, EFAULT);
  struct { uint32_t size, handle; } create = {4096, 0}, none = {0, 0};
  fails(nvmap, 0xc0084e00, &none, EINVAL);
  assert(ioctl(nvmap, 0xc0084e00, &create) == 0);
  struct { uint32_t handle, heap, flags, align; int32_t nid; } alloc = {create.handle, 1u << 30, 1, 3, 0};
  fails(nvmap, 0x40144e03, &alloc, EINVAL);
  assert(ioctl(nvmap, 0x4e04, (unsigned long)create.handle) == 0);
  assert(mmap(0, 4096, PROT_READ, MAP_SHARED, nvmap, 0) == MAP_FAILED && errno == EPERM);
  assert(mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, ctrl, 0) != MAP_FAILED);
  int freq = open("/sys/class/devfreq/17000000.gpu/min_freq", O_WRONLY);
  assert(freq >= 0 && write(freq, "306000000\n", 10) == 10);
  close(freq);
  return 0;
}
"#;

/// A line of the trace says why a call was refused, because many rules have the same errno.
#[test]
fn strace_says_by_which_rule_a_call_was_refused() {
    let program = compile("refused", REFUSED);
    let out = run(&["--strace"], &[program.to_str().unwrap()]);
    let trace = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{trace}");
    let has = |parts: &[&str]| {
        assert!(trace.lines().any(|line| parts.iter().all(|part| line.contains(part))), "{parts:?} in\n{trace}");
    };
    let setup = "NVGPU_IOCTL_CHANNEL_SETUP_BIND(";
    has(&[setup, "flags=USERMODE_SUPPORT,", "-1 EINVAL (the channel is not bound to an address space"]);
    has(&[setup, "flags=USERMODE_SUPPORT,", "-1 EINVAL (USERMODE_SUPPORT needs DETERMINISTIC, too)"]);
    has(&[setup, "flags=DETERMINISTIC|USERMODE_SUPPORT,", "-1 EINVAL (DETERMINISTIC needs the channel's watchdog off"]);
    has(&[setup, "-1 EFAULT (the argument cannot be read)"]);
    has(&["NVMAP_IOC_CREATE(", "-1 EINVAL (a buffer of no bytes"]);
    has(&["NVMAP_IOC_ALLOC(", "heap_mask=IOVMM, flags=WRITE_COMBINE, align=3", "-1 EINVAL (align is a power of two"]);
    has(&["NVMAP_IOC_FREE(", "handle=0x7fffffff) = 0"]);
    has(&["mmap(", "(Nvmap), len=0x1000, PROT_READ, offset=0x0) = -1 EPERM (buffers are mapped through their dmabufs"]);
    has(&["mmap(", "(Ctrl), len=0x10000, PROT_READ|PROT_WRITE, offset=0x0) = allowed"]);
    has(&["write(\"/sys/class/devfreq/17000000.gpu/min_freq\", \"306000000\") = 9"]);
    // A line has the process, the time since the start, and then the call.
    let time = |line: &str| line.split_whitespace().nth(1).and_then(|t| t.parse::<f64>().ok());
    let times: Vec<f64> = trace.lines().map(|line| time(line).unwrap_or_else(|| panic!("{line}"))).collect();
    assert!(times.len() > 15 && times.is_sorted() && times[0] < 60.0, "{times:?}");
}

/// Only mounted files allow listings of the host's own directories, `chdir` and symbolic links.
#[test]
fn the_boards_files_are_part_of_the_tree() {
    if !mounted() {
        return;
    }
    let out = shell(
        "ls /dev | grep -x nvmap && ls /sys/class/devfreq && cd /dev/nvgpu && test -c igpu0/ctrl && \
         ls /dev/null && echo x > /dev/null && test -d /dev/pts -o ! -d /dev && ls -d /proc/self/fd",
    );
    assert!(out.status.success(), "{out:?}");
    assert!(text(&out).starts_with("nvmap\n17000000.gpu\n"), "{out:?}");
}

/// Whether the host lets `tegrarm-sim` mount the board's files. If not, the test says so.
fn mounted() -> bool {
    let out = run(&["--verbose"], &["true"]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(said.contains("the board's files are mounted") || said.contains("no mount namespace"), "{said}");
    said.contains("the board's files are mounted")
}

const READ_ONLY: &str = r#"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static uint64_t instance(int ctrl) {
  uint8_t characteristics[328];
  struct { uint64_t size, at; } get = {sizeof characteristics, (uintptr_t)characteristics};
  assert(ioctl(ctrl, 0xc0104705, &get) == 0);
  return *(uint64_t *)(characteristics + 320);
}
int main(int argc, char **argv) {
  (void)argc;
  /* Not trapped, so what is opened is known at the first ioctl only. Duplicates are the same open file. */
  int one = open("/dev/nvgpu/igpu0/ctrl", O_RDONLY), two = open("/dev/nvgpu/igpu0/ctrl", O_RDONLY | O_CLOEXEC);
  int again = dup(one);
  assert(instance(one) == instance(again));
  assert(instance(one) != instance(two));
  assert((fcntl(two, F_GETFD) & FD_CLOEXEC) && !(fcntl(one, F_GETFD) & FD_CLOEXEC));
  pid_t child = fork();
  if (child == 0) _exit(instance(one) != instance(again));
  int status;
  assert(waitpid(child, &status, 0) == child && status == 0);
  /* The first call may be the mapping. */
  int three = open("/dev/nvgpu/igpu0/ctrl", O_RDONLY);
  assert(mmap(0, 65536, PROT_READ, MAP_SHARED, three, 0) != MAP_FAILED);
  assert(mmap(0, 65536, PROT_READ, MAP_SHARED, three, 0) == MAP_FAILED && errno == EBUSY);
  /* Through a symbolic link. */
  unlink(argv[1]);
  assert(symlink("/dev/nvgpu/igpu0/ctrl", argv[1]) == 0);
  int linked = open(argv[1], O_RDWR);
  assert(linked >= 0 && instance(linked) != instance(one));
  unlink(argv[1]);
  /* What the placeholder is, is still itself. */
  int null = open("/dev/null", O_RDWR);
  uint8_t argument[24] = {0};
  assert(ioctl(null, 0xc0184709, argument) == -1 && errno == ENOTTY);
  return 0;
}
"#;

#[test]
fn nodes_opened_for_reading_or_through_links_are_nodes() {
    if !mounted() {
        return;
    }
    let program = compile("read_only", READ_ONLY);
    let link = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("link-to-ctrl");
    let out = supervised(&[program.to_str().unwrap(), link.to_str().unwrap()]);
    assert!(out.status.success(), "{out:?}");
}

/// Opens what debuggers, profilers and schedulers open.
const TOOLS: &str = r#"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
struct op { uint8_t op, type, status, quad; uint32_t group, sub, offset, lo, hi, and_lo, and_hi; };
static int failed(int result, int expected) { return result == -1 && errno == expected; }
int main(void) {
  /* The numbers of GPCs and of TPCs in one, read from the GPU. */
  int prof = open("/dev/nvgpu/igpu0/prof", O_RDWR);
  struct op ops[2] = {{.offset = 0x22430}, {.offset = 0x22434}};
  struct { uint64_t ops; uint32_t count, resident; } exec = {(uintptr_t)ops, 2, 9};
  assert(ioctl(prof, 0xc0104402, &exec) == 0);
  assert(ops[0].lo == 2 && ops[1].lo == 4 && exec.resident == 0);
  ops[1].offset = 0x504000;
  assert(failed(ioctl(prof, 0xc0104402, &exec), EINVAL));
  /* A session without events is not ready, though its file is. */
  struct pollfd ready = {prof, POLLIN | POLLPRI, 0};
  assert(poll(&ready, 1, 0) == 0);
  assert(failed(open("/dev/nvgpu/igpu0/prof-ctx", O_RDWR), EINVAL));
  /* Who opened it for reading may look only. */
  int domains = open("/dev/nvgpu/igpu0/nvsched", O_RDONLY);
  uint8_t argument[88] = {0};
  assert(failed(ioctl(domains, 0xc0584e01, argument), EPERM));
  assert(ioctl(domains, 0xc0184e03, argument) == 0);
  int writer = open("/dev/nvgpu/igpu0/nvsched", O_RDWR);
  strcpy((char *)argument, "one");
  assert(ioctl(writer, 0xc0584e01, argument) == 0);
  /* The queue of events can be read by everybody. */
  int fifo = open("/dev/nvgpu/igpu0/nvsched_ctrl_fifo", O_RDWR);
  assert(failed(open("/dev/nvgpu/igpu0/nvsched_ctrl_fifo", O_RDWR), EEXIST));
  struct { uint32_t number; uint8_t direction, access; uint16_t reserved; uint32_t size; int32_t fd; } queue = {2, 1, 0, 0, 0, 0};
  assert(ioctl(fifo, 0xc0104601, &queue) == 0 && queue.size == 65536);
  assert(mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, queue.fd, 0) == MAP_FAILED && errno == EACCES);
  assert(mmap(0, 65537, PROT_READ, MAP_SHARED, queue.fd, 0) == MAP_FAILED && errno == EINVAL);
  volatile uint32_t *words = mmap(0, 65536, PROT_READ, MAP_SHARED, queue.fd, 0);
  assert(words != MAP_FAILED && words[0] == 0);
  /* A buffer has no file to be written to; other memory has, or needs none. */
  int nvmap = open("/dev/nvmap", O_RDWR);
  struct { uint32_t size, handle; } create = {8192, 0};
  assert(ioctl(nvmap, 0xc0084e00, &create) == 0);
  struct { uint32_t handle, heap, flags, align; int32_t node; } alloc = {create.handle, 1u << 30, 2, 0, -1};
  assert(ioctl(nvmap, 0x40144e03, &alloc) == 0);
  create.size = 0;
  assert(ioctl(nvmap, 0xc0084e0f, &create) == 0);
  char *buffer = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, create.size, 0);
  assert(buffer != MAP_FAILED);
  assert(failed(msync(buffer, 8192, MS_SYNC), EINVAL) && failed(msync(buffer + 4096, 4096, MS_SYNC), EINVAL));
  assert(msync(buffer, 8192, MS_ASYNC) == 0);
  char *other = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert(msync(other, 4096, MS_SYNC) == 0);
  /* The file is not a fence, so Linux's ioctls of fences fail. */
  assert(failed(ioctl(fifo, 0xc0303e03, argument), EINVAL));
  return 0;
}
"#;

#[test]
fn tools_find_their_nodes() {
    let program = compile("tools", TOOLS);
    let out = both_ways(&[program.to_str().unwrap()]);
    assert!(out.status.success(), "{out:?}");
}

/// The supervisor does not see most calls of a program, because they do not concern it.
#[test]
fn a_program_that_opens_files_for_reading_is_not_trapped() {
    if !mounted() {
        return;
    }
    let out = Command::new(env!("CARGO_BIN_EXE_tegrarm-sim"))
        .args([
            "run",
            "--verbose",
            "--",
            "sh",
            "-c",
            "for i in 1 2 3 4 5 6 7 8 9; do cat /etc/passwd; ls -l /etc; done",
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    let trapped: u64 = said
        .lines()
        .find_map(|l| l.strip_prefix("tegrarm-sim: trapped calls: ")?.parse().ok())
        .unwrap_or_else(|| panic!("{said}"));
    // The test started eighteen programs. The dynamic linker and `ls` together make hundreds of calls that take a path.
    assert!(trapped < 60, "{said}");
}
