//! Which of the GPU's addresses a device uses.
//!
//! Each device has an address space of its own, and the kernel gives the same addresses in all of them. A program with two devices could then
//! take an address of one for memory of the other. So the address space of each further device ends below the addresses that the devices
//! before it can use.

use crate::tegra::USER_VA_END;
use std::sync::Arc;
use tegrarm_lock::Mutex;

/// What lies between the ends of two address spaces: as much as the largest Orin has memory, and the windows of kernels.
const SIZE: u64 = 68 << 30;
/// How many devices have addresses of their own at the same time: the GPU has no more addresses.
const COUNT: u32 = 14;

/// The shares that are in use, a bit for each.
#[derive(Clone, Default)]
pub struct Shares(Arc<Mutex<u32>>);

/// A share. It is free again when the value is dropped.
pub struct Share {
    shares: Shares,
    number: Option<u32>,
}

impl Shares {
    /// Takes the first free share.
    pub fn take(&self) -> Share {
        let mut used = self.0.lock();
        let number = (0..COUNT).find(|number| *used & 1 << number == 0);
        *used |= number.map_or(0, |number| 1 << number);
        Share { shares: self.clone(), number }
    }
}

impl Share {
    /// The end of the address space. The first device has all addresses, and so has one for which there is no share.
    pub fn end(&self) -> u64 {
        USER_VA_END - u64::from(self.number.unwrap_or(0)) * SIZE
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        *self.shares.0.lock() &= !self.number.map_or(0, |number| 1 << number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_taken_from_the_top_and_given_back() {
        let shares = Shares::default();
        let mut taken: Vec<_> = (0..COUNT).map(|_| shares.take()).collect();
        let ends: Vec<_> = taken.iter().map(Share::end).collect();
        assert_eq!(ends[0], USER_VA_END);
        assert!(ends.windows(2).all(|pair| pair[0] - pair[1] == SIZE) && ends[COUNT as usize - 1] > SIZE);
        assert_eq!(shares.take().end(), USER_VA_END, "one more shares the addresses of the first");
        let third = taken.remove(2).end();
        assert_eq!(shares.take().end(), third);
    }
}
