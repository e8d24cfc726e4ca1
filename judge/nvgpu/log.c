/* The driver's messages, trace points and assertions. Messages are shown if JUDGE_LOG is set. An assertion would stop a board's kernel: it ends the process. */
#include <nvgpu/log.h>
#include <nvgpu/bug.h>
#include <stdio.h>
#include <stdlib.h>
#include "judge.h"

/* What the driver said of a failure, a line for each message. What is beyond the room is lost: a stall that does not end says the same every
 * time. */
static char messages[16384];
static size_t kept;
static bool listens;

static void note(const char *format, va_list list)
{
	int length = vsnprintf(messages + kept, sizeof messages - kept - 1, format, list);

	kept += length < 0 ? 0 : (size_t)length;
	if (kept > sizeof messages - 2)
		kept = sizeof messages - 2;
	messages[kept++] = '\n';
	messages[kept] = 0;
}

void nvgpu_log_msg_impl(struct gk20a *g, const char *function, int line, enum nvgpu_log_type type, const char *format, ...)
{
	va_list list;

	(void)g;
	if (listens && (type == NVGPU_ERROR || type == NVGPU_WARNING)) {
		va_start(list, format);
		note(format, list);
		va_end(list);
	}
	if (getenv("JUDGE_LOG") == NULL)
		return;
	fprintf(stderr, "%s:%d %d ", function, line, (int)type);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
}

/* From now on, errors and warnings are kept, or they are kept no more. */
void judge_listen(bool listen)
{
	listens = listen;
	if (listen)
		messages[kept = 0] = 0;
}

const char *judge_said(void) { return messages; }

void nvgpu_posix_bug(const char *message, int line)
{
	fprintf(stderr, "the driver stops with BUG() in %s, line %d\n", message, line);
	_exit(70);
}

/* Freed memory is not used again at once: the driver's REMAP writes one field of a pool that it has just freed (common/mm/vm_remap.c). */
void nvgpu_kfree_impl(struct gk20a *g, void *at)
{
	static void *waiting[64];
	static unsigned next;

	(void)g;
	judge_lock();
	free(waiting[next]);
	waiting[next] = at;
	next = (next + 1) % 64;
	judge_unlock();
}

/* Trace points of the Linux layer that the posix layer does not have. Nothing listens. */
void trace_gk20a_as_ioctl_alloc_space() {}
void trace_gk20a_as_ioctl_unmap_buffer() {}
void trace_gk20a_as_ioctl_map_buffer() {}
void trace_gk20a_as_ioctl_get_va_regions() {}
void trace_gk20a_as_ioctl_free_space() {}
void trace_gk20a_as_ioctl_bind_channel() {}
void trace_gk20a_channel_sched_defaults() {}
void trace_gk20a_channel_set_timeout() {}
void trace_gk20a_channel_set_timeslice() {}
void trace_gk20a_channel_open() {}
void trace_gk20a_channel_release() {}
/* The list of groups for the scheduling node. The comparison has no such node. */
void gk20a_sched_ctrl_tsg_added() {}
void gk20a_sched_ctrl_tsg_removed() {}

#ifdef JUDGE_R35
/* Of Linux's strings only r35 uses this one. */
size_t strlcpy(char *to, const char *from, size_t size) { return (size_t)snprintf(to, size, "%s", from); }
#endif
