/* rm_control(GET_WORK_SUBMIT_TOKEN), COUNT times, inside a function that callgrind collects. */
#include "channel.h"

enum { COUNT = 1000 };

__attribute__((noinline)) void measured(const Channel *c)
{
    NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS token = {0};
    for (int i = 0; i < COUNT; i++)
        rm_control(c->s.client, c->channel, NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, &token, sizeof token);
    assert(token.workSubmitToken == c->token);
}

int main(void)
{
    Channel c = channel_open(AMPERE_COMPUTE_B);
    measured(&c); /* warm: lazy symbols are bound, caches of the library are filled */
    session_close(&c.s);
    return 0;
}
