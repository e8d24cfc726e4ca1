/* Allocates under a timer. Each buffer is allocated once: a call that ran twice would find that it has memory (EEXIST). What a
   handler without SA_RESTART interrupts is made again by the program.
   Usage: signals MICROSECONDS restart|fail BUFFERS */
#include "board.h"

static long interrupted;

static int again(int result) {
  if (result == -1 && errno == EINTR) {
    interrupted++;
    return 1;
  }
  return 0;
}

int main(int argc, char **argv) {
  assert(argc == 4);
  int restarts = strcmp(argv[2], "restart") == 0;
  int nvmap = open_nvmap(), ctrl;
  start_timer(atol(argv[1]), restarts ? SA_RESTART : 0);
  do ctrl = open_ctrl(); while (again(ctrl));
  assert(ctrl >= 0);
  long files = -1;
  for (long i = atol(argv[3]); i > 0; i--) {
    uint32_t handle;
    int result, fd, channel;
    do result = create_handle(nvmap, 4096, &handle); while (again(result));
    assert(result == 0);
    do result = alloc_handle(nvmap, handle); while (again(result));
    if (result) perror("alloc");
    assert(result == 0);
    do fd = get_fd(nvmap, handle); while (again(fd));
    assert(fd >= 0);
    close(fd);
    do channel = open_channel(ctrl); while (again(channel));
    if (channel < 0) perror("channel");
    assert(channel >= 0);
    close(channel);
    do { errno = 0; free_handle(nvmap, handle); } while (errno == EINTR);
    if (files < 0) files = fd;
    /* A call that was made twice would have left a descriptor. */
    assert(fd == files && channel == files);
  }
  struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &never, 0);
  assert(!restarts || interrupted == 0);
  printf("interrupted %ld\n", interrupted);
  return 0;
}
