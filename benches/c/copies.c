/* Compares tegrarm_copy_in and tegrarm_copy_out with memcpy on the same memory: the best of many rounds, for several sizes.
 * Prints a line for each size: MiB, ratio in, ratio out. A ratio of 1 is the bandwidth of memcpy. */
#include "../../examples/c/example.h"
#include "timing.h"

enum { ROUNDS = 60 };

int main(void)
{
    static const size_t sizes[] = {1 << 20, 4 << 20, 16 << 20, 64 << 20};
    struct tegrarm_device *device;
    CHECK(tegrarm_device_open(0, &device));
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        size_t size = sizes[s];
        Floats f = floats(device, size / sizeof(float));
        char *other = malloc(size);
        memset(other, 1, size);
        memset(f.cpu, 1, size);
        double best[4] = {1e18, 1e18, 1e18, 1e18};
        for (int i = 0; i < ROUNDS; i++) { /* in turns */
            double t[5];
            t[0] = now_us();
            CHECK(tegrarm_copy_in(NULL, f.buffer, 0, other, size, NULL));
            t[1] = now_us();
            memcpy(f.cpu, other, size);
            t[2] = now_us();
            CHECK(tegrarm_copy_out(NULL, f.buffer, 0, other, size, NULL));
            t[3] = now_us();
            memcpy(other, f.cpu, size);
            t[4] = now_us();
            for (int k = 0; k < 4; k++)
                if (t[k + 1] - t[k] < best[k])
                    best[k] = t[k + 1] - t[k];
        }
        printf("%zu %.3f %.3f\n", size >> 20, best[1] / best[0], best[3] / best[2]);
        CHECK(tegrarm_buffer_free(f.buffer));
        free(other);
    }
    CHECK(tegrarm_device_close(device));
    return 0;
}
