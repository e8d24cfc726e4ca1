//! Machine code in memory that can be executed.
#![allow(unsafe_code)]

use crate::emit;
use crate::graph::Graph;
use crate::host::Host;
use crate::memory::Window;
pub use crate::registers::TooLarge;
use iced_x86::Encoder;
use memmap2::{Mmap, MmapMut};
use std::collections::HashMap;
use std::io;
use tegrarm_lock::ProcessMutex;

/// The same word in each lane of the widest vector.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Vector([u32; 16]);

/// The words that code reads as whole vectors.
pub(crate) struct Pool {
    rows: Vec<Vector>,
    places: HashMap<u32, i64>,
}

impl Pool {
    pub(crate) fn new() -> Pool {
        Pool { rows: vec![Vector(std::array::from_fn(|lane| 1 << lane))], places: HashMap::new() }
    }

    /// The place of the vector that has the bit of each lane, in bytes.
    pub(crate) const BITS: i64 = 0;

    /// The place of a vector whose lanes are all `x`.
    pub(crate) fn place(&mut self, x: u32) -> i64 {
        *self.places.entry(x).or_insert_with(|| {
            self.rows.push(Vector([x; 16]));
            (size_of::<Vector>() * (self.rows.len() - 1)) as i64
        })
    }
}

/// Lets `iced_x86` make its tables, which it does once, and then other threads wait for the one that does it. A fork waits until they are
/// made: the child has no such thread, and would wait for ever.
fn encoder_tables() {
    static MADE: ProcessMutex<bool> = ProcessMutex::new(false);
    let mut made = MADE.lock();
    if !*made {
        drop(Encoder::new(64));
        *made = true;
    }
}

/// Makes the code of several pieces.
pub struct Builder {
    host: Host,
    bytes: Vec<u8>,
    pool: Pool,
    /// Where the functions of each piece begin.
    functions: Vec<Vec<usize>>,
}

impl Builder {
    /// Begins code for a host.
    pub fn new(host: Host) -> Builder {
        encoder_tables();
        Builder { host, bytes: Vec::new(), pool: Pool::new(), functions: Vec::new() }
    }

    /// Makes the code of a piece. Its number is that of the pieces before it.
    pub fn add(&mut self, graph: &Graph) -> Result<(), TooLarge> {
        let begin = |code: Vec<u8>| {
            // Code begins at a line of the host's caches.
            self.bytes.resize(self.bytes.len().next_multiple_of(64), 0xcc);
            self.bytes.extend(&code);
            self.bytes.len() - code.len()
        };
        let begins = emit::functions(self.host, graph, &mut self.pool)?.into_iter().map(begin).collect();
        self.functions.push(begins);
        Ok(())
    }

    /// Puts the code of all pieces into memory.
    pub fn finish(self) -> io::Result<Code> {
        let mut map = MmapMut::map_anon(self.bytes.len().max(1))?;
        map[..self.bytes.len()].copy_from_slice(&self.bytes);
        Ok(Code { map: map.make_exec()?, pool: self.pool.rows, functions: self.functions })
    }
}

/// A function that executes a piece: see [`emit`].
#[cfg(target_arch = "x86_64")]
type Function = unsafe extern "sysv64" fn(*mut u32, *const u32, *mut u32, *const Vector, u32, *const Window) -> u32;

/// Other hosts cannot execute it.
#[cfg(not(target_arch = "x86_64"))]
type Function = unsafe extern "C" fn(*mut u32, *const u32, *mut u32, *const Vector, u32, *const Window) -> u32;

/// The machine code of a piece. It can be called as long as the [`Code`] that it is from exists.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    all: Function,
    some: Function,
    /// For all lanes, which load from places of their own.
    spread: Function,
    pool: *const Vector,
}

// SAFETY: a piece is the address of code and of words that nobody writes.
unsafe impl Send for Piece {}
// SAFETY: as above.
unsafe impl Sync for Piece {}

impl Piece {
    /// Executes the piece for the lanes in `active`, which are not none. Returns how many instructions lanes did not execute, because a guard
    /// was false for them.
    ///
    /// # Safety
    /// The host is the one for which the code was made. `rows` is writable and `constants` readable at all offsets of the graph, for 32 words each,
    /// and `lanes` is writable at all indices. The [`Code`] exists. The graph has no loads.
    #[inline(always)]
    pub unsafe fn execute(&self, rows: *mut u32, constants: *const u32, lanes: *mut u32, active: u32) -> u32 {
        let function = if active == u32::MAX { self.all } else { self.some };
        // SAFETY: the conditions are those of this function, and a piece without loads reads no window.
        unsafe { function(rows, constants, lanes, self.pool, active, std::ptr::null()) }
    }

    /// The same for a piece that may load words through `windows`. If they are `spread`, all lanes are active.
    ///
    /// # Safety
    /// As for [`Self::execute`]. There are all windows of which the graph has loads, and what they lead to can be read so many bytes further on. If
    /// lanes of a window are spread, `spread` is true. Windows of vectors without active lanes need not lead anywhere.
    #[inline(always)]
    pub unsafe fn load(
        &self,
        (rows, constants, lanes): (*mut u32, *const u32, *mut u32),
        active: u32,
        windows: *const Window,
        spread: bool,
    ) -> u32 {
        debug_assert!(!spread || active == u32::MAX);
        let function = match (active, spread) {
            (_, true) => self.spread,
            (u32::MAX, false) => self.all,
            _ => self.some,
        };
        // SAFETY: the conditions are those of this function.
        unsafe { function(rows, constants, lanes, self.pool, active, windows) }
    }
}

/// The machine code of several pieces.
#[derive(Debug)]
pub struct Code {
    map: Mmap,
    pool: Vec<Vector>,
    functions: Vec<Vec<usize>>,
}

impl Code {
    /// The pieces, in the order in which they were added.
    pub fn pieces(&self) -> Vec<Piece> {
        let function = |at: usize| {
            // SAFETY: a function of this type begins here, because `Builder::add` has put it here.
            unsafe { std::mem::transmute::<*const u8, Function>(self.map.as_ptr().add(at)) }
        };
        let piece = |begins: &Vec<usize>| {
            // A piece without loads has no third function, and needs none.
            let function = |n: usize| function(begins[n.min(begins.len() - 1)]);
            Piece { all: function(0), some: function(1), spread: function(2), pool: self.pool.as_ptr() }
        };
        self.functions.iter().map(piece).collect()
    }
}

/// Whether a function computes with a denormal on this thread. It is for tests of speed: a host takes eighty times as long for a product with a denormal,
/// and the result does not show that.
#[cfg(target_arch = "x86_64")]
pub fn meets_denormals(run: impl FnOnce()) -> bool {
    use std::arch::asm;
    /// The flag that an operand was a denormal. It stays until somebody clears it.
    const FLAG: u32 = 2;
    let (mut before, mut after) = (0u32, 0u32);
    // SAFETY: these instructions read or write one word each, and the thread keeps its modes.
    unsafe {
        asm!("stmxcsr [{}]", in(reg) &raw mut before);
        let cleared = before & !FLAG;
        asm!("ldmxcsr [{}]", in(reg) &raw const cleared);
        run();
        asm!("stmxcsr [{}]", in(reg) &raw mut after);
        asm!("ldmxcsr [{}]", in(reg) &raw const before);
    }
    after & FLAG != 0
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::meets_denormals;
    use crate::graph::Graph;
    use crate::tests::hosts;
    use crate::{Builder, Two, Value};

    /// The lanes that do not execute the piece hold small whole numbers, which are denormals as floats.
    #[test]
    fn lanes_that_do_not_execute_cost_nothing() {
        let word = |n: u32| 32 * n;
        type Make = fn(&mut Graph, [Value; 3]) -> Value;
        let makes: [Make; 4] = [
            |graph, [a, b, _]| graph.two(Two::MulFloat, a, b),
            |graph, [a, b, c]| graph.fma(a, b, c),
            |graph, [a, _, c]| graph.fma(a, a, c),
            |graph, [a, b, c]| {
                let sum = graph.fma(a, b, c);
                graph.two(Two::MulFloat, sum, a)
            },
        ];
        for (n, make) in makes.iter().enumerate() {
            for (host, active) in
                hosts().into_iter().flat_map(|host| [7, 1 << 31, 0x00ff_ff01].map(|active| (host, active)))
            {
                let mut graph = Graph::default();
                let sources = [1, 2, 3].map(|row| graph.row(word(row)));
                let made = make(&mut graph, sources);
                graph.set_row(0, made, false);
                let again = make(&mut graph, [made, sources[1], sources[2]]);
                graph.set_row(word(4), again, false);
                let mut builder = Builder::new(host);
                builder.add(&graph).expect("room");
                let code = builder.finish().expect("memory");
                let lanes = |lane: u32| if active >> lane & 1 == 1 { 0x3fc0_0000 + lane } else { lane + 1 };
                let mut rows = [std::array::from_fn::<u32, 32, _>(|lane| lanes(lane as u32)); 5];
                let met = |rows: &mut [[u32; 32]; 5], active: u32| {
                    let rows = rows.as_mut_ptr().cast();
                    // SAFETY: the rows are those of the graph, which reads nothing else, and the host is one for the code.
                    meets_denormals(|| unsafe {
                        code.pieces()[0].execute(rows, [].as_ptr(), [].as_mut_ptr(), active);
                    })
                };
                assert!(!met(&mut rows, active), "{host:?}, graph {n}, lanes {active:x}");
                // The same lanes do meet denormals when they execute the piece.
                assert!(met(&mut rows, u32::MAX), "{host:?}, graph {n}");
            }
        }
    }
}
