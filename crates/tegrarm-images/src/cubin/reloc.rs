//! CUDA relocations: one row for each type, and the function that applies them.
//!
//! Numbers, names and bit fields are those of the compilers' own output (`ABS47_34` is a 47-bit field at bit 34). The
//! disassembler confirmed the call target of type 58: `CALL.ABS` shows four times the field.

use crate::elf::Problem;

/// The kind of address that the instruction or the data needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// An address in the symbol's own space. Global memory and code have their GPU address, constants their offset in
    /// the bank, and shared memory its offset in the block's window.
    Space,
    /// An address that any load may use. For a constant this is the GPU address of its copy in memory.
    Generic,
}

/// One relocation type.
#[derive(Debug)]
pub struct Kind {
    /// The number of the ELF relocation type.
    pub number: u32,
    /// NVIDIA's name.
    pub name: &'static str,
    /// The kind of address that is written.
    pub address: Address,
    /// The number of low bits of the address that are dropped.
    pub shift: u32,
    /// The first bit of the field, counted from the relocation's offset.
    pub bit: u32,
    /// The width of the field in bits.
    pub width: u32,
    /// Whether the rest of the address must be zero. For the halves and bytes of a divided address it need not be.
    pub whole: bool,
}

const fn row(number: u32, name: &'static str, address: Address, field: (u32, u32, u32), whole: bool) -> Kind {
    let (shift, bit, width) = field;
    Kind { number, name, address, shift, bit, width, whole }
}

use Address::{Generic, Space};

/// All types that the loader applies. The fields are (address shift, first bit, width).
pub static KINDS: &[Kind] = &[
    row(1, "R_CUDA_32", Space, (0, 0, 32), true),
    row(2, "R_CUDA_64", Space, (0, 0, 64), true),
    row(3, "R_CUDA_G32", Generic, (0, 0, 32), true),
    row(4, "R_CUDA_G64", Generic, (0, 0, 64), true),
    row(55, "R_CUDA_ABS32_32", Space, (0, 32, 32), true),
    row(56, "R_CUDA_ABS32_LO_32", Space, (0, 32, 32), false),
    row(57, "R_CUDA_ABS32_HI_32", Space, (32, 32, 32), false),
    row(58, "R_CUDA_ABS47_34", Space, (2, 34, 47), true),
    row(70, "R_CUDA_32_LO", Space, (0, 0, 32), false),
    row(71, "R_CUDA_32_HI", Space, (32, 0, 32), false),
    row(76, "R_CUDA_8_0", Space, (0, 0, 8), false),
    row(77, "R_CUDA_8_8", Space, (8, 0, 8), false),
    row(78, "R_CUDA_8_16", Space, (16, 0, 8), false),
    row(79, "R_CUDA_8_24", Space, (24, 0, 8), false),
    row(80, "R_CUDA_8_32", Space, (32, 0, 8), false),
    row(81, "R_CUDA_8_40", Space, (40, 0, 8), false),
    row(82, "R_CUDA_8_48", Space, (48, 0, 8), false),
    row(83, "R_CUDA_8_56", Space, (56, 0, 8), false),
    row(84, "R_CUDA_G8_0", Generic, (0, 0, 8), false),
    row(85, "R_CUDA_G8_8", Generic, (8, 0, 8), false),
    row(86, "R_CUDA_G8_16", Generic, (16, 0, 8), false),
    row(87, "R_CUDA_G8_24", Generic, (24, 0, 8), false),
    row(88, "R_CUDA_G8_32", Generic, (32, 0, 8), false),
    row(89, "R_CUDA_G8_40", Generic, (40, 0, 8), false),
    row(90, "R_CUDA_G8_48", Generic, (48, 0, 8), false),
    row(91, "R_CUDA_G8_56", Generic, (56, 0, 8), false),
];

/// Types that need something which a loader does not have. They are refused by name.
static REFUSED: &[(std::ops::RangeInclusive<u32>, &str, &str)] = &[
    (5..=5, " (an sm_2x to sm_6x instruction)", ": the code is for an older GPU"),
    (6..=9, " (a texture, sampler or surface header)", ": textures are not supported"),
    (10..=18, " (an sm_2x to sm_6x instruction)", ": the code is for an older GPU"),
    (19..=23, " (a texture, sampler or surface slot)", ": textures are not supported"),
    (31..=35, " (R_CUDA_FUNC_DESC, a function descriptor)", ": link with nvJitLink first"),
    (47..=49, " (R_CUDA_FUNC_DESC, a function descriptor)", ": link with nvJitLink first"),
    (61..=63, " (R_CUDA_FUNC_DESC, a function descriptor)", ": link with nvJitLink first"),
    (52..=52, " (R_CUDA_SURF_HEADER_INDEX)", ": textures are not supported"),
    (92..=99, " (R_CUDA_FUNC_DESC, a function descriptor)", ": link with nvJitLink first"),
    (101..=101, " (R_CUDA_SAMP_HEADER_INDEX_0)", ": textures are not supported"),
    (102..=113, " (R_CUDA_UNIFIED, an entry of a unified function table)", ": compile without unified functions"),
];

/// Finds the row of a relocation type.
///
/// # Errors
/// [`Problem::Relocation`] with the reason, if the loader cannot apply the type.
pub fn kind(number: u32) -> Result<&'static Kind, Problem> {
    KINDS.iter().find(|k| k.number == number).ok_or_else(|| {
        let refused = REFUSED.iter().find(|(numbers, ..)| numbers.contains(&number));
        let (name, why) = refused.map_or(("", ": the type is not known on sm_87"), |&(_, name, why)| (name, why));
        Problem::Relocation { kind: number, name, why }
    })
}

impl Kind {
    /// The number of bytes from the relocation's offset that the field touches.
    pub fn bytes(&self) -> usize {
        (self.bit + self.width).div_ceil(8) as usize
    }

    /// The bits for the field. The result is `None` if the address does not fit.
    pub fn encode(&self, address: u64) -> Option<u64> {
        let mask = u64::MAX >> (64 - self.width);
        let dropped = address & ((1 << self.shift) - 1);
        let field = address >> self.shift;
        if self.whole && (dropped != 0 || field & !mask != 0) { None } else { Some(field & mask) }
    }

    /// Whether the field at the start of `place` is zero, as every compiler leaves it.
    pub fn is_clear(&self, place: &[u8]) -> bool {
        self.word(place) & self.mask() == 0
    }

    /// Writes the field. The bits around it do not change.
    ///
    /// # Panics
    /// `place` is shorter than [`Kind::bytes`]. The caller checks this when it reads the file.
    pub fn write(&self, place: &mut [u8], field: u64) {
        let word = self.word(place) & !self.mask() | u128::from(field) << self.bit;
        place[..self.bytes()].copy_from_slice(&word.to_le_bytes()[..self.bytes()]);
    }

    fn mask(&self) -> u128 {
        u128::from(u64::MAX >> (64 - self.width)) << self.bit
    }

    fn word(&self, place: &[u8]) -> u128 {
        let mut word = [0u8; 16];
        word[..self.bytes()].copy_from_slice(&place[..self.bytes()]);
        u128::from_le_bytes(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_fit() {
        assert!(KINDS.windows(2).all(|w| w[0].number < w[1].number));
        assert!(KINDS.iter().all(|k| k.bit + k.width <= 128 && k.width <= 64));
        let applied = |n| KINDS.iter().any(|k| k.number == n);
        assert!(!REFUSED.iter().any(|(numbers, ..)| numbers.clone().any(applied)));
    }

    #[test]
    fn call_target_is_four_times_the_field() {
        // CALL.ABS.NOINC 0x0 becomes an instruction that nvdisasm prints as CALL.ABS.NOINC 0xfffffff000.
        let mut word = 0x000f_ea00_03c0_0000_0000_0000_0000_7943_u128.to_le_bytes();
        let kind = kind(58).unwrap();
        let field = kind.encode(0xff_ffff_f000).unwrap();
        kind.write(&mut word, field);
        assert_eq!(u128::from_le_bytes(word), 0x000f_ea00_03c0_00ff_ffff_f000_0000_7943);
        assert_eq!(kind.encode(0x1001), None, "not a multiple of 4");
        assert_eq!(kind.encode(1 << 49), None, "beyond 49 bits");
        assert_eq!(kind.bytes(), 11);
    }

    #[test]
    fn halves_of_an_address() {
        let address = 0x00ab_cdef_1234_5678;
        assert_eq!(kind(56).unwrap().encode(address), Some(0x1234_5678));
        assert_eq!(kind(57).unwrap().encode(address), Some(0x00ab_cdef));
        assert_eq!(kind(1).unwrap().encode(address), None);
        assert_eq!(kind(79).unwrap().encode(address), Some(0x12));
    }

    #[test]
    fn refusals_name_the_type() {
        let text = kind(35).unwrap_err().to_string();
        assert!(text.contains("35") && text.contains("FUNC_DESC"), "{text}");
        assert!(kind(4000).unwrap_err().to_string().contains("4000"));
    }
}
