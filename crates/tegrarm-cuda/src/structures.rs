//! Structures of cuda.h that functions here read or write. python/tests/test_cuda_door.py compares them with a C compiler's.

/// `CUDA_MEMCPY2D_v2`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Memcpy2d {
    pub src_x: usize,
    pub src_y: usize,
    pub src_type: u32,
    pub src_host: u64,
    pub src_device: u64,
    pub src_array: u64,
    pub src_pitch: usize,
    pub dst_x: usize,
    pub dst_y: usize,
    pub dst_type: u32,
    pub dst_host: u64,
    pub dst_device: u64,
    pub dst_array: u64,
    pub dst_pitch: usize,
    pub width: usize,
    pub height: usize,
}

/// `CUDA_MEMCPY3D_v2`, and with contexts in place of the reserved words `CUDA_MEMCPY3D_PEER`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Memcpy3d {
    pub src_x: usize,
    pub src_y: usize,
    pub src_z: usize,
    pub src_lod: usize,
    pub src_type: u32,
    pub src_host: u64,
    pub src_device: u64,
    pub src_array: u64,
    pub src_context: u64,
    pub src_pitch: usize,
    pub src_height: usize,
    pub dst_x: usize,
    pub dst_y: usize,
    pub dst_z: usize,
    pub dst_lod: usize,
    pub dst_type: u32,
    pub dst_host: u64,
    pub dst_device: u64,
    pub dst_array: u64,
    pub dst_context: u64,
    pub dst_pitch: usize,
    pub dst_height: usize,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// `CUDA_ARRAY_DESCRIPTOR_v2`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ArrayDescriptor {
    pub width: usize,
    pub height: usize,
    pub format: u32,
    pub channels: u32,
}

/// `CUDA_ARRAY3D_DESCRIPTOR_v2`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Array3dDescriptor {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub format: u32,
    pub channels: u32,
    pub flags: u32,
}

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LaunchConfig {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub stream: usize,
    pub attributes: usize,
    pub count: u32,
}

/// `CUlaunchAttribute`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LaunchAttribute {
    pub id: u32,
    pub pad: [u8; 4],
    pub value: [u64; 8],
}

/// `CUmemcpyAttributes`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CopyAttributes {
    pub order: u32,
    pub source: crate::pointers::Location,
    pub target: crate::pointers::Location,
    pub flags: u32,
}

/// `CUlaunchAttributeValue`: a union.
pub type AttributeValue = [u64; 8];

/// The attributes of a launch or of a stream that a program set.
#[derive(Clone, Default)]
pub struct Attributes(Vec<(u32, AttributeValue)>);

impl Attributes {
    /// The value that was set.
    pub fn get(&self, id: u32) -> Option<AttributeValue> {
        self.0.iter().find(|(other, _)| *other == id).map(|(_, value)| *value)
    }

    /// The number at the beginning of the value that was set, or 0.
    pub fn number(&self, id: u32) -> u32 {
        self.get(id).map_or(0, |value| value[0] as u32)
    }

    /// Sets a value.
    pub fn set(&mut self, id: u32, value: AttributeValue) {
        self.0.retain(|(other, _)| *other != id);
        self.0.push((id, value));
    }
}

/// `CUdevprop_v1`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DeviceProperties {
    pub max_threads_per_block: i32,
    pub max_threads_dim: [i32; 3],
    pub max_grid_size: [i32; 3],
    pub shared_mem_per_block: i32,
    pub total_constant_memory: i32,
    pub simd_width: i32,
    pub mem_pitch: i32,
    pub regs_per_block: i32,
    pub clock_rate: i32,
    pub texture_align: i32,
}

/// `CUmemPoolProps_v1`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PoolProperties {
    pub allocation_type: u32,
    pub handle_types: u32,
    pub location: crate::pointers::Location,
    pub security: usize,
    pub max_size: usize,
    pub usage: u16,
    pub reserved: [u8; 54],
}

/// `CUmemAllocationProp_v1`, with the fields of its structure `allocFlags`, whose type has no name.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AllocationProperties {
    pub allocation_type: u32,
    pub handle_types: u32,
    pub location: crate::pointers::Location,
    pub windows: usize,
    pub compression: u8,
    pub rdma: u8,
    pub usage: u16,
    pub reserved: [u8; 4],
}

/// `CUmemAccessDesc_v1`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AccessDescription {
    pub location: crate::pointers::Location,
    pub flags: u32,
}

/// `CUDA_KERNEL_NODE_PARAMS_v1`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelNode {
    pub function: usize,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub params: usize,
    pub extra: usize,
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`, and `CUDA_KERNEL_NODE_PARAMS_v3`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelNode2 {
    pub function: usize,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub params: usize,
    pub extra: usize,
    pub kernel: usize,
    pub context: usize,
}

/// `CUDA_MEMCPY_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemcpyNode {
    pub flags: i32,
    pub reserved: i32,
    pub context: usize,
    pub copy: Memcpy3d,
}

/// `CUDA_MEMSET_NODE_PARAMS_v1`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemsetNode {
    pub address: u64,
    pub pitch: usize,
    pub value: u32,
    pub element: u32,
    pub width: usize,
    pub height: usize,
}

/// `CUDA_HOST_NODE_PARAMS_v1`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HostNode {
    pub function: usize,
    pub user: usize,
}

/// `CUgraphNodeParams`: the type of a node, and the structure of this type.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NodeParameters {
    pub kind: u32,
    pub reserved0: [i32; 3],
    pub union: [u64; 29],
    pub reserved2: i64,
}

/// `CUDA_GRAPH_INSTANTIATE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct InstantiateParameters {
    pub flags: u64,
    pub stream: usize,
    pub error_node: usize,
    pub result: u32,
}

/// `CUgraphExecUpdateResultInfo_v1`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct UpdateResult {
    pub result: u32,
    pub error_node: usize,
    pub error_from: usize,
}

/// `CUctxCreateParams`: a context for a part of the SMs, or one that shares data with a graphics interface. All zeroes mean neither.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ContextParameters {
    pub affinities: usize,
    pub affinity_count: i32,
    pub graphics: usize,
}
