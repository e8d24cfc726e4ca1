/* A profiler through RM: counters are reserved and bound, their records streamed, and everything given back. A virtual board has no
 * counters that a program may set up, so that the stream stays empty. The test checks who holds what, and what is refused. */
#include "session.h"

#define RECORDS ((NvU64)64 << 10)
#define PAGE ((NvU64)4096)

static NvHandle memory(const Session *s, NvU64 size)
{
    NV_MEMORY_ALLOCATION_PARAMS params = {.size = size};
    return alloc(s, s->device, NV01_MEMORY_SYSTEM, &params, sizeof params);
}

static NvHandle profiler(const Session *s, NvHandle context)
{
    NVB2CC_ALLOC_PARAMETERS params = {.hClientTarget = context ? s->client : 0, .hContextTarget = context};
    return alloc(s, s->subdevice, MAXWELL_PROFILER_DEVICE, &params, sizeof params);
}

static NV_STATUS stream(const Session *s, NvHandle p, NVB0CC_CTRL_ALLOC_PMA_STREAM_PARAMS *params)
{
    return rm_control(s->client, p, NVB0CC_CTRL_CMD_ALLOC_PMA_STREAM, params, sizeof *params);
}

static NV_STATUS hwpm(const Session *s, NvHandle p, uint8_t ctxsw)
{
    NVB0CC_CTRL_RESERVE_HWPM_LEGACY_PARAMS params = {.ctxsw = ctxsw};
    return rm_control(s->client, p, NVB0CC_CTRL_CMD_RESERVE_HWPM_LEGACY, &params, sizeof params);
}

static NV_STATUS plain(const Session *s, NvHandle p, NvU32 cmd)
{
    return rm_control(s->client, p, cmd, NULL, 0);
}

static NV_STATUS update(const Session *s, NvHandle p, NVB0CC_CTRL_PMA_STREAM_UPDATE_GET_PUT_PARAMS *params)
{
    return rm_control(s->client, p, NVB0CC_CTRL_CMD_PMA_STREAM_UPDATE_GET_PUT, params, sizeof *params);
}

static void refused(NV_STATUS wanted, NV_STATUS got)
{
    char why[512] = "";
    if (got == wanted && tegrarm_last_error(why, sizeof why) > 1)
        return;
    fprintf(stderr, "profiler.c: wanted %s, got %s: \"%s\"\n", tegrarm_status_name(wanted), tegrarm_status_name(got), why);
    abort();
}

/* What tinygrad does to sample program counters, up to the registers. */
static void reserves_binds_streams_and_releases(const Session *s)
{
    NvHandle p = profiler(s, s->group);
    NVB0CC_CTRL_POWER_REQUEST_FEATURES_PARAMS power = {.controlMask = 0x1 | 0x1 << 2 | 0x1 << 6};
    CHECK(rm_control(s->client, p, NVB0CC_CTRL_CMD_POWER_REQUEST_FEATURES, &power, sizeof power));
    assert(power.globalStatus == NV_OK && power.statusMask == 0);

    NVB0CC_CTRL_ALLOC_PMA_STREAM_PARAMS pma = {.hMemPmaBuffer = memory(s, RECORDS),
                                               .pmaBufferSize = RECORDS,
                                               .hMemPmaBytesAvailable = memory(s, PAGE)};
    CHECK(stream(s, p, &pma));
    assert(pma.pmaBufferVA != 0);
    refused(NV_ERR_INVALID_ARGUMENT, stream(s, p, &pma)); /* a second one */

    CHECK(hwpm(s, p, 0));
    refused(NV_ERR_STATE_IN_USE, hwpm(s, p, 0));
    CHECK(plain(s, p, NVB0CC_CTRL_CMD_RESERVE_PM_AREA_PC_SAMPLER));
    CHECK(plain(s, p, NVB0CC_CTRL_CMD_BIND_PM_RESOURCES));

    NVB0CC_CTRL_PMA_STREAM_UPDATE_GET_PUT_PARAMS state = {.bUpdateAvailableBytes = 1, .bWait = 1, .bReturnPut = 1};
    CHECK(update(s, p, &state));
    assert(state.bytesAvailable == 0 && state.bOverflowStatus == 0);
    assert(state.putPtr == (pma.pmaBufferVA & 0xffffffff));

    NVB0CC_CTRL_EXEC_REG_OPS_PARAMS *ops = calloc(1, sizeof *ops);
    assert(ops);
    ops->regOpCount = 1;
    ops->mode = NVB0CC_REGOPS_MODE_CONTINUE_ON_ERROR;
    ops->regOps[0].regOffset = 0x9400; /* the time, which is no counter */
    CHECK(rm_control(s->client, p, NVB0CC_CTRL_CMD_EXEC_REG_OPS, ops, sizeof *ops));
    assert(!ops->bPassed && ops->regOps[0].regStatus != 0);
    free(ops);

    CHECK(plain(s, p, NVB0CC_CTRL_CMD_UNBIND_PM_RESOURCES));
    refused(NV_ERR_INVALID_STATE, plain(s, p, NVB0CC_CTRL_CMD_UNBIND_PM_RESOURCES));
    CHECK(plain(s, p, NVB0CC_CTRL_CMD_RELEASE_PM_AREA_PC_SAMPLER));
    CHECK(plain(s, p, NVB0CC_CTRL_CMD_RELEASE_HWPM_LEGACY));
    refused(NV_ERR_INVALID_STATE, plain(s, p, NVB0CC_CTRL_CMD_RELEASE_HWPM_LEGACY));
    NVB0CC_CTRL_FREE_PMA_STREAM_PARAMS none = {.pmaChannelIdx = pma.pmaChannelIdx};
    CHECK(rm_control(s->client, p, NVB0CC_CTRL_CMD_FREE_PMA_STREAM, &none, sizeof none));
    refused(NV_ERR_INVALID_STATE, rm_control(s->client, p, NVB0CC_CTRL_CMD_FREE_PMA_STREAM, &none, sizeof none));

    NVB0CC_CTRL_POWER_RELEASE_FEATURES_PARAMS all = {.controlMask = 0xfff};
    CHECK(rm_control(s->client, p, NVB0CC_CTRL_CMD_POWER_RELEASE_FEATURES, &all, sizeof all));
    CHECK(rm_free(s->client, s->subdevice, p));
    CHECK(rm_free(s->client, s->device, pma.hMemPmaBuffer));
    CHECK(rm_free(s->client, s->device, pma.hMemPmaBytesAvailable));
}

static void a_freed_profiler_gives_everything_back(const Session *s)
{
    NvHandle first = profiler(s, 0), second = profiler(s, 0);
    CHECK(hwpm(s, first, 0));
    refused(NV_ERR_STATE_IN_USE, hwpm(s, second, 0));
    refused(NV_ERR_INVALID_ARGUMENT, plain(s, second, NVB0CC_CTRL_CMD_RESERVE_PM_AREA_PC_SAMPLER)); /* of no context */
    CHECK(rm_free(s->client, s->subdevice, first));
    CHECK(hwpm(s, second, 0));
    CHECK(rm_free(s->client, s->subdevice, second));
}

int main(void)
{
    Session s = session_open();
    int fds = 0;
    for (int round = 0; round < 3; round++) {
        reserves_binds_streams_and_releases(&s);
        a_freed_profiler_gives_everything_back(&s);
        assert(round == 0 || open_fds() == fds); /* with its first memory the process opens the file that shows how much it has */
        fds = open_fds();
    }
    session_close(&s);
    CHECK(tegrarm_shutdown());
    puts("profiler: ok");
    return 0;
}
