//! libtegrarm: desktop NVIDIA's Resource Manager interface on Jetson's nvgpu and nvmap.

pub mod runtime;
