//! The tables of zero-bandwidth clears (docs/hardware/nvgpu-ctrl.md#zbc-tables). They are kept and told; the clears that use them
//! belong to the 3D engine.

use crate::chip::ChipData;
use crate::release::L4t;
use crate::rule::Because;
use tegrarm_kmd::Errno;
use tegrarm_lock::Mutex;

/// The entries for depths and for stencils, on all chips.
const ENTRIES: usize = 15;
/// The formats of the entries that a booted GPU has: a float for depths, a byte for stencils.
const FLOAT: u32 = 1;
const BYTE: u32 = 1;
const ONE: u32 = 0x3f80_0000;

/// A color as the data stage and as the L2 cache take it.
pub(crate) type Color = ([u32; 4], [u32; 4]);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry<V> {
    pub value: V,
    pub format: u32,
    /// How often it was asked for.
    pub references: u32,
}

/// One table. Its first entry has the index 1.
#[derive(Debug)]
pub(crate) struct Table<V> {
    used: Vec<Entry<V>>,
    pub room: usize,
}

impl<V: Copy + Default + PartialEq> Table<V> {
    fn new(room: usize, defaults: &[(V, u32)]) -> Table<V> {
        let entry = |&(value, format)| Entry { value, format, references: 1 };
        Table { used: defaults.iter().map(entry).collect(), room }
    }

    /// Counts an entry that is there, or adds one.
    pub fn add(&mut self, value: V, format: u32) -> Result<(), Errno> {
        let is_same = |entry: &&mut Entry<V>| (entry.value, entry.format) == (value, format);
        if let Some(entry) = self.used.iter_mut().find(is_same) {
            entry.references = entry.references.saturating_add(1);
            return Ok(());
        }
        if self.used.len() == self.room {
            return Err(Errno::ENOSPC.because("the table is full"));
        }
        self.used.push(Entry { value, format, references: 1 });
        Ok(())
    }

    /// The entry of an index. One that was never written is all zeros.
    pub fn entry(&self, index: u32) -> Result<Entry<V>, Errno> {
        if !(1..=self.room).contains(&(index as usize)) {
            return Err(Errno::EINVAL.because(format!("the table has entries 1 to {}", self.room)));
        }
        Ok(self.used.get(index as usize - 1).copied().unwrap_or_default())
    }
}

/// The tables of a GPU. They live as long as the GPU has power.
#[derive(Debug)]
pub(crate) struct ClearTables {
    pub colors: Mutex<Table<Color>>,
    pub depths: Mutex<Table<u32>>,
    pub stencils: Mutex<Table<u32>>,
}

impl ClearTables {
    /// The tables of a GPU that has booted.
    pub fn new(chip: &ChipData, l4t: L4t) -> ClearTables {
        let solid = |stage, cache| (stage, [cache; 4]);
        let room = if chip.is_ga10b() { 30 } else { ENTRIES };
        // r35 has the colors of older chips on ga10b, too.
        let colors = if chip.is_ga10b() && !l4t.is_r35() {
            Table::new(room, &[0xff00_0000, 0, 0xffff_ffff].map(|color| (solid([color; 4], color), 0)))
        } else {
            let black = (solid([0, 0, 0, ONE], 0xff00_0000), 0x28);
            Table::new(room, &[black, (solid([0; 4], 0), 1), (solid([ONE; 4], 0xffff_ffff), 2)])
        };
        ClearTables {
            colors: Mutex::new(colors),
            depths: Mutex::new(Table::new(ENTRIES, &[(ONE, FLOAT), (0, FLOAT)])),
            stencils: Mutex::new(Table::new(ENTRIES, &[(0, BYTE), (1, BYTE), (0xff, BYTE)])),
        }
    }
}
