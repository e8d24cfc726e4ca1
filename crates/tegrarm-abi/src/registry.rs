//! All registries of this crate in one place: for the layout test, for decoding, for generated headers.

use crate::layout::{Const, Ioctl, NamedBits, Node, StructLayout};

/// Every registry of structures.
pub static STRUCTS: &[&[&StructLayout]] = &[
    crate::nvgpu::address_space::ADDRESS_SPACE_STRUCTS,
    crate::nvgpu::channel::CHANNEL_STRUCTS,
    crate::nvgpu::ctrl::info::CTRL_INFO_STRUCTS,
    crate::nvgpu::ctrl::args::CTRL_ARGS_STRUCTS,
    crate::nvgpu::ctrl_fifo::CTRL_FIFO_STRUCTS,
    crate::nvgpu::ctxsw::CTXSW_STRUCTS,
    crate::nvgpu::debugger::DEBUGGER_STRUCTS,
    crate::nvgpu::nvsched::NVSCHED_STRUCTS,
    crate::nvgpu::profiler::PROFILER_STRUCTS,
    crate::nvgpu::r35::R35_STRUCTS,
    crate::nvgpu::sched::SCHED_STRUCTS,
    crate::nvgpu::tsg::TSG_STRUCTS,
    crate::nvmap::NVMAP_STRUCTS,
    crate::rm::alloc::params::ALLOC_STRUCTS,
    crate::rm::alloc::params::FURTHER_ALLOC_STRUCTS,
    crate::rm::ctrl_0000::CTRL_0000_STRUCTS,
    crate::rm::ctrl_0041::CTRL_0041_STRUCTS,
    crate::rm::ctrl_0080::CTRL_0080_STRUCTS,
    crate::rm::ctrl_2080::gpu::CTRL_2080_GPU_STRUCTS,
    crate::rm::ctrl_2080::gr::CTRL_2080_GR_STRUCTS,
    crate::rm::ctrl_2080::fb::CTRL_2080_FB_STRUCTS,
    crate::rm::ctrl_2080::bus::CTRL_2080_BUS_STRUCTS,
    crate::rm::ctrl_2080::engines::CTRL_2080_ENGINES_STRUCTS,
    crate::rm::ctrl_83de::CTRL_83DE_STRUCTS,
    crate::rm::ctrl_a06c::CTRL_A06C_STRUCTS,
    crate::rm::ctrl_a06f::CTRL_A06F_STRUCTS,
    crate::rm::ctrl_b0cc::CTRL_B0CC_STRUCTS,
    crate::rm::ctrl_c36f::CTRL_C36F_STRUCTS,
    crate::rm::ctrl_c36f::FURTHER_CTRL_C36F_STRUCTS,
    crate::rm::escapes::objects::ESCAPE_OBJECTS_STRUCTS,
    crate::rm::escapes::vid_heap::ESCAPE_VID_HEAP_STRUCTS,
    crate::rm::escapes::nodes::ESCAPE_NODES_STRUCTS,
    crate::rm::usermode::USERD_STRUCTS,
    crate::rm::uvm::mapping::UVM_MAPPING_STRUCTS,
    crate::rm::uvm::managed::UVM_MANAGED_STRUCTS,
    crate::rm::uvm::tools::UVM_TOOLS_STRUCTS,
    crate::rm::versions::VERSION_STRUCTS,
    crate::sync_file::SYNC_FILE_STRUCTS,
];

/// Every registry of ioctls.
pub static IOCTLS: &[&[Ioctl]] = &[
    crate::nvgpu::address_space::ADDRESS_SPACE_IOCTLS,
    crate::nvgpu::channel::CHANNEL_IOCTLS,
    crate::nvgpu::ctrl::numbers::CTRL_IOCTLS,
    crate::nvgpu::ctrl_fifo::CTRL_FIFO_IOCTLS,
    crate::nvgpu::ctxsw::CTXSW_IOCTLS,
    crate::nvgpu::debugger::DEBUGGER_IOCTLS,
    crate::nvgpu::nvsched::NVSCHED_IOCTLS,
    crate::nvgpu::profiler::PROFILER_IOCTLS,
    crate::nvgpu::r35::CTRL_IOCTLS_R35,
    crate::nvgpu::r35::CHANNEL_IOCTLS_R35,
    crate::nvgpu::r35::NVMAP_IOCTLS_R35,
    crate::nvgpu::r35::PROFILER_IOCTLS_R35,
    crate::nvgpu::sched::SCHED_IOCTLS,
    crate::nvgpu::tsg::TSG_IOCTLS,
    crate::nvmap::NVMAP_IOCTLS,
    crate::sync_file::SYNC_FILE_IOCTLS,
];

/// Every registry of constants.
pub static CONSTS: &[&[Const]] = &[
    crate::methods::compute::methods::COMPUTE_CONSTS,
    crate::methods::copy::COPY_CONSTS,
    crate::methods::host::HOST_CONSTS,
    crate::methods::qmd::QMD_CONSTS,
    crate::nvgpu::address_space::ADDRESS_SPACE_CONSTS,
    crate::nvgpu::channel::CHANNEL_CONSTS,
    crate::nvgpu::ctrl::numbers::CTRL_CONSTS,
    crate::nvgpu::ctrl_fifo::CTRL_FIFO_CONSTS,
    crate::nvgpu::ctxsw::CTXSW_CONSTS,
    crate::nvgpu::debugger::DEBUGGER_CONSTS,
    crate::nvgpu::nvsched::NVSCHED_CONSTS,
    crate::nvgpu::profiler::PROFILER_CONSTS,
    crate::nvgpu::r35::R35_CONSTS,
    crate::nvgpu::sched::SCHED_CONSTS,
    crate::nvgpu::tsg::TSG_CONSTS,
    crate::nvmap::NVMAP_CONSTS,
    crate::rm::alloc::flags::ALLOC_CONSTS,
    crate::rm::alloc::flags::FURTHER_ALLOC_CONSTS,
    crate::rm::classes::CLASS_CONSTS,
    crate::rm::classes::FURTHER_CLASS_CONSTS,
    crate::rm::ctrl_0000::CTRL_0000_CONSTS,
    crate::rm::ctrl_0041::CTRL_0041_CONSTS,
    crate::rm::ctrl_0080::CTRL_0080_CONSTS,
    crate::rm::ctrl_2080::gpu::CTRL_2080_GPU_CONSTS,
    crate::rm::ctrl_2080::gpu::FURTHER_CTRL_2080_GPU_CONSTS,
    crate::rm::ctrl_2080::gr::CTRL_2080_GR_CONSTS,
    crate::rm::ctrl_2080::fb::CTRL_2080_FB_CONSTS,
    crate::rm::ctrl_2080::bus::CTRL_2080_BUS_CONSTS,
    crate::rm::ctrl_2080::engines::CTRL_2080_ENGINES_CONSTS,
    crate::rm::ctrl_83de::CTRL_83DE_CONSTS,
    crate::rm::ctrl_a06c::CTRL_A06C_CONSTS,
    crate::rm::ctrl_a06f::CTRL_A06F_CONSTS,
    crate::rm::ctrl_b0cc::CTRL_B0CC_CONSTS,
    crate::rm::ctrl_c36f::CTRL_C36F_CONSTS,
    crate::rm::ctrl_c36f::FURTHER_CTRL_C36F_CONSTS,
    crate::rm::escapes::numbers::ESCAPE_CONSTS,
    crate::rm::status::STATUS_CONSTS,
    crate::rm::usermode::USERMODE_CONSTS,
    crate::rm::uvm::numbers::UVM_CONSTS,
];

/// Every registry of bit ranges.
pub static BITS: &[&[NamedBits]] = &[
    crate::methods::compute::fields::COMPUTE_BITS,
    crate::methods::copy::COPY_BITS,
    crate::methods::host::HOST_BITS,
    crate::methods::qmd::QMD_BITS,
];

/// The ioctl that `node` knows under `number`, r36 first.
pub fn ioctl(node: Node, number: u32) -> Option<&'static Ioctl> {
    IOCTLS.iter().flat_map(|list| list.iter()).find(|i| i.node == node && i.number == number)
}
