/* One process takes all that it gets of what the board's supervisor has: buffers, nodes, channels, groups, debuggers, memory. Then a
   second process opens a device, works and launches a kernel. Prints how many of each the first one got. */
#include "channel.h"
#include <sys/resource.h>
#include <tegrarm_abi.h>

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

#define QMD(name, value) (qmd[NVC6C0_QMDV03_00_##name##_SHIFT / 32] |= (uint32_t)(value) << NVC6C0_QMDV03_00_##name##_SHIFT % 32)

/* Launches a kernel of one warp, which only ends, and waits for what its descriptor releases then. */
static void launch(struct lane *lane) {
  static const uint64_t ends[] = {0x000000000000794d, 0x000fea0003800000, 0xfffffff000007947, 0x000fc0000383ffff};
  void *at;
  int fd = memory(lane->nvmap, 8192, &at);
  uint64_t va = map(lane->space, fd), done = va + 4096;
  volatile uint32_t *qmd = at, *words = lane->push;
  memcpy((char *)at + 1024, ends, sizeof ends);
  QMD(QMD_MAJOR_VERSION, 3);
  QMD(CTA_RASTER_WIDTH, 1);
  QMD(CTA_RASTER_HEIGHT, 1);
  QMD(CTA_RASTER_DEPTH, 1);
  QMD(CTA_THREAD_DIMENSION0, 32);
  QMD(CTA_THREAD_DIMENSION1, 1);
  QMD(CTA_THREAD_DIMENSION2, 1);
  QMD(REGISTER_COUNT_V, 16);
  QMD(PROGRAM_ADDRESS_LOWER, va + 1024);
  QMD(PROGRAM_ADDRESS_UPPER, va >> 32);
  QMD(RELEASE0_ADDRESS_LOWER, done);
  QMD(RELEASE0_ADDRESS_UPPER, done >> 32);
  QMD(RELEASE0_PAYLOAD_LOWER, 7);
  QMD(RELEASE0_ENABLE, 1);
  const uint32_t work[] = {
    1u << 29 | 1 << 16 | 1 << 13 | NVC6C0_SET_OBJECT >> 2, 0xc7c0,
    1u << 29 | 2 << 16 | 1 << 13 | NVC6C0_SET_SHADER_LOCAL_MEMORY_WINDOW_A >> 2, 0x7293, 0,
    1u << 29 | 2 << 16 | 1 << 13 | NVC6C0_SET_SHADER_SHARED_MEMORY_WINDOW_A >> 2, 0x7294, 0,
    1u << 29 | 1 << 16 | 1 << 13 | NVC6C0_SEND_PCAS_A >> 2, (uint32_t)(va >> 8),
    1u << 29 | 1 << 16 | 1 << 13 | NVC6C0_SEND_SIGNALING_PCAS2_B >> 2,
    NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_INVALIDATE_PREFETCH_COPY_SCHEDULE,
  };
  const unsigned count = sizeof work / sizeof *work;
  for (unsigned i = 0; i < count; i++) words[i] = work[i];
  lane->ring[lane->put] = lane->va | (uint64_t)count << 42;
  __sync_synchronize();
  lane->userd[0x8c / 4] = ++lane->put;
  __sync_synchronize();
  ring(lane, lane->token);
  while (((volatile uint32_t *)at)[1024] != 7) {
    assert(*lane->status != 0xffff);
    usleep(100);
  }
}

/* What opening a device needs, and a kernel. */
static void work(void) {
  static const char text[] = "the board works";
  char back[sizeof text] = "";
  struct lane lane = bring_up();
  assert(open("/dev/nvgpu/igpu0/dbg", O_RDWR | O_CLOEXEC) >= 0);
  for (int i = 0; i < 8; i++) {
    uint32_t handle;
    buffer(lane.nvmap, 1 << 20, &handle);
    assert(write_buffer(lane.nvmap, handle, text, 64, sizeof text) == 0 && read_buffer(lane.nvmap, handle, back, 64, sizeof text) == 0);
    assert(strcmp(text, back) == 0);
  }
  launch(&lane);
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
