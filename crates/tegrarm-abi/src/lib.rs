//! Numbers and memory layouts that the Jetson kernel drivers (nvgpu, nvmap), desktop NVIDIA's Resource Manager (driver
//! 570.86.16) and the GPU's command classes share with their users. This crate contains nothing else.
//!
//! Every structure, ioctl number, constant and bit range is declared through one of the macros of [`layout`], which
//! also enters it into a registry. `tests/layout.rs` compares each entry of the registries with tables that were read
//! off a C compiler (`tests/data/abi/*.json`). An entry that no table has makes the test fail. Recordings and traces
//! take the names of an ioctl's fields from the same registries.
//!
//! ABI items keep their upstream spelling. Padding is explicit (`_pad0`, …), so every structure can be
//! viewed as bytes. A trailing underscore (`type_`) avoids a Rust keyword.

#![no_std]
#![forbid(unsafe_code)]
#![allow(non_camel_case_types, non_snake_case, non_upper_case_globals)]

#[macro_use]
pub mod layout;
pub mod host1x;
pub mod methods;
pub mod nvgpu;
pub mod nvmap;
pub mod registry;
pub mod rm;
pub mod sync_file;
