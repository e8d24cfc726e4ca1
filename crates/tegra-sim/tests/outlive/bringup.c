/* Brings up a channel, has the GPU release a semaphore, and waits for it: every kind of call that a runtime makes before its
   first work. Prints how many ioctls that took. With an argument, the semaphore is at an address where nothing is, and the
   program waits for the error notifier. */
#include "board.h"

static int calls;

static void call(int fd, unsigned long request, void *arg) {
  calls++;
  if (ioctl(fd, request, arg) != 0) {
    fprintf(stderr, "ioctl %#lx, the %d-th: %s\n", request, calls, strerror(errno));
    exit(1);
  }
}

/* Memory for the kernel and the program; the handle is freed, the dmabuf stays. */
static int memory(int nvmap, uint32_t size, void **at) {
  struct pair create = {size, 0};
  call(nvmap, 0xc0084e00, &create);
  struct { uint32_t handle, heap, flags, align; int32_t node; } alloc = {create.second, 1u << 30, 2, 4096, 0};
  call(nvmap, 0x40144e03, &alloc);
  struct pair get = {0, create.second};
  call(nvmap, 0xc0084e0f, &get);
  call(nvmap, 0x4e04, (void *)(uintptr_t)create.second);
  *at = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, (int)get.first, 0);
  assert(*at != MAP_FAILED);
  return (int)get.first;
}

static uint64_t map(int space, int dmabuf) {
  struct { uint32_t flags; int16_t compressed, plain; uint32_t fd, page; uint64_t from, size, va; } args =
    {0, -1, 0, (uint32_t)dmabuf, 4096, 0, 0, 0};
  call(space, 0xc0284107, &args);
  return args.va;
}

int main(int argc, char **argv) {
  (void)argv;
  int ctrl = open_ctrl(), nvmap = open_nvmap();
  assert(ctrl >= 0 && nvmap >= 0);
  struct { uint32_t big_page; int32_t fd; uint32_t flags, pad; uint64_t start, end, split; uint32_t reserved[6]; } as =
    {0, -1, 0, 0, 1 << 26, 1ull << 37, 0, {0}};
  call(ctrl, 0xc0404708, &as);
  struct { int fd; uint32_t flags; uint64_t source, token; } tsg = {0, 0, 0, 0};
  call(ctrl, 0xc0184709, &tsg);
  int32_t channel = -1;
  call(ctrl, 0xc004470b, &channel);
  call(as.fd, 0xc0044101, &channel);
  call(tsg.fd, 0x40045401, &channel);
  struct { uint32_t status, timeout; } watchdog = {1, 0};
  call(channel, 0x40084877, &watchdog);
  void *notes, *ring, *userd, *push;
  int notifier = memory(nvmap, 4096, &notes);
  struct { uint64_t offset, size; uint32_t mem, pad; } notify = {0, 16, (uint32_t)notifier, 0};
  call(channel, 0xc018486f, &notify);
  int ring_fd = memory(nvmap, 4096, &ring), userd_fd = memory(nvmap, 4096, &userd), push_fd = memory(nvmap, 8192, &push);
  struct { uint32_t entries, jobs, flags; int32_t userd, ring; uint32_t token; uint64_t a, b, c, d, e; uint32_t pad[10]; } setup =
    {512, 0, 0xa, userd_fd, ring_fd, 0, 0, 0, 0, 0, 0, {0}};
  call(channel, 0xc0684880, &setup);
  struct { uint32_t class_num, flags; uint64_t id; } object = {0xc7c0, 0, 0};
  call(channel, 0xc010486c, &object);
  uint64_t va = map(as.fd, push_fd);
  volatile uint32_t *doorbell = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, ctrl, 0), *words = push;
  assert(doorbell != MAP_FAILED);
  volatile uint32_t *semaphore = words + 1024;
  volatile uint16_t *status = (volatile uint16_t *)notes + 7;
  uint64_t at = argc > 1 ? 0x1234567000 : va + 4096;
  /* SEM_ADDR_LO to SEM_EXECUTE: a release of 7. */
  const uint32_t release[] = {1u << 29 | 5 << 16 | 0x5c >> 2, (uint32_t)at, (uint32_t)(at >> 32), 7, 0, 1};
  for (unsigned i = 0; i < 6; i++) words[i] = release[i];
  *(volatile uint64_t *)ring = va | (uint64_t)6 << 42;
  __sync_synchronize();
  ((volatile uint32_t *)userd)[0x8c / 4] = 1;
  __sync_synchronize();
  doorbell[0x90 / 4] = setup.token;
  while (argc > 1 ? *status != 0xffff : *semaphore != 7) usleep(100);
  printf("%d\n", calls);
  return 0;
}
