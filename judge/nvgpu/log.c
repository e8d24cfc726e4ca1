/* The driver's messages, and its assertions. Messages are shown if JUDGE_LOG is set. An assertion would stop a board's kernel: it ends the process. */
#include <nvgpu/log.h>
#include <nvgpu/bug.h>
#include <stdio.h>
#include <stdlib.h>

void nvgpu_log_msg_impl(struct gk20a *g, const char *function, int line, enum nvgpu_log_type type, const char *format, ...)
{
	va_list list;

	(void)g;
	if (getenv("JUDGE_LOG") == NULL)
		return;
	fprintf(stderr, "%s:%d %d ", function, line, (int)type);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
}

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
	free(waiting[next]);
	waiting[next] = at;
	next = (next + 1) % 64;
}
