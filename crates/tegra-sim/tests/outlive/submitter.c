/* Submits entries from memory that never comes, closes the channel meanwhile, and a second process must get its board. */
#include "board.h"
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/syscall.h>

static int channel;

static void *submit(void *entries) {
  struct { uint64_t entries; uint32_t count, flags, fence[2]; } args = {(uintptr_t)entries, 4, 0, {0, 0}};
  ioctl(channel, 0xc018486b, &args);
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
  char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct uffdio_register range = {.range = {(uintptr_t)page, 4096}, .mode = UFFDIO_REGISTER_MODE_MISSING};
  assert(page != MAP_FAILED && ioctl(faults, UFFDIO_REGISTER, &range) == 0);
  int ctrl = open_ctrl(), space = open_space(ctrl), tsg = open_tsg(ctrl);
  channel = open_channel(ctrl);
  assert(ctrl >= 0 && space >= 0 && tsg >= 0 && channel >= 0);
  assert(ioctl(space, 0xc0044101, &channel) == 0 && ioctl(tsg, 0x40045401, &channel) == 0);
  struct { uint32_t entries, jobs, flags; int32_t userd, ring; uint32_t token; uint64_t rest[5]; uint32_t pad[10]; } setup =
    {64, 0, 0, 0, 0, 0, {0}, {0}};
  assert(ioctl(channel, 0xc0684880, &setup) == 0);
  pthread_t thread;
  assert(pthread_create(&thread, 0, submit, page) == 0);
  struct uffd_msg message;
  assert(read(faults, &message, sizeof message) == sizeof message && message.event == UFFD_EVENT_PAGEFAULT);
  close(channel);
  pid_t other = fork();
  if (other == 0) {
    int own = open_ctrl(), group = open_tsg(own), another = open_channel(own);
    _exit(own < 0 || group < 0 || another < 0);
  }
  int status;
  assert(waitpid(other, &status, 0) == other && status == 0);
  puts("served");
  fflush(stdout);
  _exit(0);
}
