/* A child does to the descriptors that it inherited, was sent, or took, what a program can do to an open file without closing it. Its
   parent has the same open files, and they must not end. */
#include "board.h"
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static int ctrl, tsg, channel, memory, reader, session, event;

/* What ends no open file: every kind of lock given up, every lease, a socket's two directions, a duplicate closed. */
static void drop(int fd) {
  struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
  fcntl(fd, F_OFD_SETLK, &all);
  fcntl(fd, F_SETLK, &all);
  all.l_type = F_RDLCK;
  fcntl(fd, F_OFD_SETLK, &all);
  all.l_type = F_UNLCK;
  fcntl(fd, F_OFD_SETLK, &all);
  flock(fd, LOCK_EX | LOCK_NB);
  flock(fd, LOCK_UN);
  fcntl(fd, F_SETLEASE, F_WRLCK);
  fcntl(fd, F_SETLEASE, F_RDLCK);
  fcntl(fd, F_SETLEASE, F_UNLCK);
  shutdown(fd, SHUT_RDWR);
  close(dup(fd));
}

static void drop_all(void) {
  int files[] = {ctrl, tsg, channel, memory, reader, session, event};
  for (unsigned i = 0; i < sizeof files / sizeof files[0]; i++) drop(files[i]);
}

static void works(long files) {
  assert(census("files ") == files);
  int more = open_channel(ctrl);
  assert(more >= 0 && census("files ") == files + 1);
  close(more);
}

/* One turn: a child that gets at the files in its own way and drops what it can. The files stay. */
static void turn(long files, void (*attack)(int parent)) {
  int status, parent = getpid();
  pid_t child = fork();
  if (child == 0) {
    attack(parent);
    _exit(0);
  }
  assert(waitpid(child, &status, 0) == child && status == 0);
  works(files);
}

static void inherited(int parent) {
  (void)parent;
  drop_all();
}

/* After execve, the descriptors have lost their flag of closing, and another program has them. */
static void executed(int parent) {
  (void)parent;
  char numbers[7][12];
  int files[] = {ctrl, tsg, channel, memory, reader, session, event};
  char *argv[9] = {"droppers"};
  for (int i = 0; i < 7; i++) {
    fcntl(files[i], F_SETFD, 0);
    snprintf(numbers[i], sizeof numbers[i], "%d", files[i]);
    argv[i + 1] = numbers[i];
  }
  execv("/proc/self/exe", argv);
  _exit(1);
}

/* The host may forbid it, as a Yama or seccomp rule does: nothing is taken then. */
static void taken(int parent) {
  int files[] = {ctrl, tsg, channel, memory, reader, session, event};
  int process = (int)syscall(SYS_pidfd_open, parent, 0);
  for (int i = 0; i < 7; i++) {
    int mine = (int)syscall(SYS_pidfd_getfd, process, files[i], 0);
    if (mine < 0) continue;
    drop(mine);
    close(mine);
  }
}

static void sent(int parent) {
  (void)parent;
  int pair[2], files[] = {ctrl, tsg, channel, memory, reader, session, event};
  char space[CMSG_SPACE(sizeof files)] = {0}, byte = 0;
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof files);
  memcpy(CMSG_DATA(rights), files, sizeof files);
  assert(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && sendmsg(pair[0], &message, 0) == 1);
  for (int i = 0; i < 7; i++) close(files[i]);
  memset(space, 0, sizeof space);
  assert(recvmsg(pair[1], &message, 0) == 1);
  memcpy(files, CMSG_DATA(rights), sizeof files);
  for (int i = 0; i < 7; i++) {
    drop(files[i]);
    close(files[i]);
  }
}

int main(int argc, char **argv) {
  if (argc > 1) {
    for (int i = 1; i < argc; i++) drop(atoi(argv[i]));
    return 0;
  }
  int nvmap = open_nvmap();
  ctrl = open_ctrl();
  long before = census("files ");
  tsg = open_tsg(ctrl);
  channel = open_channel(ctrl);
  memory = buffer(nvmap, 4096, 0);
  reader = open("/dev/nvgpu/igpu0/ctrl", O_RDONLY | O_CLOEXEC);
  session = open("/dev/nvgpu/igpu0/dbg", O_RDWR | O_CLOEXEC);
  struct { uint32_t cmd, id; int32_t fd; uint32_t pad; } asked = {1, 2, -1, 0};
  assert(tsg >= 0 && channel >= 0 && reader >= 0 && session >= 0 && ioctl(tsg, 0xc0105407, &asked) == 0);
  event = asked.fd;
  /* Where the files are mounted, a node that is opened for reading only is one from its first ioctl on. */
  assert(close(open_channel(reader)) == 0);
  long files = census("files ");
  assert(files > before + 5);
  void (*attacks[])(int) = {inherited, executed, taken, sent};
  for (int i = 0; i < 4; i++) turn(files, attacks[i]);
  /* What the program itself drops does not end them either, and their last close does. */
  drop_all();
  works(files);
  close(event);
  close(session);
  assert(census("files ") == files - 2);
  return 0;
}
