//! The arithmetic of sm_87: pure functions on register bits, one lane at a time.
//!
//! This crate knows no instruction word, no register file and no memory. Modifiers are plain values, which a decoder
//! determines once. Operands and results are raw bits (`u32`, or `u64` for a pair of registers). Every function has a
//! result for all inputs. All of it is inlined, so handlers that pass constants become plain vector code.
//!
//! | module | instructions |
//! |---|---|
//! | [`f32`] | FADD FMUL FFMA FMNMX FSET FSETP FCHK |
//! | [`f64`] | DADD DMUL DFMA DSETP |
//! | [`half`] | HADD2 HMUL2 HFMA2 HMNMX2 HSET2 HSETP2 |
//! | [`convert`] | F2I I2F I2FP FRND F2F F2FP F2IP I2I I2IP |
//! | [`int`] | IADD3 IMAD LEA ISETP IMNMX IABS IDP VABSDIFF |
//! | [`bits`] | LOP3 PLOP3 SHF PRMT FLO SGXT BMSK P2R R2P |
//! | [`mufu`] | MUFU |
//! | [`atomic`] | ATOM ATOMG ATOMS RED |
//! | [`hmma`], [`mma`] | HMMA; IMMA BMMA DMMA LDSM MOVM |
//! | [`sparse`] | the metadata of HMMA.SP and IMMA.SP |
//!
//! They are built on [`round`] and [`format`]. `docs/simulator.md` says which semantics come from documents and which
//! from tests.

pub mod atomic;
pub mod bits;
pub mod convert;
pub mod f32;
pub mod f64;
pub mod format;
pub mod half;
pub mod hmma;
pub mod int;
pub mod mma;
pub mod mufu;
pub mod round;
pub mod sparse;

pub use round::Round;

#[cfg(test)]
#[path = "tests/oracle.rs"]
mod oracle;
