/* Calls in the numbers of 32-bit programs and of x32, which the supervisor does not see. They reach the host, which knows no ioctl of the
   board, and they end nothing. Then the program works. */
#include "board.h"
#include <sys/syscall.h>

#ifndef __x86_64__
int main(void) {
  puts("no other calls");
  return 0;
}
#else
/* A call in the numbers of i386, with arguments that fit. */
static int old(int number, uint32_t a, uint32_t b, uint32_t c) {
  int result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
  return result;
}
enum { OLD_OPEN = 5, OLD_CLOSE = 6, OLD_DUP = 41, OLD_IOCTL = 54, OLD_FTRUNCATE = 93, X32 = 0x40000000 };

int main(void) {
  char *low = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  assert(low != MAP_FAILED);
  uint32_t place = (uint32_t)(uintptr_t)low, handle;
  int nvmap = open_nvmap(), ctrl = open_ctrl();
  assert(nvmap >= 0 && ctrl >= 0);
  int fd = buffer(nvmap, 8192, &handle);
  strcpy(low, "/dev/nvmap");
  int other = old(OLD_OPEN, place, O_RDWR, 0);
  if (other == -ENOSYS) puts("no calls of i386");
  /* Where the board's files are mounted, this is one. Elsewhere nothing is there. */
  assert(other >= 0 || other == -ENOENT || other == -ENOSYS);
  struct pair create = {4096, 0};
  memcpy(low, &create, sizeof create);
  if (other != -ENOSYS)
    for (int i = 0; i < 100; i++) {
      assert(old(OLD_IOCTL, (uint32_t)nvmap, 0xc0084e00, place) < 0);
      assert(old(OLD_IOCTL, (uint32_t)ctrl, 0xc004470b, place) < 0);
      assert(old(OLD_FTRUNCATE, (uint32_t)fd, 0, 0) < 0);
      int copy = old(OLD_DUP, (uint32_t)fd, 0, 0);
      assert(copy >= 0 && old(OLD_CLOSE, (uint32_t)copy, 0, 0) == 0);
    }
  if (other >= 0) {
    /* The first call that the supervisor sees makes it a node. */
    assert(create_handle(other, 4096, &handle) == 0 && old(OLD_CLOSE, (uint32_t)other, 0, 0) == 0);
  }
  /* x32: most hosts do not have it. */
  memcpy(low, &create, sizeof create);
  long made = syscall(X32 | 514, nvmap, 0xc0084e00, low);
  assert(made == -1 && (errno == ENOSYS || errno == ENOTTY || errno == EINVAL));
  static const char text[] = "the board works";
  char back[sizeof text] = "";
  buffer(nvmap, 8192, &handle);
  assert(write_buffer(nvmap, handle, text, 64, sizeof text) == 0 && read_buffer(nvmap, handle, back, 64, sizeof text) == 0);
  assert(strcmp(text, back) == 0 && open_channel(ctrl) >= 0);
  puts("works");
  return 0;
}
#endif
