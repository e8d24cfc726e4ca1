/* Takes buffers until there are no more, works then, frees some and works again. */
#include "board.h"

int main(void) {
  int nvmap = open_nvmap();
  assert(nvmap >= 0);
  static uint32_t handles[80000];
  int taken = 0;
  while (taken < 80000) {
    if (create_handle(nvmap, 4096, &handles[taken]) < 0) break;
    if (alloc_handle(nvmap, handles[taken]) < 0) break;
    /* The memory is made when somebody wants to see it. */
    struct pair file = {0, handles[taken]};
    if (ioctl(nvmap, 0xc0084e0f, &file) < 0) break;
    close((int)file.first);
    taken++;
  }
  assert(errno == ENOMEM || errno == EMFILE || errno == ENFILE);
  for (int round = 0; round < 200; round++) {
    int ctrl = open_ctrl();
    if (ctrl >= 0) close(ctrl);
    ioctl(nvmap, 0x4e04, handles[round]);
  }
  int ctrl = open_ctrl();
  assert(ctrl >= 0);
  printf("%d\n", taken);
  return 0;
}
