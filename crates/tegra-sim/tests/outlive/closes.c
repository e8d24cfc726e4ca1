/* When a file ends: with its last descriptor, wherever that is, and its last mapping. */
#include "board.h"
#include <sys/socket.h>

static long channels(void) { return census("channels "); }
static long files(void) { return census("files "); }

static void send_away(int socket, int fd) {
  char space[CMSG_SPACE(sizeof fd)] = {0}, byte = 0;
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  assert(sendmsg(socket, &message, 0) == 1);
}

int main(void) {
  int ctrl = open_ctrl(), nvmap = open_nvmap();
  long none = channels();
  /* Duplicates are one open file. */
  int channel = open_channel(ctrl), second = dup(channel);
  assert(channels() == none + 1);
  close(channel);
  assert(channels() == none + 1);
  close(second);
  assert(channels() == none);
  /* A child has it, too, and its end is an end. */
  int hold[2];
  assert(pipe(hold) == 0);
  channel = open_channel(ctrl);
  pid_t child = fork();
  if (child == 0) {
    char byte;
    close(hold[1]);
    _exit(read(hold[0], &byte, 1) != 0);
  }
  close(channel);
  assert(channels() == none + 1);
  close(hold[0]);
  close(hold[1]);
  int status;
  assert(waitpid(child, &status, 0) == child && status == 0);
  assert(channels() == none);
  /* While the descriptor is in a socket, no process has it, but the file is open. */
  int sockets[2];
  assert(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  channel = open_channel(ctrl);
  send_away(sockets[0], channel);
  close(channel);
  assert(channels() == none + 1);
  close(sockets[0]);
  close(sockets[1]);
  assert(channels() == none);
  /* Opened once more by itself, and that closed: the first is open. */
  channel = open_channel(ctrl);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", channel);
  int third = open(path, O_RDWR);
  if (third >= 0) close(third);
  assert(channels() == none + 1);
  close(channel);
  assert(channels() == none);
  /* A buffer with several descriptors is one file; a mapping keeps it. */
  long before = files();
  uint32_t handle;
  int one = buffer(nvmap, 4096, &handle), two = get_fd(nvmap, handle), three = get_fd(nvmap, handle);
  assert(files() == before + 1);
  void *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, two, 0);
  assert(page != MAP_FAILED);
  close(one);
  close(two);
  close(three);
  assert(files() == before + 1);
  munmap(page, 4096);
  assert(files() == before);
  one = get_fd(nvmap, handle);
  assert(one >= 0 && files() == before + 1);
  /* FREE of a descriptor closes one of them. */
  two = dup(one);
  free_handle(nvmap, (uint32_t)one);
  assert(files() == before + 1);
  close(two);
  free_handle(nvmap, handle);
  assert(files() == before);
  /* What is a socket on the inside: a debugger's session, a group's events. */
  int debugger = open("/dev/nvgpu/igpu0/dbg", O_RDWR), tsg = open_tsg(ctrl);
  assert(debugger >= 0 && tsg >= 0);
  struct { uint32_t cmd, id; int32_t fd; uint32_t pad; } event = {1, 2, -1, 0};
  assert(ioctl(tsg, 0xc0105407, &event) == 0);
  assert(files() == before + 3);
  child = fork();
  if (child == 0) _exit(0);
  assert(waitpid(child, &status, 0) == child);
  close(debugger);
  close(tsg);
  close(event.fd);
  assert(files() == before);
  return 0;
}
