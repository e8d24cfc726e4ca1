/* Host objects: the output of a C compiler is loaded and called. Files that cannot be loaded are refused with the reason. */
#include "session.h"

#if defined(__aarch64__)
#define ARCH "aarch64"
#else
#define ARCH "x86_64"
#endif

static char image[1 << 16];

static size_t read_object(const char *mode)
{
    char path[128];
    snprintf(path, sizeof path, "../tests/data/hostobj/kernels.%s.%s.o", ARCH, mode);
    FILE *file = fopen(path, "rbe");
    assert(file && "run in ctests/");
    size_t size = fread(image, 1, sizeof image, file);
    fclose(file);
    return size;
}

static double outside(double x)
{
    return x * 10;
}

/* The address of a function; ISO C has no conversion from void *. */
#define FUNCTION(object, name, pointer) \
    do { \
        void *address = NULL; \
        CHECK(tegrarm_object_symbol(object, name, &address)); \
        memcpy(&(pointer), &address, sizeof address); \
    } while (0)

static void runs(const char *mode)
{
    size_t size = read_object(mode);
    double (*known)(double) = outside;
    const char *const names[] = {"unused", "outside"};
    const void *addresses[2] = {image, NULL};
    memcpy(&addresses[1], &known, sizeof known);
    struct tegrarm_object *object, *second;
    CHECK(tegrarm_object_load(image, size, names, addresses, 2, &object));
    CHECK(tegrarm_object_load(image, size, names, addresses, 2, &second));
    memset(image, 0, sizeof image); /* The library keeps no pointer to the image. */

    float (*weigh)(const float *, int), in[] = {1, 2, 4, 8, 16};
    FUNCTION(object, "weigh", weigh);
    assert(weigh(in, 5) == 0.5f + 3 + 10 + 28 + 8);
    double (*call_outside)(double);
    FUNCTION(object, "call_outside", call_outside);
    assert(call_outside(4) == 41);
    int (*count)(void), (*count_of_second)(void);
    FUNCTION(object, "count", count);
    FUNCTION(second, "count", count_of_second);
    assert(count() == 40 && count() == 41 && count_of_second() == 40 && "each has its own data");

    void *nothing;
    assert(tegrarm_object_symbol(object, "twice", &nothing) == NV_ERR_OBJECT_NOT_FOUND && "static functions are not exported");
    assert(tegrarm_object_symbol(object, "count", NULL) == NV_ERR_INVALID_POINTER);
    assert(tegrarm_object_symbol(object, NULL, &nothing) == NV_ERR_INVALID_POINTER);
    CHECK(tegrarm_object_unload(object));
    assert(tegrarm_object_symbol(object, "count", &nothing) == NV_ERR_OBJECT_NOT_FOUND);
    assert(tegrarm_object_unload(object) == NV_ERR_OBJECT_NOT_FOUND);
    assert(count_of_second() == 41);
    CHECK(tegrarm_object_unload(second));
}

static void refused(void)
{
    size_t size = read_object("pic");
    struct tegrarm_object *object;
    char text[256];
    assert(tegrarm_object_load(image, size, NULL, NULL, 0, &object) == NV_ERR_INVALID_ARGUMENT);
    tegrarm_last_error(text, sizeof text);
    assert(strstr(text, "outside") && "what nobody defines is named");
    assert(tegrarm_object_load(image, size, NULL, NULL, 1, &object) == NV_ERR_INVALID_POINTER);
    assert(tegrarm_object_load(image, size, NULL, NULL, 0, NULL) == NV_ERR_INVALID_POINTER);
    assert(tegrarm_object_load(NULL, size, NULL, NULL, 0, &object) == NV_ERR_INVALID_POINTER);
    assert(tegrarm_object_load(image, size / 2, NULL, NULL, 0, &object) == NV_ERR_INVALID_ARGUMENT);
    image[18] = 3; /* e_machine: an old x86 */
    image[19] = 0;
    assert(tegrarm_object_load(image, size, NULL, NULL, 0, &object) == NV_ERR_INVALID_ARGUMENT);
}

int main(void)
{
    for (int round = 0, fds = 0, mappings = 0; round < 3; round++) {
        runs("pic");
        runs("nopic");
        refused();
        assert(round == 0 || (open_fds() == fds && shared_mappings() == mappings));
        fds = open_fds(), mappings = shared_mappings();
    }
    puts("hostobj: ok");
    return 0;
}
