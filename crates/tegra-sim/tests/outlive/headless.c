/* Uses its board until it is killed. A call that fails is written to a file, because a program must never lose its board.
   Usage: headless FILE-FOR-FAILURES FILE-FOR-READINESS */
#include "board.h"

int main(int argc, char **argv) {
  assert(argc == 3);
  /* One that left its parent's session and whose parent has ended. */
  if (fork() == 0) {
    setsid();
    if (fork() != 0) _exit(0);
  }
  int ctrl = open_ctrl();
  close(open(argv[2], O_CREAT | O_WRONLY | O_APPEND, 0600));
  for (;;) {
    int channel = open_channel(ctrl);
    if (channel < 0) {
      int file = open(argv[1], O_CREAT | O_WRONLY | O_APPEND, 0600);
      dprintf(file, "%s\n", strerror(errno));
      _exit(1);
    }
    close(channel);
  }
}
