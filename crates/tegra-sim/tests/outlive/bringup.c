/* Brings up a channel, has the GPU release a semaphore, and waits for it: every kind of call that a runtime makes before its
   first work. Prints how many ioctls that took. With an argument, the semaphore is at an address where nothing is, and the
   program waits for the error notifier. */
#include "channel.h"

int main(int argc, char **argv) {
  (void)argv;
  struct lane lane = bring_up();
  submit(&lane, argc > 1 ? 0x1234567000 : lane.va + 4096, 7);
  ring(&lane, lane.token);
  while (argc > 1 ? *lane.status != 0xffff : lane.push[1024] != 7) usleep(100);
  printf("%d\n", calls);
  return 0;
}
