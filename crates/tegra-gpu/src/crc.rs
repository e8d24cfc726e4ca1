//! CRC-32 (IEEE 802.3), which GPFIFO control entries check.

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut c = i as u32;
        let mut bit = 0;
        while bit < 8 {
            c = if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 };
            bit += 1;
        }
        table[i] = c;
        i += 1;
    }
    table
}

/// A running CRC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crc(u32);

impl Default for Crc {
    fn default() -> Crc {
        Crc(u32::MAX)
    }
}

impl Crc {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.0 = TABLE[usize::from(self.0 as u8 ^ b)] ^ (self.0 >> 8);
        }
    }

    pub(crate) fn value(self) -> u32 {
        !self.0
    }
}
