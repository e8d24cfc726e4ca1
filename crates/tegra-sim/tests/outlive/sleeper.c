/* Waits for a semaphore that is never released. A signal ends the wait, or the wait continues after the signal's handler. */
#include "board.h"

static volatile uint32_t *semaphore;
static volatile int rings;

static void ring(int number) {
  (void)number;
  if (++rings == 3) *semaphore = 1;
}

int main(void) {
  int ctrl = open_ctrl(), nvmap = open_nvmap();
  int channel = open_channel(ctrl), dmabuf = buffer(nvmap, 4096, 0);
  int space = open_space(ctrl), tsg = open_tsg(ctrl);
  assert(ioctl(space, 0xc0044101, &channel) == 0 && ioctl(tsg, 0x40045401, &channel) == 0);
  semaphore = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, dmabuf, 0);
  assert(channel >= 0 && semaphore != MAP_FAILED);
  struct { uint32_t type, timeout, dmabuf, offset, payload, pad; } wait = {1, 0, (uint32_t)dmabuf, 0, 1, 0};
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = ring;
  assert(sigaction(SIGALRM, &action, 0) == 0);
  struct itimerval soon = {{0, 100000}, {0, 100000}};
  assert(setitimer(ITIMER_REAL, &soon, 0) == 0);
  /* Without SA_RESTART the first one ends the wait. */
  int result = ioctl(channel, 0xc0184866, &wait);
  if (result != -1 || errno != EINTR) perror("wait");
  assert(result == -1 && errno == EINTR);
  assert(rings >= 1 && *semaphore == 0);
  /* With it the wait outlives them, until one releases the semaphore. */
  rings = 0;
  action.sa_flags = SA_RESTART;
  assert(sigaction(SIGALRM, &action, 0) == 0);
  assert(ioctl(channel, 0xc0184866, &wait) == 0 && rings == 3);
  return 0;
}
