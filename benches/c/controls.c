/* Sends controls through the object door or the file door, COUNT times, inside a function that callgrind measures.
 * Usage: controls DOOR SET. DOOR is "object" or "file". SET is "open" for the controls that a frontend sends when it opens a
 * device (in tinygrad's order, without PERF_BOOST and SCHEDULE, which are the kernel's work), or "token" for the smallest
 * control. */
#include <sys/ioctl.h>

#include "channel.h"

enum { COUNT = 1000, CLASSES = 100, INFOS = 5 };

typedef struct {
    NvHandle object;
    NvU32 cmd, size;
    void *params;
} Control;

static int ctl;
static NvU32 refused; /* Every status that was not NV_OK leaves its bits here. */

/* A client belongs to the file through which it was allocated. Only this file's calls may use it, and the object door's. */
static NvHandle client_of_the_file(void)
{
    NVOS21_PARAMETERS root = {.hClass = NV01_ROOT_CLIENT};
    assert(rm_ioctl(ctl, _IOWR('F', NV_ESC_RM_ALLOC, NVOS21_PARAMETERS), &root) == 0 && root.status == NV_OK);
    return root.hObjectNew;
}

__attribute__((noinline)) void object_door(NvHandle client, const Control *c, int count)
{
    for (int i = 0; i < COUNT; i++)
        for (int n = 0; n < count; n++)
            refused |= rm_control(client, c[n].object, c[n].cmd, c[n].params, c[n].size);
}

__attribute__((noinline)) void file_door(NvHandle client, const Control *c, int count)
{
    for (int i = 0; i < COUNT; i++)
        for (int n = 0; n < count; n++) {
            NVOS54_PARAMETERS p = {.hClient = client, .hObject = c[n].object, .cmd = c[n].cmd,
                                   .params = (NvU64)(uintptr_t)c[n].params, .paramsSize = c[n].size};
            rm_ioctl(ctl, _IOWR('F', NV_ESC_RM_CONTROL, NVOS54_PARAMETERS), &p);
            refused |= p.status;
        }
}

int main(int argc, char **argv)
{
    assert(argc == 3);
    ctl = rm_open("/dev/nvidiactl", 2 /* O_RDWR */);
    assert(ctl >= 0);
    Channel c = channel_of(session_of(client_of_the_file()), AMPERE_COMPUTE_B);

    static NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_V2_PARAMS version;
    NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS id = {.gpuId = 0x100};
    static NvU32 classes[CLASSES];
    NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS count = {0}, list = {.numClasses = CLASSES, .classList = (NvU64)(uintptr_t)classes};
    NV2080_CTRL_GPU_GET_GID_INFO_PARAMS uuid = {.flags = 2, .length = 16};
    NvU32 infos[INFOS][2] = {{0x14}, {0x17}, {0x20}, {0x0d}, {0x0c}};
    NV2080_CTRL_GR_GET_INFO_PARAMS info = {.grInfoListSize = INFOS, .grInfoList = (NvU64)(uintptr_t)infos};
    NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS token = {0};
    const Control controls[] = {
        {c.channel, NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, sizeof token, &token},
        {c.s.client, NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2, sizeof version, &version},
        {c.s.client, NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2, sizeof id, &id},
        {c.s.device, NV0080_CTRL_CMD_GPU_GET_CLASSLIST, sizeof count, &count},
        {c.s.device, NV0080_CTRL_CMD_GPU_GET_CLASSLIST, sizeof list, &list},
        {c.s.subdevice, NV2080_CTRL_CMD_GPU_GET_GID_INFO, sizeof uuid, &uuid},
        {c.s.subdevice, NV2080_CTRL_CMD_GR_GET_INFO, sizeof info, &info},
    };
    const int all = sizeof controls / sizeof *controls;
    for (int n = 0; n < all; n++) /* The first round binds lazy symbols and makes the queries that are made once. */
        CHECK(rm_control(c.s.client, controls[n].object, controls[n].cmd, controls[n].params, controls[n].size));
    void (*door)(NvHandle, const Control *, int) = strcmp(argv[1], "file") ? object_door : file_door;
    door(c.s.client, controls, strcmp(argv[2], "open") ? 1 : all);
    assert(refused == NV_OK && "a refused control is not what is measured");
    assert(token.workSubmitToken == c.token && infos[4][1] == 0x807 && memcmp(version.versionBuffer, "570.86.16", 10) == 0);
    session_close(&c.s);
    rm_close(ctl);
    return 0;
}
