/* The remapped buffers of the common code are those of the Linux layer. */
#include <nvgpu/linux/vm_remap.h>
