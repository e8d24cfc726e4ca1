//! Relocations of CPU code: rows for x86-64 and AArch64, and functions that write each kind of field.
//!
//! The numbers and the formulas are from the System V ABI's AMD64 supplement and Arm's "ELF for the Arm 64-bit
//! Architecture". S is the symbol's address, A the addend, P the address of the field, and G the symbol's slot in the
//! table of addresses (GOT).

use goblin::elf::reloc::*;

/// What the formula needs to know about the symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Its address.
    Address,
    /// An address to jump to: the symbol's own, or that of a stub near the field if the symbol is outside of the
    /// object.
    Target,
    /// Its slot in the table of addresses.
    Slot,
}

/// The form of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// S + A, 64 bits.
    Abs64,
    /// S + A, 32 bits, zero-extended by the code.
    AbsU32,
    /// S + A, 32 bits, sign-extended by the code.
    AbsS32,
    /// S + A − P, 64 bits.
    Rel64,
    /// S + A − P, 32 bits, signed.
    Rel32,
    /// AArch64 branch: (S + A − P) / 4 in the low 26 bits.
    Branch26,
    /// AArch64 conditional branch: (S + A − P) / 4 in bits 23:5.
    Branch19,
    /// AArch64 test-and-branch: (S + A − P) / 4 in bits 18:5.
    Branch14,
    /// AArch64 ADR: S + A − P in bits 23:5 and 30:29.
    Adr21,
    /// AArch64 ADRP: the distance in pages, same bits.
    Page21,
    /// AArch64 load/store/add: the low 12 bits of S + A, divided by the access size 2^n, in bits 21:10.
    Low12(u32),
}

/// One relocation type.
#[derive(Debug)]
pub struct Kind {
    /// The number of the ELF relocation type.
    pub number: u32,
    /// The name in the ABI document.
    pub name: &'static str,
    /// What the relocation needs to know about the symbol.
    pub need: Need,
    /// The field that gets the result.
    pub field: Field,
}

macro_rules! rows {
    ($($number:ident $need:ident $field:expr;)*) => {
        &[$(Kind { number: $number, name: stringify!($number), need: Need::$need, field: $field }),*]
    };
}

use Field::*;

/// The rows of x86-64.
pub static X86_64: &[Kind] = rows! {
    R_X86_64_64 Address Abs64;
    R_X86_64_PC32 Address Rel32;
    R_X86_64_PLT32 Target Rel32;
    R_X86_64_GOTPCREL Slot Rel32;
    R_X86_64_32 Address AbsU32;
    R_X86_64_32S Address AbsS32;
    R_X86_64_PC64 Address Rel64;
    R_X86_64_GOTPCRELX Slot Rel32;
    R_X86_64_REX_GOTPCRELX Slot Rel32;
};

/// The rows of AArch64.
pub static AARCH64: &[Kind] = rows! {
    R_AARCH64_ABS64 Address Abs64;
    R_AARCH64_ABS32 Address AbsU32;
    R_AARCH64_PREL64 Address Rel64;
    R_AARCH64_PREL32 Address Rel32;
    R_AARCH64_ADR_PREL_LO21 Address Adr21;
    R_AARCH64_ADR_PREL_PG_HI21 Address Page21;
    R_AARCH64_ADR_PREL_PG_HI21_NC Address Page21;
    R_AARCH64_ADD_ABS_LO12_NC Address Low12(0);
    R_AARCH64_LDST8_ABS_LO12_NC Address Low12(0);
    R_AARCH64_TSTBR14 Target Branch14;
    R_AARCH64_CONDBR19 Target Branch19;
    R_AARCH64_JUMP26 Target Branch26;
    R_AARCH64_CALL26 Target Branch26;
    R_AARCH64_LDST16_ABS_LO12_NC Address Low12(1);
    R_AARCH64_LDST32_ABS_LO12_NC Address Low12(2);
    R_AARCH64_LDST64_ABS_LO12_NC Address Low12(3);
    R_AARCH64_LDST128_ABS_LO12_NC Address Low12(4);
    R_AARCH64_ADR_GOT_PAGE Slot Page21;
    R_AARCH64_LD64_GOT_LO12_NC Slot Low12(3);
};

impl Field {
    /// The number of bytes of the field.
    pub fn bytes(self) -> usize {
        if matches!(self, Abs64 | Rel64) { 8 } else { 4 }
    }

    /// Whether only code below 2 GiB can have such an address.
    pub fn is_low(self) -> bool {
        matches!(self, AbsU32 | AbsS32)
    }

    /// The condition for the value, for the message if it is not met.
    pub fn wanted(self) -> &'static str {
        match self {
            Abs64 | Rel64 => "64 bits",
            AbsU32 => "an address below 4 GiB: compile with -fPIC",
            AbsS32 => "an address below 2 GiB: compile with -fPIC",
            Rel32 => "within 2 GiB of the place",
            Branch26 => "a multiple of 4 within 128 MiB of the place",
            Branch19 => "a multiple of 4 within 1 MiB of the place",
            Branch14 => "a multiple of 4 within 32 KiB of the place",
            Adr21 => "within 1 MiB of the place",
            Page21 => "within 4 GiB of the place",
            Low12(_) => "a multiple of the access size",
        }
    }

    /// Writes the field at the start of `bytes` for target `s_a` (S + A) and place `p`.
    ///
    /// # Errors
    /// The value, if the field cannot hold it.
    ///
    /// # Panics
    /// `bytes` is shorter than [`Field::bytes`].
    pub fn write(self, bytes: &mut [u8], s_a: u64, p: u64) -> Result<(), i128> {
        let distance = i128::from(s_a) - i128::from(p);
        let fits = |value: i128, bits: u32, unit: i128| {
            let limit = 1i128 << (bits - 1);
            let count = value / unit;
            if value % unit == 0 && (-limit..limit).contains(&count) { Ok(count as u64 as u32) } else { Err(value) }
        };
        match self {
            Abs64 => bytes[..8].copy_from_slice(&s_a.to_le_bytes()),
            Rel64 => bytes[..8].copy_from_slice(&s_a.wrapping_sub(p).to_le_bytes()),
            AbsU32 => put(bytes, u32::try_from(s_a).map_err(|_| i128::from(s_a))?, u32::MAX, 0),
            AbsS32 => put(bytes, fits(i128::from(s_a as i64), 32, 1)?, u32::MAX, 0),
            Rel32 => put(bytes, fits(distance, 32, 1)?, u32::MAX, 0),
            Branch26 => put(bytes, fits(distance, 26, 4)?, 0x3ff_ffff, 0),
            Branch19 => put(bytes, fits(distance, 19, 4)?, 0x7_ffff, 5),
            Branch14 => put(bytes, fits(distance, 14, 4)?, 0x3fff, 5),
            Adr21 => put_adr(bytes, fits(distance, 21, 1)?),
            Page21 => {
                let pages = i128::from(s_a & !0xfff) - i128::from(p & !0xfff);
                put_adr(bytes, fits(pages, 21, 4096)?);
            }
            Low12(n) => {
                let low = (s_a & 0xfff) as u32;
                if low & ((1 << n) - 1) != 0 {
                    return Err(i128::from(s_a));
                }
                put(bytes, low >> n, 0xfff, 10);
            }
        }
        Ok(())
    }
}

fn put(bytes: &mut [u8], value: u32, mask: u32, shift: u32) {
    let old = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let new = old & !(mask << shift) | (value & mask) << shift;
    bytes[..4].copy_from_slice(&new.to_le_bytes());
}

fn put_adr(bytes: &mut [u8], value: u32) {
    put(bytes, value, 3, 29);
    put(bytes, value >> 2, 0x7_ffff, 5);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words that an AArch64 assembler makes of the instruction at `p` if the target is `s_a`.
    #[test]
    fn aarch64_instruction_words() {
        let cases: &[(Field, u32, u64, u64, u32)] = &[
            (Branch26, 0x9400_0000, 0x1000, 0x1000, 0x9400_0000), // bl .
            (Branch26, 0x9400_0000, 0x1008, 0x1000, 0x9400_0002), // bl .+8
            (Branch26, 0x1400_0000, 0x0ffc, 0x1000, 0x17ff_ffff), // b .-4
            (Branch19, 0x5400_0001, 0x1010, 0x1000, 0x5400_0081), // b.ne .+16
            (Branch14, 0x3600_0000, 0x0ff8, 0x1000, 0x3607_ffc0), // tbz w0, #0, .-8
            (Page21, 0x9000_0000, 0x3456, 0x1000, 0xd000_0000),   // adrp x0, .+0x2000
            (Page21, 0x9000_0001, 0x0, 0x1ffc, 0xf0ff_ffe1),      // adrp x1, .-0x1000
            (Adr21, 0x1000_0000, 0x1005, 0x1000, 0x3000_0020),    // adr x0, .+5
            (Low12(0), 0x9100_0000, 0x12345, 0, 0x910d_1400),     // add x0, x0, #0x345
            (Low12(0), 0x3940_0020, 0x12345, 0, 0x394d_1420),     // ldrb w0, [x1, #0x345]
            (Low12(1), 0x7940_0020, 0x12346, 0, 0x7946_8c20),     // ldrh w0, [x1, #0x346]
            (Low12(2), 0xb940_0020, 0x12348, 0, 0xb943_4820),     // ldr w0, [x1, #0x348]
            (Low12(3), 0xf940_0020, 0x12348, 0, 0xf941_a420),     // ldr x0, [x1, #0x348]
            (Low12(4), 0x3dc0_0020, 0x12350, 0, 0x3dc0_d420),     // ldr q0, [x1, #0x350]
        ];
        for &(field, word, s_a, p, want) in cases {
            let mut bytes = word.to_le_bytes();
            field.write(&mut bytes, s_a, p).unwrap();
            assert_eq!(u32::from_le_bytes(bytes), want, "{field:?} {s_a:#x} at {p:#x}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut b = [0; 8];
        assert!(Branch26.write(&mut b, 1 << 27, 0).is_err());
        assert!(Branch26.write(&mut b, (1 << 27) - 4, 0).is_ok());
        assert!(Branch26.write(&mut b, 0, 1 << 27).is_ok());
        assert!(Branch26.write(&mut b, 2, 0).is_err());
        assert!(Rel32.write(&mut b, 1 << 31, 0).is_err());
        assert!(Rel32.write(&mut b, 0, 1 << 31).is_ok());
        assert!(AbsS32.write(&mut b, 1 << 31, 0).is_err());
        assert!(AbsS32.write(&mut b, u64::MAX, 0).is_ok());
        assert!(AbsU32.write(&mut b, 1 << 32, 0).is_err());
        assert!(Page21.write(&mut b, 1 << 32, 0).is_err());
        assert!(Low12(3).write(&mut b, 0x124, 0).is_err());
        assert!(Low12(3).write(&mut b, 0x128, 0).is_ok());
    }

    #[test]
    fn tables_are_sorted() {
        for table in [X86_64, AARCH64] {
            assert!(table.windows(2).all(|w| w[0].number < w[1].number));
        }
    }
}
