/* The buffers and mappings of the common code are those of the Linux layer. */
#include <nvgpu/linux/vm.h>
