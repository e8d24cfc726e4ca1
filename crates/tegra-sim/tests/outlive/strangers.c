/* Two processes that do not know each other, on one board. The second one tries everything that a number, a descriptor or a
   doorbell allows it to try with what is the first one's (docs/isolation.md). */
#include "channel.h"
#include <sys/socket.h>

/* What the first process tells the other one about itself. */
struct told {
  uint32_t handle, token;
  int dmabuf, channel, space;
  uint64_t va;
};

static void fails(int result, int number) {
  if (result != -1 || errno != number) fprintf(stderr, "%d, %s; expected %s\n", result, strerror(errno), strerror(number));
  assert(result == -1 && errno == number);
}

static void send_descriptor(int socket, int fd) {
  char byte = 0, space[CMSG_SPACE(sizeof fd)] = {0};
  struct iovec one = {&byte, 1};
  struct msghdr message = {0, 0, &one, 1, space, sizeof space, 0};
  struct cmsghdr *control = CMSG_FIRSTHDR(&message);
  control->cmsg_level = SOL_SOCKET, control->cmsg_type = SCM_RIGHTS, control->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(control), &fd, sizeof fd);
  assert(sendmsg(socket, &message, 0) == 1);
}

static int receive_descriptor(int socket) {
  char byte, space[CMSG_SPACE(sizeof(int))];
  struct iovec one = {&byte, 1};
  struct msghdr message = {0, 0, &one, 1, space, sizeof space, 0};
  assert(recvmsg(socket, &message, 0) == 1);
  int fd;
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return fd;
}

static void strange(int socket) {
  struct told told;
  assert(read(socket, &told, sizeof told) == sizeof told);
  struct lane own = bring_up();
  int bare = open_nvmap();
  uint32_t word = 1;
  /* A handle is only valid in the process that made it. */
  fails(write_buffer(bare, told.handle, &word, 0, 4), EINVAL);
  fails(read_buffer(bare, told.handle, &word, 0, 4), EINVAL);
  assert(get_fd(bare, told.handle) == -1);
  free_handle(bare, told.handle);
  /* A descriptor is only valid in the process that opened it. */
  int number = 900 + told.channel;
  fails(ioctl(own.space, 0xc0044101, &number), EINVAL);
  fails(ioctl(number, 0xc0184866, &word), EBADF);
  /* An address belongs to one address space. The access is a fault of this process's own channel alone. */
  submit(&own, told.va + (1ull << 33), 66);
  ring(&own, own.token);
  while (*own.status != 0xffff) usleep(100);
  /* A token names any channel of the GPU, also on a board. It only lets the GPU look at work that the channel's owner has submitted. */
  for (int i = 0; i < 1000; i++) ring(&own, told.token);
  /* A process that receives a descriptor can use what is behind it. */
  int dmabuf = receive_descriptor(socket);
  volatile uint32_t *shared = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, dmabuf, 0);
  assert(shared != MAP_FAILED && shared[1024] == 5);
  shared[1025] = 6;
  assert(write(socket, "", 1) == 1);
  _exit(0);
}

int main(void) {
  int pair[2];
  assert(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  pid_t stranger = fork();
  if (stranger == 0) {
    close(pair[0]);
    strange(pair[1]);
  }
  close(pair[1]);
  struct lane lane = bring_up();
  uint32_t handle;
  int dmabuf = buffer(lane.nvmap, 8192, &handle);
  volatile uint32_t *memory = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, dmabuf, 0);
  assert(memory != MAP_FAILED);
  memory[1024] = 5;
  struct told told = {handle, lane.token, dmabuf, lane.channel, lane.space, lane.va};
  assert(write(pair[0], &told, sizeof told) == sizeof told);
  send_descriptor(pair[0], dmabuf);
  char byte;
  assert(read(pair[0], &byte, 1) == 1);
  /* The first process sees only the change that it allowed. */
  assert(memory[1024] == 5 && memory[1025] == 6 && memory[0] == 0 && *lane.status == 0);
  uint32_t word = 0;
  assert(read_buffer(lane.nvmap, handle, &word, 4096, 4) == 0 && word == 5);
  submit(&lane, lane.va + 4096, 7);
  ring(&lane, lane.token);
  while (lane.push[1024] != 7) usleep(100);
  int status;
  assert(waitpid(stranger, &status, 0) == stranger && status == 0);
  return 0;
}
