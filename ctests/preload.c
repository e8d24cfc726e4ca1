/* Tests under LD_PRELOAD what programs do with descriptors: duplicates, inheritance through fork and exec, vfork, threads,
 * reuse of numbers, and questions about paths. It is built with -fno-plt, and a static constructor opens the first node. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tegrarm_abi.h"

#define CTL "/dev/nvidiactl"
enum { THREADS = 8, ROUNDS = 200 };

static int early = -1;

__attribute__((constructor)) static void before_main(void)
{
    early = open(CTL, O_RDWR | O_CLOEXEC);
}

static int ctl(int cloexec)
{
    int fd = open(CTL, O_RDWR | cloexec);
    assert(fd >= 0);
    return fd;
}

/* Whether a descriptor is a control node, which answers a version query. */
static int is_ctl(int fd)
{
    nv_ioctl_rm_api_version_t version = {.cmd = '2'};
    return ioctl(fd, _IOWR('F', NV_ESC_CHECK_VERSION_STR, nv_ioctl_rm_api_version_t), &version) == 0 && version.reply == 1;
}

static uint32_t alloc_client(int fd)
{
    NVOS21_PARAMETERS p = {.hClass = NV01_ROOT_CLIENT};
    assert(ioctl(fd, _IOWR('F', NV_ESC_RM_ALLOC, NVOS21_PARAMETERS), &p) == 0 && p.status == NV_OK);
    return p.hObjectNew;
}

static uint32_t ask(int fd, uint32_t client)
{
    NVOS54_PARAMETERS p = {.hClient = client, .hObject = client};
    assert(ioctl(fd, _IOWR('F', NV_ESC_RM_CONTROL, NVOS54_PARAMETERS), &p) == 0);
    return p.status;
}

static void wait_for(pid_t child)
{
    int status;
    assert(waitpid(child, &status, 0) == child);
    assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void paths(void)
{
    struct stat st;
    assert(stat(CTL, &st) == 0 && S_ISCHR(st.st_mode) && major(st.st_rdev) == 195 && minor(st.st_rdev) == 255);
    assert(lstat("/dev/nvidia0", &st) == 0 && minor(st.st_rdev) == 0);
    assert(fstatat(AT_FDCWD, "/dev/nvidia-uvm", &st, 0) == 0 && S_ISCHR(st.st_mode));
    struct statx x;
    assert(statx(AT_FDCWD, CTL, 0, STATX_BASIC_STATS, &x) == 0 && S_ISCHR(x.stx_mode) && x.stx_rdev_major == 195);
    assert(access(CTL, R_OK | W_OK) == 0 && faccessat(AT_FDCWD, CTL, R_OK, 0) == 0);
    assert(access(CTL, X_OK) == -1 && errno == EACCES);
    assert(stat("/dev/nvidia1", &st) == -1 && errno == ENOENT);
    assert(open("/dev/nvidia7", O_RDWR) == -1 && errno == ENOENT);
    int fd = ctl(0);
    assert(fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && minor(st.st_rdev) == 255);
    assert(close(fd) == 0);
    int dev = open("/dev", O_RDONLY | O_DIRECTORY);
    fd = openat(dev, "nvidiactl", O_RDWR);
    assert(is_ctl(fd) && close(fd) == 0 && close(dev) == 0);
    /* Paths that only look like a node's path are passed on to libc. */
    assert(stat("/dev/null", &st) == 0 && major(st.st_rdev) == 1);
    fd = open("/dev/null", O_RDWR);
    assert(fd >= 0 && !is_ctl(fd) && close(fd) == 0);
    assert(open("/dev/nvidia-no-such-node", O_RDWR) == -1 && errno == ENOENT);
}

static void duplicates(void)
{
    int fd = ctl(O_CLOEXEC), client = (int)alloc_client(fd);
    int copies[] = {dup(fd), fcntl(fd, F_DUPFD, 100), fcntl(fd, F_DUPFD_CLOEXEC, 0), dup2(fd, 200), dup3(fd, 201, O_CLOEXEC)};
    assert(close(fd) == 0);
    for (unsigned i = 0; i < sizeof copies / sizeof *copies; i++) {
        assert(is_ctl(copies[i]) && ask(copies[i], (uint32_t)client) == NV_OK);
        assert(close(copies[i]) == 0);
    }
    int other = ctl(O_CLOEXEC);
    assert(ask(other, (uint32_t)client) == NV_ERR_INVALID_CLIENT && "the client went with its last descriptor");

    /* One number belongs to different files in turn. */
    int null = open("/dev/null", O_RDWR);
    client = (int)alloc_client(other);
    assert(dup2(null, other) == other && !is_ctl(other) && errno == ENOTTY);
    fd = ctl(O_CLOEXEC);
    assert(ask(fd, (uint32_t)client) == NV_ERR_INVALID_CLIENT && "dup2 closed the last descriptor");
    assert(dup2(fd, null) == null && is_ctl(null));
    assert(close(fd) == 0 && close(null) == 0 && close(other) == 0);
    assert(close(fd) == -1 && errno == EBADF);
    assert(ioctl(fd, _IOWR('F', NV_ESC_CHECK_VERSION_STR, nv_ioctl_rm_api_version_t), NULL) == -1 && errno == EBADF);
}

/* Descriptors are closed by a direct system call, which no preload library sees. Afterwards the number must refer to the file
 * that the kernel has under it. */
static void unseen(void)
{
    int fd = ctl(O_CLOEXEC), ends[2], waiting = -1;
    uint32_t client = alloc_client(fd);
    assert(syscall(SYS_close, fd) == 0);
    assert(pipe(ends) == 0 && (ends[0] == fd || ends[1] == fd) && "the number is used again");
    assert(write(ends[1], "abc", 3) == 3);
    assert(ioctl(ends[0], FIONREAD, &waiting) == 0 && waiting == 3);
    assert(!is_ctl(fd) && errno == ENOTTY);
    assert(close(ends[0]) == 0 && close(ends[1]) == 0);
    /* A stream closes its descriptor inside libc. */
    fd = ctl(O_CLOEXEC);
    FILE *stream = fdopen(fd, "r+");
    assert(stream && is_ctl(fileno(stream)) && fclose(stream) == 0);
    assert(!is_ctl(fd) && errno == EBADF);
    /* One call closes a range of descriptors. */
    fd = ctl(O_CLOEXEC);
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 300);
    assert(copy >= 300 && syscall(SYS_close_range, copy, copy, 0) == 0);
    assert(!is_ctl(copy) && errno == EBADF && is_ctl(fd));
    /* A later open notices that the first file is closed. Its client does not exist any more. */
    (void)client;
    assert(close(fd) == 0);
}

static void inheritance(char **argv)
{
    int fd = ctl(0);
    uint32_t client = alloc_client(fd);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (!is_ctl(fd) || ask(fd, client) != NV_ERR_INVALID_CLIENT)
            _exit(1); /* The parent's client must not be usable in the child. */
        uint32_t own = alloc_client(fd);
        if (own == client || ask(fd, own) != NV_OK)
            _exit(2);
        exit(0); /* This runs the exit handlers. */
    }
    wait_for(child);
    assert(ask(fd, client) == NV_OK && "a child's end ends nothing of its parent's");

    char number[16];
    snprintf(number, sizeof number, "%d", fd);
    child = fork();
    if (child == 0)
        execv("/proc/self/exe", (char *[]){argv[0], "inherited", number, NULL});
    wait_for(child);

    child = vfork();
    if (child == 0) {
        close(fd); /* This closes the child's descriptor only, although the child shares the parent's memory. */
        execv("/proc/self/exe", (char *[]){argv[0], "nothing", NULL});
        _exit(1);
    }
    wait_for(child);
    assert(is_ctl(fd) && ask(fd, client) == NV_OK);
    assert(close(fd) == 0);
}

/* A number belonged to another file when it was last looked up, and it is then closed in a way that no preload library sees. */
static int stale(void)
{
    int null = open("/dev/null", O_RDWR), waiting;
    assert(null >= 0 && ioctl(null, FIONREAD, &waiting) == -1 && errno == ENOTTY);
    assert(syscall(SYS_close, null) == 0);
    return null;
}

static int pass(int fd)
{
    int ends[2];
    char byte = 0, room[CMSG_SPACE(sizeof fd)] = {0};
    assert(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    struct iovec iov = {&byte, 1};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
    *head = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    assert(sendmsg(ends[0], &msg, 0) == 1);
    int number = stale();
    assert(recvmsg(ends[1], &msg, 0) == 1);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof fd);
    assert(fd == number && "the lowest free number");
    assert(close(ends[0]) == 0 && close(ends[1]) == 0);
    return fd;
}

/* Descriptors appear in ways that no preload library sees. */
static void handed(void)
{
    int fd = ctl(O_CLOEXEC), number = stale();
    uint32_t client = alloc_client(fd);
    int copy = (int)syscall(SYS_dup, fd);
    assert(copy == number && ask(copy, client) == NV_OK && "a duplicate is the same file");
    int passed = pass(fd);
    assert(ask(passed, client) == NV_OK && "so is what came through a socket");
    assert(close(fd) == 0 && close(copy) == 0 && ask(passed, client) == NV_OK);
    assert(close(passed) == 0 && !is_ctl(passed) && errno == EBADF);
}

/* A node that has nothing to map cannot be mapped. Other files can be mapped. */
static void mappings(void)
{
    static const char *const nodes[] = {CTL, "/dev/nvidia0", "/dev/nvidia-uvm"};
    for (unsigned i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        int fd = open(nodes[i], O_RDWR | O_CLOEXEC);
        assert(fd >= 0);
        static const int kinds[] = {MAP_SHARED, MAP_PRIVATE, MAP_SHARED_VALIDATE};
        for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++)
            assert(mmap(NULL, 4096, PROT_READ | PROT_WRITE, kinds[k], fd, 0) == MAP_FAILED && errno == EINVAL);
        void *any = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
        assert(any != MAP_FAILED && munmap(any, 4096) == 0 && "an anonymous mapping has no file");
        assert(close(fd) == 0);
    }
    int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    void *text = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, self, 0);
    assert(text != MAP_FAILED && munmap(text, 4096) == 0 && close(self) == 0);
}

/* posix_spawn changes descriptors inside libc, in the child. */
static void spawned(char **argv)
{
    enum { SPAWNED = 177 };
    int fd = ctl(O_CLOEXEC);
    uint32_t client = alloc_client(fd);
    posix_spawn_file_actions_t actions;
    assert(posix_spawn_file_actions_init(&actions) == 0 && posix_spawn_file_actions_adddup2(&actions, fd, SPAWNED) == 0);
    assert(posix_spawn_file_actions_addclose(&actions, fd) == 0);
    char number[16];
    snprintf(number, sizeof number, "%d", SPAWNED);
    pid_t child;
    assert(posix_spawn(&child, "/proc/self/exe", &actions, NULL, (char *[]){argv[0], "inherited", number, NULL}, environ) == 0);
    wait_for(child);
    assert(posix_spawn_file_actions_destroy(&actions) == 0);
    assert(ask(fd, client) == NV_OK && "what the child closed is open here");
    assert(close(fd) == 0);
}

static volatile sig_atomic_t handled, refused, odd;

static void on_alarm(int signal)
{
    (void)signal;
    int before = errno;
    if (!is_ctl(early)) {
        refused++;
        odd += errno != EBUSY;
    }
    handled++;
    errno = before;
}

/* A signal handler makes a call on a node. The call is answered, or refused if the handler interrupted another such call. It
 * is never passed on to another file. */
static void handlers(void)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART}, old;
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    assert(sigaction(SIGALRM, &action, &old) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
    while (handled < 500 || refused == 0)
        assert(is_ctl(early) && "the interrupted call goes on");
    assert(setitimer(ITIMER_REAL, &never, NULL) == 0 && sigaction(SIGALRM, &old, NULL) == 0);
    assert(odd == 0);
}

static void *hammer(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        int fd = ctl(O_CLOEXEC), copy = dup(fd), null = open("/dev/null", O_RDWR);
        uint32_t client = alloc_client(fd);
        assert(close(fd) == 0);
        assert(is_ctl(copy) && ask(copy, client) == NV_OK && !is_ctl(null));
        assert(close(null) == 0 && close(copy) == 0);
    }
    return arg;
}

/* The process forks while other threads are inside the library. The child starts with a new state, whichever locks these
 * threads hold. */
static void *breed(void *arg)
{
    for (int i = 0; i < ROUNDS / 10; i++) {
        pid_t child = fork();
        if (child == 0) {
            int fd = open(CTL, O_RDWR | O_CLOEXEC);
            if (fd < 0 || !is_ctl(fd) || !is_ctl(early))
                _exit(1);
            uint32_t own = alloc_client(fd);
            _exit(ask(fd, own) == NV_OK && close(fd) == 0 ? 0 : 2);
        }
        wait_for(child);
    }
    return arg;
}

/* Whether memory ends at or below 2^39, where the GPU can have it at the same address. */
static int is_low(const void *memory, size_t size)
{
    return (uintptr_t)memory + size <= (uintptr_t)1 << 39;
}

static unsigned count_mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    assert(maps);
    unsigned lines = 0;
    for (int c; (c = fgetc(maps)) != EOF;)
        lines += c == '\n';
    fclose(maps);
    return lines;
}

/* Shared memory without a file and without an address lies low. Any other mapping is the program's own affair. */
static void placed(void)
{
    enum { RW = PROT_READ | PROT_WRITE, SHARED = MAP_SHARED | MAP_ANONYMOUS, PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS, MIB = 1 << 20 };
    const size_t large = (size_t)128 * MIB;
    unsigned before = count_mappings();
    errno = 77;
    char *a = mmap(NULL, 5000, RW, SHARED, -1, 0), *b = mmap64(NULL, large, RW, SHARED, -1, 0);
    assert(errno == 77 && "a call that succeeds leaves errno");
    assert(a != MAP_FAILED && b != MAP_FAILED);
    assert(is_low(a, 5000) && is_low(b, large));
    assert((uintptr_t)b % (2 * MIB) == 0 && "large pages fit");
    assert(a[4999] == 0 && b[large - 1] == 0);
    b[large - 1] = 'x';
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        a[1] = 'y';
        _exit(b[large - 1] == 'x' ? 0 : 1);
    }
    wait_for(child);
    assert(a[1] == 'y' && "it is shared");

    /* Addresses that the program gives are kept, as a wish or as an order. */
    char *wish = (char *)0x123450000000, *wished = mmap(wish, 4096, RW, SHARED, -1, 0);
    assert(wished == wish && mmap(wish, 4096, RW, SHARED | MAP_FIXED, -1, 0) == wish);
    assert(mmap(wish, 4096, RW, SHARED | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED && errno == EEXIST);
    assert(munmap(wish, 4096) == 0);
    /* Private memory, and files, lie where libc puts them. */
    char *own = mmap(NULL, 4096, RW, PRIVATE, -1, 0);
    assert(own != MAP_FAILED && is_low(own, 4096) == is_low(&large, sizeof large) && munmap(own, 4096) == 0);
    /* A mistake has the errno of mmap(2). Huge pages are there or not, and if they are, they lie low, too. */
    assert(mmap(NULL, 0, RW, SHARED, -1, 0) == MAP_FAILED && errno == EINVAL);
    assert(mmap(NULL, (size_t)1 << 50, RW, SHARED, -1, 0) == MAP_FAILED && errno == ENOMEM);
    char *huge = mmap(NULL, 2 * MIB, RW, SHARED | MAP_HUGETLB | 21 << MAP_HUGE_SHIFT, -1, 0);
    assert(huge == MAP_FAILED ? errno == ENOMEM || errno == EINVAL : is_low(huge, 2 * MIB) && munmap(huge, 2 * MIB) == 0);

    /* The next place is taken, so the memory gets another low one. */
    char *first = mmap(NULL, MIB, RW, SHARED, -1, 0);
    assert(mmap(first - MIB, MIB, RW, PRIVATE | MAP_FIXED_NOREPLACE, -1, 0) == first - MIB);
    char *second = mmap(NULL, MIB, RW, SHARED, -1, 0);
    assert(is_low(second, MIB) && second != first - MIB);
    assert(munmap(first - MIB, 2 * MIB) == 0 && munmap(second, MIB) == 0);

    /* 256 GiB of addresses are given out again and again: nothing but the mappings themselves is kept. */
    for (unsigned i = 0; i < 5000; i++) {
        char *again = mmap(NULL, large, RW, SHARED | MAP_NORESERVE, -1, 0);
        assert(again != MAP_FAILED && is_low(again, large));
        assert((again + large <= b || b + large <= again) && "what is mapped stays");
        assert(munmap(again, large) == 0);
    }
    assert(munmap(a, 5000) == 0 && munmap(b, large) == 0);
    assert(count_mappings() <= before + 1 && "a buffer of stdio may have come");
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "inherited") == 0)
        return is_ctl(atoi(argv[2])) ? 0 : 1;
    if (argc == 2)
        return 0;
    if (early < 0) {
        fprintf(stderr, "preload: %s: %s\n", CTL, strerror(errno));
        return 1;
    }
    assert(is_ctl(early));
    paths();
    duplicates();
    unseen();
    inheritance(argv);
    handed();
    mappings();
    placed();
    spawned(argv);
    handlers();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], NULL, i == 0 ? breed : hammer, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(is_ctl(early) && close(early) == 0);
    puts("preload: ok");
    return 0;
}
