/* Bad input gives RM's status and a sentence, and changes nothing. */
#include <limits.h>

#include "session.h"

static int refusals;

/* Checks that a call answers exactly `wanted` and that there is a sentence about it. */
#define REFUSED(wanted, call) refused(__LINE__, #call, (wanted), (call))
static void refused(int line, const char *call, NV_STATUS wanted, NV_STATUS got)
{
    char why[512] = "";
    size_t length = tegrarm_last_error(why, sizeof why);
    if (got != wanted || length < 2) {
        fprintf(stderr, "errors.c:%d: %s\n  wanted %s, got %s: \"%s\"\n", line, call, tegrarm_status_name(wanted),
                tegrarm_status_name(got), why);
        abort();
    }
    refusals++;
}

static void versions(void)
{
    struct { struct tegrarm_config known; char later[8]; } config = {.known.size = sizeof config, .later = {1}};
    REFUSED(NV_ERR_LIB_RM_VERSION_MISMATCH, tegrarm_init(&config.known));
    config.known.size = SIZE_MAX;
    REFUSED(NV_ERR_INVALID_PARAM_STRUCT, tegrarm_init(&config.known));
    config.known.size = 1;
    REFUSED(NV_ERR_INVALID_PARAM_STRUCT, tegrarm_init(&config.known));
}

static void clients(void)
{
    NvHandle h = 0;
    REFUSED(NV_ERR_INVALID_CLASS, rm_alloc(0, 0, &h, 0xdead, NULL, 0));
    REFUSED(NV_ERR_INVALID_POINTER, rm_alloc(0, 0, NULL, NV01_ROOT_CLIENT, NULL, 0));
    REFUSED(NV_ERR_INVALID_OBJECT_HANDLE, rm_free(0x12345678, 0, 0x12345678));
    REFUSED(NV_ERR_INVALID_CLIENT, rm_control(0x12345678, 0x12345678, NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2, &h, sizeof h));
}

static void objects(const Session *s)
{
    NvHandle h = 0;
    NV0080_ALLOC_PARAMETERS device = {.deviceId = 7};
    REFUSED(NV_ERR_INVALID_DEVICE, rm_alloc(s->client, s->client, &h, NV01_DEVICE_0, &device, sizeof device));
    REFUSED(NV_ERR_INVALID_CLASS, rm_alloc(s->client, s->device, &h, 0xcdc0, NULL, 0)); /* a Blackwell class */
    REFUSED(NV_ERR_OBJECT_NOT_FOUND, rm_alloc(s->client, 0x5eed, &h, NV20_SUBDEVICE_0, NULL, 0));
    REFUSED(NV_ERR_INVALID_OBJECT_PARENT, rm_alloc(s->client, s->subdevice, &h, NV01_DEVICE_0, &device, sizeof device));
    REFUSED(NV_ERR_INVALID_ARGUMENT, rm_alloc(s->client, s->group, &h, AMPERE_CHANNEL_GPFIFO_A, NULL, 0));

    h = s->device; /* This handle is in use. */
    NV_MEMORY_ALLOCATION_PARAMS memory = {.size = 4096};
    REFUSED(NV_ERR_INSERT_DUPLICATE_NAME, rm_alloc(s->client, s->device, &h, NV01_MEMORY_LOCAL_USER, &memory, sizeof memory));
    CHECK(rm_free(s->client, s->device, 0xabad1dea)); /* The object is unknown. RM's compatibility mode answers OK. */
}

static void controls(const Session *s)
{
    NV2080_CTRL_GR_GET_INFO_PARAMS info = {0};
    REFUSED(NV_ERR_NOT_SUPPORTED, rm_control(s->client, s->subdevice, 0x2080ffff, &info, sizeof info));
    REFUSED(NV_ERR_OBJECT_NOT_FOUND, rm_control(s->client, 0x5eed, NV2080_CTRL_CMD_GR_GET_INFO, &info, sizeof info));
    REFUSED(NV_ERR_INVALID_ARGUMENT, rm_control(s->client, s->subdevice, NV2080_CTRL_CMD_GR_GET_INFO, NULL, sizeof info));
    REFUSED(NV_ERR_INVALID_ARGUMENT, rm_control(s->client, s->subdevice, NV2080_CTRL_CMD_GR_GET_INFO, &info, 0));
    CHECK(rm_control(s->client, s->subdevice, 0, NULL, 0)); /* Command 0 does nothing. */
}

static void memory(const Session *s)
{
    NvHandle h = 0;
    static const NvU64 sizes[] = {0, (NvU64)1 << 63};
    static const NV_STATUS answers[] = {NV_ERR_INVALID_ARGUMENT, NV_ERR_NO_MEMORY};
    for (int i = 0; i < 2; i++) {
        NV_MEMORY_ALLOCATION_PARAMS params = {.size = sizes[i]};
        REFUSED(answers[i], rm_alloc(s->client, s->device, &h, NV01_MEMORY_LOCAL_USER, &params, sizeof params));
    }

    Buffer b = buffer_open(s, 4096);
    NvU64 va = 0;
    REFUSED(NV_ERR_INVALID_LIMIT, rm_map_memory_dma(s->client, s->device, s->mapper, b.memory, 0, 0, 0, &va));
    REFUSED(NV_ERR_INVALID_BASE, rm_map_memory_dma(s->client, s->device, s->mapper, b.memory, 0, 1 << 20, 0, &va));
    REFUSED(NV_ERR_INVALID_OBJECT_HANDLE, rm_map_memory_dma(s->client, s->device, s->vaspace, b.memory, 0, 4096, 0, &va));
    REFUSED(NV_ERR_INVALID_POINTER, rm_map_memory_dma(s->client, s->device, s->mapper, b.memory, 0, 4096, 0, NULL));
    REFUSED(NV_ERR_OBJECT_NOT_FOUND, rm_unmap_memory_dma(s->client, s->device, s->mapper, b.memory, 0, b.va + 4096));
    REFUSED(NV_ERR_INVALID_POINTER, rm_map_memory(s->client, s->device, b.memory, 0, 4096, NULL, 0));
    REFUSED(NV_ERR_OBJECT_NOT_FOUND, rm_unmap_memory(s->client, s->device, b.memory, (void *)(uintptr_t)8, 0));
    CHECK(rm_free(s->client, s->device, b.memory));
    CHECK(rm_free(s->client, s->device, b.memory)); /* Freeing it twice is freeing an unknown object. */
}

static void library(void)
{
    REFUSED(NV_ERR_INVALID_POINTER, tegrarm_device_count(NULL));
    REFUSED(NV_ERR_INVALID_POINTER, tegrarm_device_profile(0, NULL));
    struct tegrarm_device_profile profile;
    memset(&profile, 0, sizeof profile);
    profile.size = sizeof profile;
    REFUSED(NV_ERR_INVALID_DEVICE, tegrarm_device_profile(99, &profile));
    size_t needed = 0;
    char report[8192];
    REFUSED(NV_ERR_INVALID_POINTER, tegrarm_driver_report(report, sizeof report, NULL));
    REFUSED(NV_ERR_INVALID_POINTER, tegrarm_driver_report(NULL, 1, &needed));
    CHECK(tegrarm_driver_report(NULL, 0, &needed));
    assert(needed > 100 && needed <= sizeof report);
    CHECK(tegrarm_driver_report(report, sizeof report, &needed));
    assert(strlen(report) + 1 == needed && strstr(report, "NVMAP_IOC_ALLOC"));
    CHECK(tegrarm_driver_report(report, 8, &needed));
    assert(strlen(report) == 7);  /* The text is cut and terminated. */
    assert(!strcmp(tegrarm_status_name(NV_ERR_INVALID_CLASS), "NV_ERR_INVALID_CLASS"));

    char one[1];
    assert(tegrarm_last_error(one, sizeof one) > 1 && one[0] == '\0');  /* The text is cut; the result is its full length. */
}

int main(void)
{
    NvU32 devices = 0;
    CHECK(tegrarm_device_count(&devices));
    Session warm = session_open();
    session_close(&warm);
    int fds = open_fds(), mappings = shared_mappings();

    versions();
    clients();
    Session s = session_open();
    objects(&s);
    controls(&s);
    memory(&s);
    session_close(&s);
    REFUSED(NV_ERR_INVALID_OBJECT_HANDLE, rm_free(s.client, 0, s.client)); /* The client was freed. */
    library();

    assert(open_fds() == fds && shared_mappings() == mappings);
    CHECK(tegrarm_shutdown());
    printf("errors: ok (%d refusals)\n", refusals);
    return 0;
}
