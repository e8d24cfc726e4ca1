/* Processes that open and close a device, some times each, all at once. Prints the seconds that took. Usage: crowd PROCESSES TIMES */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <tegrarm.h>
#include <unistd.h>

#include "timing.h"

/* A board has 512 channels, so not more devices than this are open at a time. A process that opens a device takes a byte from a pipe. */
enum { AT_A_TIME = 400 };

static int open_and_close(int times, const int tokens[2])
{
    for (int i = 0; i < times; i++) {
        struct tegrarm_device *device;
        char token;
        if (read(tokens[0], &token, 1) != 1)
            return 1;
        NV_STATUS status = tegrarm_device_open(0, &device);
        if (status != NV_OK || tegrarm_device_close(device) != NV_OK) {
            fprintf(stderr, "status %#x\n", status);
            return 1;
        }
        if (write(tokens[1], &token, 1) != 1)
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int processes = argc > 1 ? atoi(argv[1]) : 1, times = argc > 2 ? atoi(argv[2]) : 10, gate[2], tokens[2];
    int failed = 0, status;
    char all[AT_A_TIME] = {0};
    if (pipe(gate) != 0 || pipe(tokens) != 0 || write(tokens[1], all, sizeof all) != sizeof all)
        return 1;
    for (int i = 0; i < processes; i++) {
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child == 0) {
            char byte;
            close(gate[1]);
            /* Waits until the last process has started. */
            if (read(gate[0], &byte, 1) != 0)
                _exit(1);
            _exit(open_and_close(times, tokens));
        }
    }
    double start = now_us();
    close(gate[1]);
    while (wait(&status) > 0)
        failed += status != 0;
    printf("%.3f\n", (now_us() - start) / 1e6);
    return failed != 0;
}
