//! Prints addresses.

use super::Printer;
use crate::isa::piece::{Address, Global};
use crate::isa::{CACHE_LINE, Datapath};

/// The offset of most addresses.
const OFFSET: (u32, u32) = (40, 24);
/// The offset of addresses that have space for a longer one.
const LONG_OFFSET: (u32, u32) = (32, 32);
/// This bit says that a uniform register is a part of the address.
const UNIFORM: u32 = 91;
/// This bit says that the descriptor in a uniform register is written.
const WRITTEN: u32 = 101;

impl Printer<'_> {
    pub(super) fn address(&mut self, address: Address) {
        match address {
            Address::Global(global) => self.global(global),
            Address::Window { scaled, uniform } => self.window(scaled, uniform),
            Address::Constant => self.constant_address(),
            Address::Copy => self.copy_addresses(),
            Address::Cached => self.cache_line(),
        }
    }

    /// Prints `+0x10`, `+-0x4`, or nothing for zero.
    fn offset(&mut self, lo: u32, len: u32) {
        let x = self.word.signed(lo, len);
        if x != 0 {
            self.out.push('+');
            self.hex(x);
        }
    }

    /// Prints `[R2+UR4+0x10]`. Without a register, it prints the offset alone.
    fn window(&mut self, scaled: bool, ureg: u32) {
        let (lo, len) = OFFSET;
        let x = self.word.signed(lo, len);
        self.out.push('[');
        let (zero, uniform) = (self.word.bits(24, 8) == 255, self.word.bit(UNIFORM));
        let bare = zero && x != 0 && !uniform;
        if !(bare || zero && uniform) {
            self.register(24);
            if scaled {
                self.out += ["", ".X4", ".X8", ".X16"][self.word.bits(78, 2) as usize];
            }
        }
        if uniform {
            if !zero {
                self.out.push('+');
            }
            self.uniform_register(ureg);
        }
        if bare {
            self.hex(x);
        } else {
            self.offset(lo, len);
        }
        self.out.push(']');
    }

    fn global(&mut self, how: Global) {
        let uniform = self.word.bit(UNIFORM);
        let (lo, len) = if how.long && !uniform { LONG_OFFSET } else { OFFSET };
        let zero = self.word.bits(24, 8) == 255;
        let bare = zero && !uniform;
        let added = uniform && how.descriptor.is_none_or(|bit| !self.word.bit(bit));
        if uniform && !added {
            self.descriptor(how.uniform);
        }
        self.out.push('[');
        if !zero || uniform && !added {
            self.register(24);
            // With a uniform operand, the text says how wide the register is.
            if uniform {
                let pair = how.pair.is_none_or(|bit| self.word.bit(bit));
                self.out += if pair { ".64" } else { ".U32" };
            }
        }
        if added {
            if !zero {
                self.out.push('+');
            }
            self.uniform_register(how.uniform);
        }
        if bare {
            self.hex(self.word.signed(lo, len));
        } else {
            self.offset(lo, len);
        }
        self.out.push(']');
    }

    /// Prints `desc[UR4]` if the descriptor is written.
    fn descriptor(&mut self, ureg: u32) {
        if self.word.bit(WRITTEN) {
            self.out += "desc[";
            self.uniform_register(ureg);
            self.out.push(']');
        }
    }

    fn constant_address(&mut self) {
        self.out += &format!("c[{:#x}][", self.word.bits(54, 5));
        let offset = self.word.signed(38, 16);
        let vector = self.row.datapath == Datapath::Vector;
        if vector && self.word.bits(24, 8) == 255 && offset != 0 {
            self.hex(offset);
        } else {
            self.register(24);
            self.offset(38, 16);
        }
        self.out.push(']');
    }

    fn copy_addresses(&mut self) {
        self.out.push('[');
        self.register(16);
        self.offset(44, 20);
        self.out += "], ";
        if self.word.bit(76) {
            self.descriptor(64);
        }
        self.out.push('[');
        self.register(24);
        self.out += ".64";
        if !self.word.bit(76) {
            self.out.push('+');
            self.uniform_register(64);
        }
        self.offset(32, 12);
        self.out.push(']');
    }

    /// IVALL, IVALLP and WBALL mean all lines, so they have no address.
    fn cache_line(&mut self) {
        if !matches!(self.word.bits(87, 4), 4 | 6 | 7) {
            self.out.push(' ');
            self.global(CACHE_LINE);
        }
    }
}
