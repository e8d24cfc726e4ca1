//! Object files and the machine code in them: what compilers wrote ([`elf`], [`cubin`]), CPU machine code of a caller
//! ([`hostobj`]), and the library that kernels call ([`library`]).

pub mod cubin;
pub mod elf;
pub mod hostobj;
pub mod library;
