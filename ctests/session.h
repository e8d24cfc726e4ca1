/* What all C tests use: a check that aborts with the library's sentence, counts of what may leak, and the bring-up of examples/c. */
#ifndef TEGRARM_CTESTS_SESSION_H
#define TEGRARM_CTESTS_SESSION_H

#include <assert.h>
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tegrarm.h"
#include "tegrarm_abi.h"

#define CHECK(call) check(__FILE__, __LINE__, #call, (call))

static inline void check(const char *file, int line, const char *call, NV_STATUS status)
{
    if (status == NV_OK)
        return;
    char why[512] = "";
    tegrarm_last_error(why, sizeof why);
    fprintf(stderr, "%s:%d: %s\n  %s: %s\n", file, line, call, tegrarm_status_name(status), why);
    abort();
}

/* The number of open file descriptors of this process, without the descriptor that is used for counting. */
static inline int open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    assert(dir);
    int count = -3; /* ".", ".." and the directory itself */
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

/* The number of shared mappings in /proc/self/maps. A leaked mapping of a device or a buffer is one of them. */
static inline int shared_mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    assert(maps);
    char line[512];
    int count = 0;
    while (fgets(line, sizeof line, maps)) {
        char perms[5];
        if (sscanf(line, "%*s %4s", perms) == 1 && perms[3] == 's')
            count++;
    }
    fclose(maps);
    return count;
}

/* The whole of a test program: the second run of `all` may leave no descriptor and no mapping behind. The first run may, because
 * it loads libraries and opens the backend. */
static inline int run_twice(void (*all)(void), const char *name)
{
    all();
    int fds = open_fds(), mappings = shared_mappings();
    all();
    assert(open_fds() == fds && "a file descriptor leaked");
    assert(shared_mappings() == mappings && "a mapping leaked");
    CHECK(tegrarm_shutdown());
    printf("%s: ok\n", name);
    return 0;
}

#include "../examples/c/bringup.h"

#endif
