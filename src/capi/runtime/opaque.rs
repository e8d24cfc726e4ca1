//! The types that C sees only as pointers. A pointer to one is a handle, never an address: see [`super::handles`].
#![allow(non_camel_case_types)]

/// An open GPU. The pointer is a handle, not an address: a closed one is recognised and refused.
pub struct tegrarm_device {
    _private: [u8; 0],
}

/// Memory of a device that CPU and GPU share. A handle, as `tegrarm_device`.
pub struct tegrarm_buffer {
    _private: [u8; 0],
}

/// Loaded machine code. A handle, as `tegrarm_device`.
pub struct tegrarm_module {
    _private: [u8; 0],
}

/// A kernel of a module. A handle, as `tegrarm_device`; it belongs to its module.
pub struct tegrarm_kernel {
    _private: [u8; 0],
}

/// Loaded CPU machine code. A handle, as `tegrarm_device`; it belongs to the process, not to a device.
pub struct tegrarm_object {
    _private: [u8; 0],
}

/// Work that was recorded once and runs many times. A handle, as `tegrarm_device`. One thread at a time may be in a
/// call of one replay; a second is refused.
pub struct tegrarm_replay {
    _private: [u8; 0],
}
