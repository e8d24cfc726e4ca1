/* Many small objects, as a frontend makes them that gives each buffer an object of its own: of the GPU's memory, with a view for the CPU,
 * and of the process's memory. Some are alive at any time, and each is mapped, written, read, unmapped and freed. The process needs as
 * much memory, as many mappings and as many descriptors at the end as it did after the first tenth.
 *
 * It is built twice from this source: with the functions of the file door, and (PLAIN) with libc only, to run under LD_PRELOAD. The first
 * of the two makes the same objects through the object door, too. The first argument is the number of objects for each door. */
#include <dirent.h>
#include "frontend.h"

enum { OBJECTS = 2000, ALIVE = 64, SLACK_PAGES = 128 };

typedef struct {
    uint64_t pages, descriptors, mappings;
} Footprint;

static uint64_t entries_of(const char *folder)
{
    DIR *open = opendir(folder);
    uint64_t count = 0;
    assert(open);
    while (readdir(open))
        count++;
    assert(closedir(open) == 0);
    return count;
}

static Footprint footprint(void)
{
    Footprint now = {.descriptors = entries_of("/proc/self/fd")};
    unsigned long long total, resident;
    FILE *file = fopen("/proc/self/statm", "re");
    assert(file && fscanf(file, "%llu %llu", &total, &resident) == 2 && fclose(file) == 0);
    now.pages = resident;
    file = fopen("/proc/self/maps", "re");
    assert(file);
    for (int c; (c = fgetc(file)) != EOF;)
        now.mappings += c == '\n';
    assert(fclose(file) == 0);
    return now;
}

/* A door: how an object is made, which is used through `cpu`, and how it is ended. */
typedef struct {
    const char *name;
    Memory (*make)(uint64_t number, uint64_t size);
    void (*end)(const Memory *);
} Door;

static uint64_t size_of(uint64_t number)
{
    return PAGE * (1 + number * 7 % 16);
}

static void use(const Memory *m, uint64_t number)
{
    volatile uint64_t *words = m->cpu;
    assert(words[0] == 0 && words[m->size / 8 - 1] == 0 && "new memory is clear");
    words[0] = number, words[m->size / 8 - 1] = ~number;
    assert(words[0] == number && words[m->size / 8 - 1] == ~number);
}

static void churn(const Door *door, uint64_t objects)
{
    static Memory alive[ALIVE];
    Footprint early = {0};
    for (uint64_t number = 0; number < objects + ALIVE; number++) {
        Memory *place = &alive[number % ALIVE];
        if (number >= ALIVE) {
            volatile uint64_t *words = place->cpu;
            assert(words[0] == number - ALIVE && "nobody else wrote to the object");
            door->end(place);
        }
        if (number < objects) {
            *place = door->make(number, size_of(number));
            use(place, number);
        }
        if (number == objects / 10 || number + 1 == objects) {
            Footprint now = footprint();
            if (number == objects / 10)
                early = now;
            else if (now.descriptors != early.descriptors || now.mappings > early.mappings + 8 || now.pages > early.pages + SLACK_PAGES)
                FAIL("%s: after %llu objects %llu pages, %llu descriptors and %llu mappings; after a tenth of them %llu, %llu and %llu",
                     door->name, (unsigned long long)objects, (unsigned long long)now.pages, (unsigned long long)now.descriptors,
                     (unsigned long long)now.mappings, (unsigned long long)early.pages, (unsigned long long)early.descriptors,
                     (unsigned long long)early.mappings);
        }
    }
    printf("objects: %llu by %s, ok\n", (unsigned long long)objects, door->name);
}

/* Every third object is memory of the process, whose address mmap chooses. */
static Memory make_by_nodes(uint64_t number, uint64_t size)
{
    return number % 3 ? local_memory(size, 1) : process_memory(size);
}

static void end_by_nodes(const Memory *m)
{
    if (m->handle > 0x1000 && m->handle <= host_handle)
        forget_memory(m); /* the frontend never frees these objects itself */
    else
        free_memory(m);
}

#ifndef PLAIN
static uint32_t own_client, own_device, own_mapper;

static void open_own_objects(void)
{
    NV0080_ALLOC_PARAMETERS device_params = {0};
    NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS range = {.limit = 0xffffffffff};
    STATUS("client", rm_alloc(0, 0, &own_client, NV01_ROOT_CLIENT, NULL, 0));
    STATUS("device", rm_alloc(own_client, own_client, &own_device, NV01_DEVICE_0, &device_params, sizeof device_params));
    STATUS("range", rm_alloc(own_client, own_device, &own_mapper, NV01_MEMORY_VIRTUAL, &range, sizeof range));
}

static Memory make_by_objects(uint64_t number, uint64_t size)
{
    (void)number;
    NV_MEMORY_ALLOCATION_PARAMS params = {.owner = own_client, .size = size, .limit = size - 1, .alignment = PAGE};
    Memory m = {.size = size};
    void *cpu = NULL;
    STATUS("memory", rm_alloc(own_client, own_device, &m.handle, NV01_MEMORY_LOCAL_USER, &params, sizeof params));
    STATUS("map for the GPU", rm_map_memory_dma(own_client, own_device, own_mapper, m.handle, 0, size, 0, &m.va));
    STATUS("map for the CPU", rm_map_memory(own_client, own_device, m.handle, 0, size, &cpu, 0));
    m.cpu = cpu;
    return m;
}

static void end_by_objects(const Memory *m)
{
    STATUS("unmap from the CPU", rm_unmap_memory(own_client, own_device, m->handle, (void *)m->cpu, 0));
    STATUS("unmap from the GPU", rm_unmap_memory_dma(own_client, own_device, own_mapper, m->handle, 0, m->va));
    STATUS("free", rm_free(own_client, own_device, m->handle));
}
#endif

int main(int argc, char **argv)
{
    uint64_t objects = argc > 1 ? strtoull(argv[1], NULL, 10) : OBJECTS;
    open_nodes();
    open_objects();
#ifdef PLAIN
    churn(&(Door){"the preload door", make_by_nodes, end_by_nodes}, objects);
#else
    churn(&(Door){"the file door", make_by_nodes, end_by_nodes}, objects);
    open_own_objects();
    churn(&(Door){"the object door", make_by_objects, end_by_objects}, objects);
    STATUS("client", rm_free(own_client, own_client, own_client));
#endif
    close_nodes();
    return 0;
}
