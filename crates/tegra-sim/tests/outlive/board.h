/* What the attack programs know of a board: the kernel's interface, nothing of the simulator's. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Two numbers in, or one in and one out. */
struct pair { uint32_t first, second; };

static inline int open_ctrl(void) { return open("/dev/nvgpu/igpu0/ctrl", O_RDWR | O_CLOEXEC); }
static inline int open_nvmap(void) { return open("/dev/nvmap", O_RDWR | O_CLOEXEC); }

static inline int create_handle(int nvmap, uint32_t size, uint32_t *handle) {
  struct pair create = {size, 0};
  int result = ioctl(nvmap, 0xc0084e00, &create);
  *handle = create.second;
  return result;
}

static inline int alloc_handle(int nvmap, uint32_t handle) {
  struct { uint32_t handle, heap, flags, align; int32_t node; } alloc = {handle, 1u << 30, 2, 4096, 0};
  return ioctl(nvmap, 0x40144e03, &alloc);
}

static inline int get_fd(int nvmap, uint32_t handle) {
  struct pair get = {0, handle};
  return ioctl(nvmap, 0xc0084e0f, &get) == 0 ? (int)get.first : -1;
}

static inline void free_handle(int nvmap, uint32_t handle) { ioctl(nvmap, 0x4e04, (unsigned long)handle); }

/* Makes a buffer and returns its only descriptor. If `handle` is not NULL, the nvmap handle is stored there. */
static inline int buffer(int nvmap, uint32_t size, uint32_t *handle) {
  uint32_t made;
  assert(create_handle(nvmap, size, &made) == 0 && alloc_handle(nvmap, made) == 0);
  int fd = get_fd(nvmap, made);
  assert(fd >= 0);
  if (handle) *handle = made; else free_handle(nvmap, made);
  return fd;
}

static inline int write_buffer(int nvmap, uint32_t handle, const void *from, uint64_t offset, uint64_t bytes) {
  struct { uint64_t addr; uint32_t handle, pad; uint64_t offset, size, stride, user_stride, count; } rw =
    {(uintptr_t)from, handle, 0, offset, bytes, bytes, bytes, 1};
  return ioctl(nvmap, 0x40384e06, &rw);
}

static inline int read_buffer(int nvmap, uint32_t handle, void *to, uint64_t offset, uint64_t bytes) {
  struct { uint64_t addr; uint32_t handle, pad; uint64_t offset, size, stride, user_stride, count; } rw =
    {(uintptr_t)to, handle, 0, offset, bytes, bytes, bytes, 1};
  return ioctl(nvmap, 0x40384e07, &rw);
}

static inline int open_channel(int ctrl) {
  int32_t channel = -1;
  return ioctl(ctrl, 0xc004470b, &channel) == 0 ? channel : -1;
}

static inline int open_tsg(int ctrl) {
  struct { int fd; uint32_t flags; uint64_t source, token; } tsg = {0, 0, 0, 0};
  return ioctl(ctrl, 0xc0184709, &tsg) == 0 ? tsg.fd : -1;
}

static inline int open_space(int ctrl) {
  struct { uint32_t big_page; int32_t fd; uint32_t flags, pad; uint64_t start, end, split; uint32_t reserved[6]; } space =
    {0, -1, 0, 0, 1 << 26, 1ull << 37, 0, {0}};
  return ioctl(ctrl, 0xc0404708, &space) == 0 ? space.fd : -1;
}

/* One line of what is alive in the simulated kernel. */
static inline long census(const char *name) {
  char text[256] = {0};
  int file = open("/dev/tegrarm-sim/census", O_RDWR);
  assert(file >= 0 && read(file, text, sizeof text - 1) > 0);
  close(file);
  const char *line = strstr(text, name);
  assert(line);
  return atol(line + strlen(name));
}

/* A timer that goes off every so many microseconds; its handler does nothing. */
static inline void ignore_alarm(int number) { (void)number; }
static inline void start_timer(long microseconds, int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = ignore_alarm;
  action.sa_flags = flags;
  assert(sigaction(SIGALRM, &action, 0) == 0);
  struct itimerval every = {{0, microseconds}, {0, microseconds}};
  assert(setitimer(ITIMER_REAL, &every, 0) == 0);
}
