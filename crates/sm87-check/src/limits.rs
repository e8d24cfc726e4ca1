//! How far the shared and the local memory of a launch reach, as its driver says in constant bank 0
//! (docs/hardware/gpu-launch-abi.md#constant-bank-0). What a driver does not say is taken from the launch descriptor.

use sm87::Launch;
use sm87::Word;
use sm87::isa;
use sm87::observe::{self, Image};

/// Offsets in bank 0: the stack pointer, the size of the reserved shared memory, and the size of a kernel's arrays.
const STACK: u32 = 0x28;
const RESERVED: u64 = 0x114;
const ARRAYS: u64 = 0x138;
/// The size of the reserved shared memory that every driver of CUDA says.
const KNOWN_RESERVE: u32 = 0x400;
/// The launch descriptor's unit of shared memory.
const UNIT: u32 = 128;
/// The special register that says how much shared memory there is. Who reads it finds the reserved part with it.
const SHARED_SIZE: u32 = 0x32;

/// How far memory reaches.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// The bytes of shared memory that the kernel's arrays have.
    pub arrays: u32,
    /// The bytes behind the arrays that belong to the system, if the program uses them.
    pub reserved: std::ops::Range<u64>,
    /// The stack pointer that threads begin with, if the program has a stack.
    pub stack: Option<u32>,
    /// Whether the program has barriers in shared memory, which it changes by atomics and reads by plain loads.
    pub objects: bool,
}

impl Limits {
    /// Reads what the driver says.
    pub(crate) fn of(launch: &Launch, image: &Image) -> Limits {
        let word = |offset: u64| {
            let bank = launch.banks[0].filter(|bank| offset + 4 <= bank.size.into())?;
            let mut bytes = [0; 4];
            observe::read(&launch.table, bank.va + offset, &mut bytes).then(|| u32::from_le_bytes(bytes))
        };
        let total = launch.shared_bytes;
        let reserve = word(RESERVED).filter(|&bytes| bytes == KNOWN_RESERVE && bytes <= total).unwrap_or(0);
        let rounded = total - reserve;
        let exact = |bytes: &u32| reserve > 0 && bytes.next_multiple_of(UNIT) == rounded;
        let arrays = word(ARRAYS).filter(exact).unwrap_or(rounded);
        let reserved = if finds_reserve(image) { rounded.into()..total.into() } else { 0..0 };
        let loads = image.uses_constant(0, STACK);
        let stack = loads.then(|| word(STACK.into())).flatten().filter(|&pointer| pointer > 0);
        let objects = words(image).any(arrives);
        Limits { arrays, reserved, stack, objects }
    }
}

/// The instructions of a program.
fn words(image: &Image) -> impl Iterator<Item = Word> {
    (0..image.len()).map(|at| Word(image.word(at)))
}

/// Whether a program asks how much shared memory there is.
fn finds_reserve(image: &Image) -> bool {
    words(image).any(|word| isa::lookup(word).and_then(|row| row.special_register(word)) == Some(SHARED_SIZE))
}

/// Whether an instruction arrives at a barrier in shared memory. ATOMS.POPC.INC has the same opcode as ATOMS.ARRIVE.
fn arrives(word: Word) -> bool {
    isa::lookup(word).and_then(|row| row.effects.memory()).is_some_and(|memory| memory.arrives(word))
}
