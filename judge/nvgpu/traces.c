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
