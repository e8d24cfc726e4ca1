/* Everything that io_uring can do to the board's files, which the supervisor does not see: opens, closes, writes, truncations, splices,
   shut-downs and descriptors sent elsewhere. Then a child works. Prints what the host allowed. */
#include "board.h"
#include <linux/io_uring.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum { ENTRIES = 64, ROUNDS = 500, FTRUNCATE = 55 /* since Linux 6.9 */ };
static int ring_fd;
static struct io_uring_params params;
static char *sq, *cq;
static struct io_uring_sqe *entries;

static unsigned *at(char *ring, unsigned offset) { return (unsigned *)(ring + offset); }

static int setup(void) {
  ring_fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &params);
  if (ring_fd < 0) return 0;
  size_t squeue = params.sq_off.array + params.sq_entries * sizeof(unsigned);
  size_t cqueue = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
  sq = mmap(0, squeue, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring_fd, IORING_OFF_SQ_RING);
  cq = mmap(0, cqueue, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring_fd, IORING_OFF_CQ_RING);
  entries = mmap(0, params.sq_entries * sizeof *entries, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring_fd, IORING_OFF_SQES);
  assert(sq != MAP_FAILED && cq != MAP_FAILED && entries != MAP_FAILED);
  return 1;
}

/* Makes one call and waits for it. */
static int does(unsigned operation, int fd, const void *address, unsigned length, uint64_t offset, unsigned flags) {
  unsigned tail = *at(sq, params.sq_off.tail), slot = tail & *at(sq, params.sq_off.ring_mask);
  struct io_uring_sqe *entry = &entries[slot];
  memset(entry, 0, sizeof *entry);
  entry->opcode = (uint8_t)operation;
  entry->fd = fd;
  entry->addr = (uintptr_t)address;
  entry->len = length;
  entry->off = offset;
  entry->open_flags = flags;
  at(sq, params.sq_off.array)[slot] = slot;
  __atomic_store_n(at(sq, params.sq_off.tail), tail + 1, __ATOMIC_RELEASE);
  assert(syscall(SYS_io_uring_enter, ring_fd, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) == 1);
  unsigned head = *at(cq, params.cq_off.head);
  struct io_uring_cqe *answers = (struct io_uring_cqe *)(cq + params.cq_off.cqes);
  int result = answers[head & *at(cq, params.cq_off.ring_mask)].res;
  __atomic_store_n(at(cq, params.cq_off.head), head + 1, __ATOMIC_RELEASE);
  return result;
}

static int opened(const char *path) { return does(IORING_OP_OPENAT, AT_FDCWD, path, 0, 0, O_RDWR | O_CLOEXEC); }
static void closed(int fd) { assert(does(IORING_OP_CLOSE, fd, 0, 0, 0, 0) == 0); }

/* What may be done to a file without its driver. */
static void disturb(int fd) {
  static char bytes[4096];
  does(IORING_OP_WRITE, fd, bytes, sizeof bytes, 0, 0);
  does(IORING_OP_FALLOCATE, fd, (void *)4096, 3, 0, 0); /* a hole */
  does(FTRUNCATE, fd, 0, 0, 0, 0);
  does(IORING_OP_FSYNC, fd, 0, 0, 0, 0);
  does(IORING_OP_SHUTDOWN, fd, 0, SHUT_RDWR, 0, 0);
  does(IORING_OP_FADVISE, fd, 0, 4096, 0, 4);
}

static void works(void) {
  static const char text[] = "the board works";
  char back[sizeof text] = "";
  uint32_t handle;
  int nvmap = open_nvmap(), ctrl = open_ctrl();
  assert(nvmap >= 0 && ctrl >= 0 && open_tsg(ctrl) >= 0 && open_channel(ctrl) >= 0 && open_space(ctrl) >= 0);
  buffer(nvmap, 8192, &handle);
  assert(write_buffer(nvmap, handle, text, 64, sizeof text) == 0 && read_buffer(nvmap, handle, back, 64, sizeof text) == 0);
  assert(strcmp(text, back) == 0);
}

int main(void) {
  if (!setup()) {
    puts("no io_uring");
    return 0;
  }
  int nvmap = open_nvmap(), ctrl = open_ctrl();
  assert(nvmap >= 0 && ctrl >= 0);
  int files[] = {nvmap, ctrl, open_tsg(ctrl), open_channel(ctrl), open_space(ctrl), buffer(nvmap, 8192, 0),
                 open("/dev/nvgpu/igpu0/dbg", O_RDWR | O_CLOEXEC)};
  for (unsigned i = 0; i < sizeof files / sizeof *files; i++) disturb(files[i]);
  works();
  /* A node that was opened in this way is one, where the board's files are mounted, and is not there elsewhere. */
  int node = opened("/dev/nvmap");
  uint32_t handle;
  if (node >= 0) assert(create_handle(node, 4096, &handle) == 0);
  else assert(node == -ENOENT);
  printf("%s\n", node >= 0 ? "opened" : "not there");
  for (int i = 0; i < ROUNDS && node >= 0; i++) {
    int other = opened("/dev/nvgpu/igpu0/ctrl");
    assert(other >= 0);
    int group = i % 2 ? open_tsg(other) : -1;
    closed(other);
    if (group >= 0) closed(group);
  }
  for (unsigned i = 0; i < sizeof files / sizeof *files; i++) closed(files[i]);
  if (node >= 0) closed(node);
  pid_t other = fork();
  if (other == 0) {
    works();
    _exit(0);
  }
  int status;
  assert(waitpid(other, &status, 0) == other && status == 0);
  printf("left: channels %ld tsgs %ld\n", census("channels"), census("tsgs"));
  return 0;
}
