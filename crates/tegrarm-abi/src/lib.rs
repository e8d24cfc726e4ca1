//! Numbers and memory layouts, nothing else: what the Jetson kernel drivers (nvgpu, nvmap), desktop
//! NVIDIA's Resource Manager (driver 570.86.16) and the GPU's command classes agree on with their users.
//!
//! Every structure, ioctl number, constant and bit range is declared through one of the macros of
//! [`layout`], which also puts it into a registry. `tests/layout.rs` walks those registries and compares
//! each entry with tables read off a C compiler (`tests/data/abi/*.json`): an entry without a counterpart
//! fails. The same registries name the fields of an ioctl argument for recordings and traces.
//!
//! ABI items keep their upstream spelling. Padding is explicit (`_pad0`, …), so every structure can be
//! viewed as bytes. A trailing underscore (`type_`) avoids a Rust keyword.

#![no_std]
#![forbid(unsafe_code)]
#![allow(non_camel_case_types, non_snake_case, non_upper_case_globals)]

#[macro_use]
pub mod layout;
pub mod methods;
pub mod nvgpu;
pub mod nvmap;
pub mod registry;
pub mod rm;
pub mod sync_file;
