/* Takes the memory of every kind of file away from under the kernel, as far as it lets itself be taken. */
#include "board.h"

static char bytes[8192];

/* Whoever else is under this kernel still has it. */
static void the_board_lives(void) {
  pid_t child = fork();
  if (child == 0) _exit(open_channel(open_ctrl()) < 0);
  int status;
  assert(waitpid(child, &status, 0) == child && status == 0);
}

static void cut(int fd) {
  assert(ftruncate(fd, 0) == -1 && ftruncate(fd, 4096) == -1 && ftruncate(fd, 1 << 30) == -1);
  assert(fallocate(fd, 0, 0, 1 << 30) == -1);
  assert(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == -1);
  fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096);
}

int main(void) {
  int ctrl = open_ctrl(), nvmap = open_nvmap();
  uint32_t handle;
  int dmabuf = buffer(nvmap, sizeof bytes, &handle);
  cut(dmabuf);
  assert(write_buffer(nvmap, handle, bytes, 0, sizeof bytes) == 0);
  the_board_lives();
  cut(ctrl);
  the_board_lives();
  int ring = open("/dev/nvgpu/igpu0/ctxsw", O_RDWR);
  assert(ring >= 0);
  cut(ring);
  the_board_lives();
  /* The program's own file as a buffer, where the host lets that be seen from outside. */
  int own = memfd_create("own", 0);
  assert(ftruncate(own, sizeof bytes) == 0);
  char *pages = mmap(0, sizeof bytes, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
  assert(pages != MAP_FAILED);
  memset(pages, 1, sizeof bytes);
  struct { uint64_t va; uint32_t size, flags, handle, pad; } from = {(uintptr_t)pages, sizeof bytes, 0, 0, 0};
  if (ioctl(nvmap, 0xc0184e16, &from) == 0) {
    assert(write_buffer(nvmap, from.handle, bytes, 0, sizeof bytes) == 0 && pages[4096] == 0);
    assert(ftruncate(own, 4096) == 0);
    assert(write_buffer(nvmap, from.handle, bytes, 0, sizeof bytes) == 0);
    assert(read_buffer(nvmap, from.handle, bytes, 4096, 4096) == 0);
    puts("own memory was taken away");
  } else {
    puts("own memory cannot be seen here");
  }
  the_board_lives();
  return 0;
}
