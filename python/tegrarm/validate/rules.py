"""Which rule of the hardware chapters a difference is about. The first row whose pattern matches counts.

A pattern of a call is `CALL/field`, with the upstream name of the ioctl; a pattern of an answer is `step/key`.
"""

from __future__ import annotations

import fnmatch

CHAPTERS = "docs/hardware/"

CALLS = (
    ("open */as*", "docs/hardware/nvgpu-address-space.md#as-node"),
    ("open *", "docs/hardware/nvgpu-nodes.md#device-nodes"),
    ("mmap of * of ctrl*", "docs/hardware/nvgpu-ctrl.md#doorbell-page"),
    ("mmap of *", "docs/hardware/nvmap.md#dmabuf-mmap"),
    ("read of *devfreq*", "docs/hardware/nvgpu-nodes.md#devfreq-files"),
    ("write of *devfreq*", "docs/hardware/nvgpu-nodes.md#devfreq-files"),
    ("write of *", "docs/hardware/nvgpu-nodes.md#sysfs"),
    ("read of *", "docs/hardware/nvgpu-nodes.md#sysfs"),
    ("NVGPU_GPU_IOCTL_GET_CHARACTERISTICS/memory behind *", "docs/hardware/nvgpu-ctrl.md#characteristics-layout"),
    ("NVGPU_GPU_IOCTL_GET_CHARACTERISTICS/*", "docs/hardware/nvgpu-ctrl.md#get-characteristics"),
    ("NVGPU_GPU_IOCTL_ALLOC_AS/*", "docs/hardware/nvgpu-address-space.md#alloc-as"),
    ("NVGPU_GPU_IOCTL_OPEN_TSG/*", "docs/hardware/nvgpu-ctrl.md#open-tsg"),
    ("NVGPU_GPU_IOCTL_OPEN_CHANNEL/*", "docs/hardware/nvgpu-ctrl.md#open-channel"),
    ("NVGPU_GPU_IOCTL_GET_ENGINE_INFO/*", "docs/hardware/nvgpu-ctrl.md#engine-info"),
    ("NVGPU_GPU_IOCTL_VSMS_MAPPING/*", "docs/hardware/nvgpu-ctrl.md#vsms-mapping"),
    ("NVGPU_GPU_IOCTL_CLK_SET_INFO/*", "docs/hardware/nvgpu-ctrl.md#clk-set-info"),
    ("NVGPU_GPU_IOCTL_CLK_*/*", "docs/hardware/nvgpu-ctrl.md#clk-get"),
    ("NVGPU_GPU_IOCTL_*TIME*/*", "docs/hardware/nvgpu-ctrl.md#time"),
    ("NVGPU_GPU_IOCTL_FLUSH_L2/*", "docs/hardware/nvgpu-ctrl.md#cache-debug-suspend"),
    ("NVGPU_GPU_IOCTL_*BUFFER*/*", "docs/hardware/nvgpu-ctrl.md#register-buffer"),
    ("NVGPU_GPU_IOCTL_SET_DETERMINISTIC_OPTS/*", "docs/hardware/nvgpu-ctrl.md#deterministic-opts"),
    ("NVGPU_GPU_IOCTL_*/*", "docs/hardware/nvgpu-ctrl.md#topology"),
    ("NVGPU_AS_IOCTL_MAP_BUFFER_EX/offset", "docs/hardware/nvgpu-address-space.md#va-picker"),
    ("NVGPU_AS_IOCTL_MAP_BUFFER_EX/*", "docs/hardware/nvgpu-address-space.md#map-buffer-ex"),
    ("NVGPU_AS_IOCTL_MAP_BUFFER_BATCH/*", "docs/hardware/nvgpu-address-space.md#map-buffer-batch"),
    ("NVGPU_AS_IOCTL_UNMAP_BUFFER/*", "docs/hardware/nvgpu-address-space.md#unmap-buffer"),
    ("NVGPU_AS_IOCTL_ALLOC_SPACE/*", "docs/hardware/nvgpu-address-space.md#alloc-space"),
    ("NVGPU_AS_IOCTL_FREE_SPACE/*", "docs/hardware/nvgpu-address-space.md#free-space"),
    ("NVGPU_AS_IOCTL_BIND_CHANNEL/*", "docs/hardware/nvgpu-address-space.md#bind-channel"),
    ("NVGPU_AS_IOCTL_GET_VA_REGIONS/*", "docs/hardware/nvgpu-address-space.md#get-va-regions"),
    ("NVGPU_AS_IOCTL_GET_SYNC_RO_MAP*", "docs/hardware/nvgpu-address-space.md#get-sync-ro-map"),
    ("NVGPU_AS_IOCTL_*", "docs/hardware/nvgpu-address-space.md#ioctls"),
    ("NVGPU_TSG_IOCTL_CREATE_SUBCONTEXT/*", "docs/hardware/nvgpu-tsg.md#create-subcontext"),
    ("NVGPU_TSG_IOCTL_DELETE_SUBCONTEXT/*", "docs/hardware/nvgpu-tsg.md#create-subcontext"),
    ("NVGPU_TSG_IOCTL_BIND_CHANNEL_EX/*", "docs/hardware/nvgpu-tsg.md#bind-channel-ex"),
    ("NVGPU_TSG_IOCTL_BIND_CHANNEL/*", "docs/hardware/nvgpu-tsg.md#bind-channel"),
    ("NVGPU_TSG_IOCTL_UNBIND_CHANNEL/*", "docs/hardware/nvgpu-tsg.md#unbind-channel"),
    ("NVGPU_TSG_IOCTL_READ_*_SM_ERROR_STATE*", "docs/hardware/nvgpu-faults.md#sm-error-records"),
    ("NVGPU_*TSG*TIMESLICE/*", "docs/hardware/nvgpu-tsg.md#timeslice-and-interleave"),
    ("NVGPU_*TSG*INTERLEAVE/*", "docs/hardware/nvgpu-tsg.md#timeslice-and-interleave"),
    ("NVGPU_IOCTL_TSG_EVENT_ID_CTRL/*", "docs/hardware/nvgpu-tsg.md#event-id-ctrl"),
    ("NVGPU_TSG_IOCTL_*SHARE_TOKEN/*", "docs/hardware/nvgpu-tsg.md#share-tokens"),
    ("NVGPU_*TSG*", "docs/hardware/nvgpu-tsg.md#ioctls"),
    ("NVGPU_IOCTL_CHANNEL_SETUP_BIND/work_submit_token", "docs/hardware/nvgpu-ctrl.md#work-submit-token"),
    ("NVGPU_IOCTL_CHANNEL_SETUP_BIND/result", "docs/hardware/nvgpu-channel.md#setup-bind"),
    ("NVGPU_IOCTL_CHANNEL_SETUP_BIND/*", "docs/hardware/nvgpu-channel.md#setup-bind-effects"),
    ("NVGPU_IOCTL_CHANNEL_ALLOC_OBJ_CTX/*", "docs/hardware/nvgpu-channel.md#alloc-obj-ctx"),
    ("NVGPU_IOCTL_CHANNEL_WDT/*", "docs/hardware/nvgpu-channel.md#watchdog"),
    ("NVGPU_IOCTL_CHANNEL_SET_ERROR_NOTIFIER/*", "docs/hardware/nvgpu-channel.md#set-error-notifier"),
    ("NVGPU_IOCTL_CHANNEL_GET_USER_SYNCPOINT/*", "docs/hardware/nvgpu-channel.md#get-user-syncpoint"),
    ("NVGPU_IOCTL_CHANNEL_SET_PREEMPTION_MODE/*", "docs/hardware/nvgpu-channel.md#set-preemption-mode"),
    ("NVGPU_IOCTL_CHANNEL_FORCE_RESET/*", "docs/hardware/nvgpu-channel.md#force-reset"),
    ("NVGPU_IOCTL_CHANNEL_WAIT/*", "docs/hardware/nvgpu-channel.md#wait"),
    ("NVGPU_IOCTL_CHANNEL_SUBMIT_GPFIFO/*", "docs/hardware/nvgpu-channel.md#submit-gpfifo"),
    ("NVGPU_IOCTL_CHANNEL_*", "docs/hardware/nvgpu-channel.md#ioctls"),
    ("NVGPU_DBG_*", "docs/hardware/nvgpu-debugger.md#debugger-ioctls"),
    ("NVGPU_PROFILER_*", "docs/hardware/nvgpu-debugger.md#profiler-numbers"),
    ("NVMAP_IOC_CREATE*/handle", "docs/hardware/nvmap.md#handle-ids"),
    ("NVMAP_IOC_CREATE*", "docs/hardware/nvmap.md#create"),
    ("NVMAP_IOC_ALLOC/*", "docs/hardware/nvmap.md#alloc"),
    ("NVMAP_IOC_FREE/*", "docs/hardware/nvmap.md#free"),
    ("NVMAP_IOC_GET_FD/*", "docs/hardware/nvmap.md#get-fd"),
    ("NVMAP_IOC_FROM_FD/*", "docs/hardware/nvmap.md#from-fd"),
    ("NVMAP_IOC_FROM_VA/*", "docs/hardware/nvmap.md#from-va"),
    ("NVMAP_IOC_CACHE_LIST/*", "docs/hardware/nvmap.md#cache-list"),
    ("NVMAP_IOC_CACHE*", "docs/hardware/nvmap.md#cache"),
    ("NVMAP_IOC_READ/*", "docs/hardware/nvmap.md#read-write"),
    ("NVMAP_IOC_WRITE/*", "docs/hardware/nvmap.md#read-write"),
    ("NVMAP_IOC_*HEAP*/*", "docs/hardware/nvmap.md#heaps"),
    ("NVMAP_IOC_PARAM*", "docs/hardware/nvmap.md#parameters"),
    ("NVMAP_IOC_DUP_HANDLE/*", "docs/hardware/nvmap.md#dup-handle"),
    ("NVMAP_IOC_*", "docs/hardware/nvmap.md#ioctls"),
)

ANSWERS = (
    ("interface/characteristics.*", "docs/hardware/nvgpu-ctrl.md#characteristics-layout"),
    ("interface/kernel.NVMAP*", "docs/hardware/nvmap.md#alloc-availability"),
    ("interface/*", "docs/hardware/nvgpu-releases.md#probing"),
    ("abi//dev/nvgpu/igpu0/as.*", "docs/hardware/nvgpu-address-space.md#as-node"),
    ("abi//dev/*.open", "docs/hardware/nvgpu-nodes.md#device-nodes"),
    ("abi//dev/nvgpu/igpu0/ctrl.GET_CHARACTERISTICS*", "docs/hardware/nvgpu-ctrl.md#get-characteristics"),
    ("abi//dev/nvgpu/igpu0/ctrl.ZCULL*", "docs/hardware/nvgpu-observed.md#observed-gpu"),
    ("abi//dev/nvgpu/igpu0/ctrl.GET_ENGINE_INFO*", "docs/hardware/nvgpu-ctrl.md#engine-info"),
    ("abi//dev/nvgpu/igpu0/ctrl.GET_[TF]*_MASKS*", "docs/hardware/nvgpu-ctrl.md#topology"),
    ("abi//dev/nvgpu/igpu0/ctrl.NUM_VSMS", "docs/hardware/nvgpu-ctrl.md#vsms-mapping"),
    ("abi//dev/nvgpu/igpu0/ctrl.CLK_*", "docs/hardware/nvgpu-ctrl.md#clk-get"),
    ("abi//dev/nvgpu/igpu0/ctrl.GET_*", "docs/hardware/nvgpu-ctrl.md#absent-features"),
    ("abi//dev/nvgpu/igpu0/ctrl.WAIT_FOR_PAUSE*", "docs/hardware/nvgpu-ctrl.md#cache-debug-suspend"),
    ("abi//dev/nvgpu/igpu0/ctrl.ALLOC_AS*", "docs/hardware/nvgpu-address-space.md#alloc-as-flags"),
    ("abi//dev/nvgpu/igpu0/ctrl.OPEN_TSG*", "docs/hardware/nvgpu-ctrl.md#open-tsg"),
    ("abi//dev/nvmap.GET_AVAILABLE_HEAPS*", "docs/hardware/nvmap.md#heaps"),
    ("abi//dev/nvmap.a*", "docs/hardware/nvmap.md#dispatcher"),
    ("abi//dev/nvmap.*", "docs/hardware/nvmap.md#ioctls"),
    ("abi//dev/nvgpu/igpu0/tsg.a*", "docs/hardware/nvgpu-overview.md#dispatcher"),
    ("abi//dev/nvgpu/igpu0/tsg.*", "docs/hardware/nvgpu-tsg.md#ioctls"),
    ("abi/*", "docs/hardware/nvgpu-overview.md#dispatcher"),
    ("open/profile.*_window", "docs/hardware/gpu-launch-abi.md#generic-windows"),
    ("open/profile.compute_units", "docs/hardware/nvgpu-nodes.md#orin-modules"),
    ("open/profile.*", "docs/hardware/nvgpu-ctrl.md#characteristics-meaning"),
    ("open/*", "docs/hardware/nvgpu-overview.md#bring-up"),
    ("allocate/*.address", "docs/hardware/nvgpu-address-space.md#va-picker"),
    ("allocate/*.clear", "docs/hardware/nvmap.md#alloc-memory"),
    ("allocate/too_large.*", "docs/hardware/nvmap.md#heap-order"),
    ("allocate/*", "docs/hardware/nvmap.md#alloc"),
    ("from-va/*", "docs/hardware/nvmap.md#from-va"),
    ("channels/*.number", "docs/hardware/nvgpu-ctrl.md#channel-ids"),
    ("channels/*", "docs/hardware/nvgpu-tsg.md#timeslice-and-interleave"),
    ("launch/copy.*", "docs/hardware/gpu-copy-engine.md#launch-dma"),
    ("launch/*", "docs/hardware/gpu-launch-descriptor.md#launch-order"),
    ("instructions/approximate*", "docs/hardware/sm87-float.md#mufu"),
    ("instructions/atomic*", "docs/hardware/sm87-memory.md#atomic-rules"),
    ("instructions/matrix_moves*", "docs/hardware/sm87-half-and-tensor.md#ldsm"),
    ("instructions/matrix_bytes*", "docs/hardware/sm87-half-and-tensor.md#imma-dmma"),
    ("instructions/matrix_nibbles*", "docs/hardware/sm87-half-and-tensor.md#imma-dmma"),
    ("instructions/matrix_double*", "docs/hardware/sm87-half-and-tensor.md#imma-dmma"),
    ("instructions/matrix*", "docs/hardware/sm87-half-and-tensor.md#hmma-arithmetic"),
    ("instructions/from_integer*", "docs/hardware/sm87-float.md#int-to-float"),
    ("instructions/from_*", "docs/hardware/sm87-float.md#float-to-int"),
    ("instructions/single_compare*", "docs/hardware/sm87-float.md#fp32-compare"),
    ("instructions/single*", "docs/hardware/sm87-float.md#fp32-arithmetic"),
    ("instructions/double*", "docs/hardware/sm87-float.md#fp64"),
    ("instructions/half*", "docs/hardware/sm87-half-and-tensor.md#half-arithmetic"),
    ("instructions/brain*", "docs/hardware/sm87-half-and-tensor.md#half-arithmetic"),
    ("instructions/long*", "docs/hardware/sm87-integer.md#imad-wide"),
    ("instructions/memory*", "docs/hardware/sm87-memory.md#access-rules"),
    ("instructions/warp*", "docs/hardware/sm87-warp.md#shfl"),
    ("instructions/*", "docs/hardware/sm87-integer.md#iadd3"),
    ("windows/*", "docs/hardware/gpu-launch-abi.md#generic-windows"),
    ("coherence/from_va.*", "docs/hardware/nvmap.md#from-va-mapping"),
    ("coherence/*", "docs/hardware/rm-mappings.md#cpu-cache-attribute"),
    ("release/*", "docs/hardware/gpu-launch-descriptor.md#release-fields"),
    ("fault-window*/fault.*", "docs/hardware/gpu-launch-abi.md#global-in-window"),
    ("fault-*/fault.code", "docs/hardware/nvgpu-faults.md#error-notifier-codes"),
    ("fault-*/fault.warp_error", "docs/hardware/nvgpu-faults.md#warp-esr-codes"),
    ("fault-*/fault.*", "docs/hardware/nvgpu-faults.md#sm-error-records"),
    ("fault-*/more_work.*", "docs/hardware/nvgpu-faults.md#after-death"),
    ("fault-*/*", "docs/hardware/nvgpu-faults.md#recovery"),
    ("hang-endless/*", "docs/hardware/nvgpu-faults.md#context-switch-timeout"),
    ("hang-*/*", "docs/hardware/nvgpu-channel.md#watchdog"),
    ("high-address/*", "docs/hardware/nvgpu-address-space.md#layout"),
    ("large-ring/*", "docs/hardware/nvgpu-address-space.md#keep-below-2-40"),
    ("timings/*", "docs/hardware/gpu-time.md#submission-latency"),
    ("rooflines/*", "docs/hardware/nvgpu-nodes.md#chips"),
    ("bandwidth/*", "docs/hardware/nvgpu-observed.md#observed-memory"),
)
NONE = "docs/hardware/README.md"


def _first(table: tuple, name: str) -> str:
    return next((rule for pattern, rule in table if fnmatch.fnmatchcase(name, pattern)), NONE)


def of_call(call: str, field: str) -> str:
    """The rule of a field of a kernel call."""
    return _first(CALLS, f"{call}/{field}")


def of_answer(step: str, key: str) -> str:
    """The rule of an answer of a step."""
    return _first(ANSWERS, f"{step}/{key}")


def short(rule: str) -> str:
    """A rule without the folder."""
    return rule.removeprefix(CHAPTERS)
