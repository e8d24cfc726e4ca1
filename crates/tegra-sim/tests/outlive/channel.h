/* The bring-up of a channel, as a runtime does it before its first work. */
#include "board.h"

static int calls;

static void call(int fd, unsigned long request, void *arg) {
  calls++;
  if (ioctl(fd, request, arg) != 0) {
    fprintf(stderr, "ioctl %#lx, the %d-th: %s\n", request, calls, strerror(errno));
    exit(1);
  }
}

/* Makes memory for the kernel and the program, and returns its dmabuf. The nvmap handle is freed. */
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

/* A channel and its memory. */
struct lane {
  int ctrl, nvmap, space, tsg, channel;
  uint32_t token;
  volatile uint64_t *ring;
  volatile uint32_t *userd, *push, *doorbell;
  volatile uint16_t *status; /* the status in the error notifier */
  uint64_t va;               /* the address of the pushbuffer, whose second page is for semaphores */
  uint32_t put;
};

static struct lane bring_up(void) {
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
  struct lane lane = {ctrl, nvmap, as.fd, tsg.fd, channel, setup.token, ring, userd, push, 0, (volatile uint16_t *)notes + 7, 0, 0};
  lane.va = map(as.fd, push_fd);
  lane.doorbell = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, ctrl, 0);
  assert(lane.doorbell != MAP_FAILED);
  return lane;
}

/* Lets the GPU write a value to an address as soon as a process rings for the channel. */
static void submit(struct lane *lane, uint64_t at, uint32_t value) {
  /* A semaphore release: the methods SEM_ADDR_LO to SEM_EXECUTE. */
  const uint32_t release[] = {1u << 29 | 5 << 16 | 0x5c >> 2, (uint32_t)at, (uint32_t)(at >> 32), value, 0, 1};
  for (unsigned i = 0; i < 6; i++) lane->push[8 * lane->put + i] = release[i];
  lane->ring[lane->put] = (lane->va + 32 * lane->put) | (uint64_t)6 << 42;
  __sync_synchronize();
  lane->userd[0x8c / 4] = ++lane->put;
  __sync_synchronize();
}

static void ring(struct lane *lane, uint32_t token) { lane->doorbell[0x90 / 4] = token; }
