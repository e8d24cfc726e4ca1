//! The arithmetic of sm_87: pure functions on register bits, one lane at a time.
//!
//! Nothing here knows an instruction word, a register file or memory. Modifiers are plain values a decoder fixes
//! once; operands and results are raw bits (`u32`, or `u64` for a pair of registers); every function is total.
//! Handlers that pass constants get straight vector code, because all of it inlines.
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
//! | [`hmma`], [`mma`] | HMMA; IMMA DMMA LDSM MOVM |
//!
//! [`round`] and [`format`] are what they are built on. Which semantics rest on documents and which on tests is
//! said in `docs/simulator.md`.

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

pub use round::Round;

#[cfg(test)]
#[path = "tests/oracle.rs"]
mod oracle;
