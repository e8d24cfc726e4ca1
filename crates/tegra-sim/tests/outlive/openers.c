/* Opens a file of sysfs for writing as often as it can, writes lines without an end, and then works. A child tries the same meanwhile. */
#include "board.h"

#define FILE_OF_SYSFS "/sys/class/devfreq/17000000.gpu/min_freq"
enum { MOST = 256 };

static int open_all(int *files) {
  int opened = 0;
  while (opened <= MOST) {
    files[opened] = open(FILE_OF_SYSFS, O_WRONLY | O_CLOEXEC);
    if (files[opened] < 0) break;
    opened++;
  }
  assert(opened == MOST && errno == EMFILE);
  return opened;
}

int main(void) {
  static int files[MOST + 1];
  static char piece[1 << 16];
  signal(SIGPIPE, SIG_IGN);
  open_all(files);
  /* Another process has a budget of its own. */
  pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < MOST; i++) close(files[i]);
    open_all(files);
    _exit(0);
  }
  int status;
  assert(waitpid(child, &status, 0) == child && status == 0);
  /* 128 MiB without the end of a line. */
  memset(piece, '7', sizeof piece);
  for (int i = 0; i < 2048; i++) assert(write(files[i % 4], piece, sizeof piece) == sizeof piece);
  for (int i = 0; i < MOST; i++) assert(close(files[i]) == 0);
  int again = -1;
  while ((again = open(FILE_OF_SYSFS, O_WRONLY)) < 0) assert(errno == EMFILE);
  uint32_t handle;
  int nvmap = open_nvmap();
  assert(nvmap >= 0 && create_handle(nvmap, 4096, &handle) == 0);
  /* The supervisor is the parent. */
  char path[64], line[256];
  snprintf(path, sizeof path, "/proc/%d/status", getppid());
  FILE *file = fopen(path, "r");
  assert(file);
  long peak = 0, threads = 0;
  while (fgets(line, sizeof line, file)) {
    sscanf(line, "VmHWM: %ld", &peak);
    sscanf(line, "Threads: %ld", &threads);
  }
  printf("%ld %ld\n", peak, threads);
  return 0;
}
