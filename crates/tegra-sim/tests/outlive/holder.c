/* Makes more ioctls at once than the supervisor has threads, each with its argument in memory that never comes. A second process must
   have its answers meanwhile. */
#include "board.h"
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>

enum { CALLS = 40, PAGE_BYTES = 4096 };
static int nvmap;
static int held;

static void *call(void *page) {
  ioctl(nvmap, 0xc0084e00, page);
  return 0;
}

int main(void) {
  int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
  if (faults < 0) {
    puts("no userfaultfd");
    return 0;
  }
  struct uffdio_api api = {.api = UFFD_API};
  assert(ioctl(faults, UFFDIO_API, &api) == 0);
  char *pages = mmap(0, CALLS * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct uffdio_register range = {.range = {(uintptr_t)pages, CALLS * PAGE_BYTES}, .mode = UFFDIO_REGISTER_MODE_MISSING};
  assert(pages != MAP_FAILED && ioctl(faults, UFFDIO_REGISTER, &range) == 0);
  nvmap = open_nvmap();
  assert(nvmap >= 0);
  for (int i = 0; i < CALLS; i++) {
    pthread_t thread;
    assert(pthread_create(&thread, 0, call, pages + i * PAGE_BYTES) == 0);
  }
  /* Every call that is being answered has met its page. */
  while (held < CALLS) {
    struct uffd_msg message;
    assert(read(faults, &message, sizeof message) == sizeof message);
    held += message.event == UFFD_EVENT_PAGEFAULT;
  }
  pid_t other = fork();
  if (other == 0) {
    uint32_t handle;
    int own = open_nvmap();
    assert(own >= 0 && create_handle(own, 4096, &handle) == 0);
    _exit(0);
  }
  int status;
  assert(waitpid(other, &status, 0) == other && status == 0);
  printf("%d held\n", held);
  fflush(stdout);
  /* The threads end with the process, and their calls with them. */
  _exit(0);
}
