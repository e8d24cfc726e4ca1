/* One process takes all that it gets of what the board's supervisor has: buffers, nodes, channels, groups, debuggers, memory. Then a
   second process opens a device and works. Prints how many of each the first one got. */
#include "board.h"
#include <sys/resource.h>

enum { MOST = 80000 };
static int nvmap, ctrl;

static int one_buffer(void) {
  uint32_t handle;
  return create_handle(nvmap, 4096, &handle);
}
static int one_node(void) { return open_ctrl(); }
static int one_channel(void) { return open_channel(ctrl); }
static int one_group(void) { return open_tsg(ctrl); }
static int one_debugger(void) { return open("/dev/nvgpu/igpu0/dbg", O_RDWR | O_CLOEXEC); }
static int one_huge(void) {
  uint32_t handle;
  if (create_handle(nvmap, 1u << 30, &handle) < 0) return -1;
  return alloc_handle(nvmap, handle);
}

static void take(const char *name, int (*one)(void)) {
  int taken = 0;
  errno = 0;
  while (taken < MOST && one() >= 0) taken++;
  if (taken == MOST || (errno != ENOMEM && errno != EMFILE && errno != ENFILE)) {
    fprintf(stderr, "%s: errno %d after %d\n", name, errno, taken);
    exit(1);
  }
  printf("%s %d\n", name, taken);
}

/* What opening a device needs. */
static void work(void) {
  static const char text[] = "the board works";
  char back[sizeof text] = "";
  int own = open_nvmap(), device = open_ctrl(), space, group, channel;
  assert(own >= 0 && device >= 0);
  space = open_space(device);
  group = open_tsg(device);
  channel = open_channel(device);
  assert(space >= 0 && group >= 0 && channel >= 0);
  assert(open("/dev/nvgpu/igpu0/dbg", O_RDWR | O_CLOEXEC) >= 0);
  for (int i = 0; i < 8; i++) {
    uint32_t handle;
    buffer(own, 1 << 20, &handle);
    assert(write_buffer(own, handle, text, 64, sizeof text) == 0 && read_buffer(own, handle, back, 64, sizeof text) == 0);
    assert(strcmp(text, back) == 0);
  }
}

int main(void) {
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  int go[2], status;
  char byte = 0;
  assert(pipe(go) == 0);
  pid_t other = fork();
  if (other == 0) {
    close(go[1]);
    assert(read(go[0], &byte, 1) == 1);
    work();
    _exit(0);
  }
  nvmap = open_nvmap();
  ctrl = open_ctrl();
  assert(nvmap >= 0 && ctrl >= 0);
  take("channels", one_channel);
  take("groups", one_group);
  take("debuggers", one_debugger);
  take("nodes", one_node);
  take("huge", one_huge);
  take("buffers", one_buffer);
  fflush(stdout);
  assert(write(go[1], &byte, 1) == 1);
  assert(waitpid(other, &status, 0) == other);
  return status != 0;
}
