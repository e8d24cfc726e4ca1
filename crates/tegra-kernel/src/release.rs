//! Releases of Jetson Linux: the release that a board runs, and the way in which the kernel's tables name releases.

use bitflags::bitflags;

/// A Jetson Linux release line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum L4t {
    /// r39 (JetPack 7.2). It is made from headers and source alone, because no board with it was observed.
    R39,
    /// r36.2 to r36.4 (JetPack 6).
    R36,
    /// r35.1 to r35.3 (JetPack 5).
    R35,
    /// r35.4.1 to r35.6, which have one more field in the characteristics.
    R35_4,
}

impl L4t {
    /// Every release line, the oldest first.
    pub const ALL: [L4t; 4] = [L4t::R35, L4t::R35_4, L4t::R36, L4t::R39];

    /// The name that `TEGRARM_SIM_L4T` and `--l4t` take.
    pub fn name(self) -> &'static str {
        match self {
            L4t::R39 => "r39",
            L4t::R36 => "r36",
            L4t::R35 => "r35",
            L4t::R35_4 => "r35.4",
        }
    }

    /// Whether it belongs to the r35 line.
    pub fn is_r35(self) -> bool {
        self.generation() == Releases::R35
    }

    /// Whether it belongs to the r39 line.
    pub fn is_r39(self) -> bool {
        self.generation() == Releases::R39
    }

    /// The generation of its ioctl interface, as one bit.
    pub(crate) fn generation(self) -> Releases {
        match self {
            L4t::R35 | L4t::R35_4 => Releases::R35,
            L4t::R36 => Releases::R36,
            L4t::R39 => Releases::R39,
        }
    }
}

bitflags! {
    /// A set of generations of the ioctl interface. A row of a table names the generations that have its ioctl.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Releases: u8 {
        const R35 = 1;
        const R36 = 2;
        const R39 = 4;
        const UNTIL_R36 = Self::R35.bits() | Self::R36.bits();
        const SINCE_R36 = Self::R36.bits() | Self::R39.bits();
        const ALL = Self::R35.bits() | Self::R36.bits() | Self::R39.bits();
    }
}

/// A value that differs between the generations of the interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PerRelease<T> {
    pub r35: T,
    pub r36: T,
    pub r39: T,
}

impl<T: Copy> PerRelease<T> {
    /// The same value for all generations.
    pub(crate) const fn same(value: T) -> PerRelease<T> {
        PerRelease { r35: value, r36: value, r39: value }
    }

    /// The value for `l4t`.
    pub(crate) fn of(self, l4t: L4t) -> T {
        match l4t {
            L4t::R35 | L4t::R35_4 => self.r35,
            L4t::R36 => self.r36,
            L4t::R39 => self.r39,
        }
    }
}
