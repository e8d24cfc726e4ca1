//! Object files and the machine code in them: what compilers wrote ([`elf`], [`cubin`]), and CPU machine code of a caller ([`hostobj`]).

pub mod cubin;
pub mod elf;
pub mod hostobj;
