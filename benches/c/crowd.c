/* Processes that open and close a device, some times each, all at once. Prints the seconds that took. Usage: crowd PROCESSES TIMES */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <tegrarm.h>
#include <unistd.h>

#include "timing.h"

/* All of the board's channels are in use at the moment. */
static const useconds_t A_MOMENT = 2000;

static int open_and_close(int times)
{
    for (int i = 0; i < times; i++) {
        struct tegrarm_device *device;
        NV_STATUS status;
        while ((status = tegrarm_device_open(0, &device)) == NV_ERR_NO_MEMORY || status == NV_ERR_INSUFFICIENT_RESOURCES)
            usleep(A_MOMENT);
        if (status != NV_OK || tegrarm_device_close(device) != NV_OK) {
            fprintf(stderr, "status %#x\n", status);
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    int processes = argc > 1 ? atoi(argv[1]) : 1, times = argc > 2 ? atoi(argv[2]) : 10, gate[2], failed = 0, status;
    if (pipe(gate) != 0)
        return 1;
    for (int i = 0; i < processes; i++) {
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child == 0) {
            char byte;
            close(gate[1]);
            /* Until the last one is there. */
            if (read(gate[0], &byte, 1) != 0)
                _exit(1);
            _exit(open_and_close(times));
        }
    }
    double start = now_us();
    close(gate[1]);
    while (wait(&status) > 0)
        failed += status != 0;
    printf("%.3f\n", (now_us() - start) / 1e6);
    return failed != 0;
}
