/* Many processes, each of which opens and closes what a device is made of, some times.
   Usage: crowd PROCESSES TIMES */
#include "board.h"

static int wait_for_others(void) {
  if (errno == ENOMEM) return usleep(1000);
  perror("a call failed");
  return 1;
}

static int one(int times) {
  for (int i = 0; i < times; i++) {
    int ctrl = open_ctrl(), nvmap = open_nvmap();
    if (ctrl < 0 || nvmap < 0) return 1;
    int space, tsg, channel, dmabufs[4];
    /* There are 512 of these, and there may be more processes than that. */
    while ((space = open_space(ctrl)) < 0) if (wait_for_others()) return 2;
    while ((tsg = open_tsg(ctrl)) < 0) if (wait_for_others()) return 3;
    while ((channel = open_channel(ctrl)) < 0) if (wait_for_others()) return 4;
    for (int b = 0; b < 4; b++) dmabufs[b] = buffer(nvmap, 65536, 0);
    volatile uint32_t *page = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, dmabufs[0], 0);
    if (page == MAP_FAILED) return 5;
    page[0] = 1;
    munmap((void *)page, 65536);
    for (int b = 0; b < 4; b++) close(dmabufs[b]);
    close(channel), close(tsg), close(space), close(nvmap), close(ctrl);
  }
  return 0;
}

int main(int argc, char **argv) {
  assert(argc == 3);
  int processes = atoi(argv[1]), times = atoi(argv[2]), start[2], failed = 0, status;
  assert(pipe(start) == 0);
  for (int i = 0; i < processes; i++) {
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
      char byte;
      close(start[1]);
      /* All of them begin when the last one is there. */
      if (read(start[0], &byte, 1) != 0) _exit(9);
      _exit(one(times));
    }
  }
  close(start[1]);
  while (wait(&status) > 0) {
    if (status != 0 && !failed++) fprintf(stderr, "a process ended with %#x\n", status);
  }
  printf("left: files %ld channels %ld tsgs %ld handles %ld memory %ld\n", census("files "), census("channels "),
         census("tsgs "), census("handles "), census("memory "));
  return failed != 0;
}
