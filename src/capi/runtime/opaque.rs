//! The types that C sees only as pointers. A pointer to one is a handle, never an address: see [`super::handles`].
#![allow(non_camel_case_types)]

/// An open GPU. A pointer to it is a handle and not an address: the library recognises the handle of a device that was
/// closed, and refuses it.
pub struct tegrarm_device {
    _private: [u8; 0],
}

/// Memory of a device that the CPU and the GPU share. A pointer to it is a handle.
pub struct tegrarm_buffer {
    _private: [u8; 0],
}

/// Machine code that is loaded on a device. A pointer to it is a handle.
pub struct tegrarm_module {
    _private: [u8; 0],
}

/// A kernel of a module. A pointer to it is a handle, which belongs to the module.
pub struct tegrarm_kernel {
    _private: [u8; 0],
}

/// Machine code of the CPU that is loaded into this process. A pointer to it is a handle, which belongs to no device.
pub struct tegrarm_object {
    _private: [u8; 0],
}

/// Work that is recorded once and runs many times. A pointer to it is a handle. Only one thread at a time may be in a
/// call of one replay, and a second thread is refused.
pub struct tegrarm_replay {
    _private: [u8; 0],
}

/// A queue of a device: work that runs in the order in which it was given. A pointer to it is a handle.
pub struct tegrarm_queue {
    _private: [u8; 0],
}

/// A point in the work of a queue, and the time when the GPU came to it. A pointer to it is a handle.
pub struct tegrarm_event {
    _private: [u8; 0],
}
