/* Processes with threads that make calls in an order that a seed chooses, under a timer of a millisecond. Some of the processes are
   killed after a number of calls that the seed chooses too. Each thread knows what it has: its buffers keep what it wrote, and what
   it has freed is gone. Nothing is left of any of them, and the board works.
   Usage: swarm SEED PROCESSES THREADS CALLS */
#include <pthread.h>
#include <sched.h>
#include "channel.h"

enum { HANDLES = 6, FILES = 12, SIZE = 8192, LONGEST = 20000 };

/* The number of calls that the threads of a process have made. Its parent looks at it. */
static volatile unsigned *made;

struct worker {
  uint64_t random;
  unsigned calls;
  int ctrl, nvmap;
  uint32_t handles[HANDLES];
  uint8_t wrote[HANDLES];
  int files[FILES], is_buffer[FILES];
};

static uint32_t next(uint64_t *random) {
  *random = *random * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*random >> 33);
}

/* Makes a call again that a signal interrupted. */
#define AGAIN(result, call) do result = (call); while (result == -1 && errno == EINTR)

static void fail(const char *what) {
  perror(what);
  _exit(1);
}

static void open_nodes(struct worker *w) {
  AGAIN(w->ctrl, open_ctrl());
  AGAIN(w->nvmap, open_nvmap());
  if (w->ctrl < 0 || w->nvmap < 0) fail("open");
}

static void keep(struct worker *w, unsigned at, int fd, int is_buffer) {
  if (w->files[at]) close(w->files[at]);
  w->files[at] = fd;
  w->is_buffer[at] = is_buffer;
}

/* A buffer that has one value everywhere. */
static void make(struct worker *w, unsigned at) {
  uint8_t bytes[SIZE];
  int result;
  if (w->handles[at]) return;
  AGAIN(result, create_handle(w->nvmap, SIZE, &w->handles[at]));
  if (result) fail("CREATE");
  AGAIN(result, alloc_handle(w->nvmap, w->handles[at]));
  if (result) fail("ALLOC");
  w->wrote[at] = (uint8_t)next(&w->random);
  memset(bytes, w->wrote[at], SIZE);
  AGAIN(result, write_buffer(w->nvmap, w->handles[at], bytes, 0, SIZE));
  if (result) fail("WRITE");
}

static void look(struct worker *w, unsigned at) {
  uint8_t bytes[SIZE];
  int result;
  if (!w->handles[at]) return;
  AGAIN(result, read_buffer(w->nvmap, w->handles[at], bytes, 0, SIZE));
  if (result) fail("READ");
  for (unsigned i = 0; i < SIZE; i++) {
    if (bytes[i] != w->wrote[at]) {
      fprintf(stderr, "byte %u of a buffer is %#x, not %#x\n", i, bytes[i], w->wrote[at]);
      _exit(1);
    }
  }
}

static void give_up(struct worker *w, unsigned at) {
  if (!w->handles[at]) return;
  do { errno = 0; free_handle(w->nvmap, w->handles[at]); } while (errno == EINTR);
  w->handles[at] = 0;
}

static void share(struct worker *w, unsigned handle, unsigned file) {
  int fd;
  if (!w->handles[handle]) return;
  AGAIN(fd, get_fd(w->nvmap, w->handles[handle]));
  if (fd < 0) fail("GET_FD");
  keep(w, file, fd, 1);
}

/* The bytes of a buffer through a mapping. Its handle may be gone, and the number be another buffer's. */
static void map_it(struct worker *w, unsigned file) {
  if (!w->files[file] || !w->is_buffer[file]) return;
  volatile uint8_t *at;
  do at = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, w->files[file], 0);
  while (at == MAP_FAILED && errno == EINTR);
  if (at == MAP_FAILED) fail("mmap");
  uint8_t value = at[0];
  for (unsigned i = 0; i < SIZE; i += 512) {
    if (at[i] != value) {
      fprintf(stderr, "a mapping has %#x and %#x\n", at[i], value);
      _exit(1);
    }
  }
  munmap((void *)at, SIZE);
}

/* Channels, groups and address spaces may be used up by the others. */
static void open_object(struct worker *w, unsigned file, unsigned which) {
  int fd;
  if (which == 0) AGAIN(fd, open_channel(w->ctrl));
  else if (which == 1) AGAIN(fd, open_tsg(w->ctrl));
  else AGAIN(fd, open_space(w->ctrl));
  if (fd >= 0) keep(w, file, fd, 0);
  else if (errno != ENOMEM && errno != ENOSPC && errno != EAGAIN) fail("an object");
}

/* Calls that are refused, whatever they ask for. */
static void nonsense(struct worker *w, unsigned file) {
  uint8_t bytes[16384] = {0};
  int result, fd = w->files[file] ? w->files[file] : w->ctrl;
  AGAIN(result, ioctl(fd, (next(&w->random) & 0x3fffff00) | 0xf0, bytes));
  if (result == 0) fail("a request that does not exist was answered");
  AGAIN(result, ioctl(w->nvmap, 0xc0084e00, (void *)8));
  if (result == 0 || errno != EFAULT) fail("a bad pointer");
}

static void start_anew(struct worker *w) {
  close(w->nvmap), close(w->ctrl);
  memset(w->handles, 0, sizeof w->handles);
  open_nodes(w);
}

static void *work(void *argument) {
  struct worker *w = argument;
  open_nodes(w);
  for (unsigned i = 0; i < w->calls; i++) {
    unsigned handle = next(&w->random) % HANDLES, file = next(&w->random) % FILES, what = next(&w->random) % 64;
    if (what < 14) make(w, handle);
    else if (what < 26) look(w, handle);
    else if (what < 32) give_up(w, handle);
    else if (what < 40) share(w, handle, file);
    else if (what < 46) map_it(w, file);
    else if (what < 50) { if (w->files[file]) close(w->files[file]), w->files[file] = 0; }
    else if (what < 59) open_object(w, file, what % 3);
    else if (what < 63) nonsense(w, file);
    else start_anew(w);
    __sync_fetch_and_add(made, 1);
  }
  return 0;
}

static int process(uint64_t random, unsigned threads, unsigned calls) {
  pthread_t ids[64];
  struct worker *workers = calloc(threads, sizeof *workers);
  assert(workers && threads <= 64);
  start_timer(1000, next(&random) % 2 ? SA_RESTART : 0);
  for (unsigned i = 0; i < threads; i++) {
    workers[i].random = random + i * 7919;
    workers[i].calls = calls;
    assert(pthread_create(&ids[i], 0, work, &workers[i]) == 0);
  }
  for (unsigned i = 0; i < threads; i++) pthread_join(ids[i], 0);
  return 0;
}

static const char *const COUNTED[] = {"files ", "channels ", "tsgs ", "handles ", "memory "};

/* The number of objects in the kernel. Those of a process that was killed go a moment after it. */
static void nothing_is_left(void) {
  for (unsigned i = 0; i < sizeof COUNTED / sizeof *COUNTED; i++) {
    for (int waited = 0; census(COUNTED[i]); waited++) {
      if (waited == LONGEST) {
        fprintf(stderr, "left: %s%ld\n", COUNTED[i], census(COUNTED[i]));
        exit(1);
      }
      usleep(1000);
    }
  }
}

static void the_gpu_works(void) {
  struct lane lane = bring_up();
  submit(&lane, lane.va + 4096, 7);
  ring(&lane, lane.token);
  while (lane.push[1024] != 7) sched_yield();
}

int main(int argc, char **argv) {
  assert(argc == 5);
  uint64_t random = (uint64_t)atol(argv[1]) * 2654435761u + 1;
  unsigned processes = (unsigned)atoi(argv[2]), threads = (unsigned)atoi(argv[3]), calls = (unsigned)atoi(argv[4]);
  unsigned killed = 0, ended = 0;
  volatile unsigned *counts = mmap(0, 4 * processes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pid_t *children = calloc(processes, sizeof *children);
  unsigned *doomed = calloc(processes, sizeof *doomed);
  assert(counts != MAP_FAILED && children && doomed);
  for (unsigned i = 0; i < processes; i++) {
    uint64_t own = random = random * 2862933555777941757u + 3037000493u;
    /* Two of three are killed, after the first call or just before the last. */
    if (next(&random) % 3) doomed[i] = 1 + next(&random) % (threads * calls);
    made = &counts[i];
    children[i] = fork();
    assert(children[i] >= 0);
    if (children[i] == 0) _exit(process(own, threads, calls));
  }
  while (ended < processes) {
    for (unsigned i = 0; i < processes; i++) {
      int status;
      if (!children[i]) continue;
      if (doomed[i] && counts[i] >= doomed[i]) kill(children[i], SIGKILL);
      if (waitpid(children[i], &status, WNOHANG) != children[i]) continue;
      int was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && doomed[i];
      if (status && !was_killed) {
        fprintf(stderr, "process %u ended with %#x after %u calls\n", i, status, counts[i]);
        return 1;
      }
      killed += was_killed, ended++, children[i] = 0;
    }
    sched_yield();
  }
  nothing_is_left();
  the_gpu_works();
  printf("%u processes, %u of them killed\n", processes, killed);
  return 0;
}
