//! An SM alone: memory, kernels from hex files, and launches.

use sm87::{ConstantBank, Launch, Limits, RunStats, Stopped, run};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tegra_mm::{Backing, Extent, PageTable};

/// The address of the first buffer.
pub const BASE: u64 = 0x10_0000_0000;
/// The size of the header of the parameter area.
const PARAMETERS: usize = 0x160;

/// A compiled kernel.
#[derive(Clone)]
pub struct Kernel {
    pub registers: u32,
    pub shared: u32,
    pub stack: u32,
    pub banks: Vec<(usize, Vec<u8>)>,
    pub code: Vec<u8>,
}

impl Kernel {
    /// The kernel of the tests that has this name.
    pub fn named(name: &str) -> Kernel {
        Kernel::among(include_str!("data/kernels.hex"), name)
    }

    /// The kernel with this name in a file that compile.py wrote: each begins with the line `kernel NAME`.
    pub fn among(file: &str, name: &str) -> Kernel {
        let sections = file.split("\nkernel ").skip(1);
        let found = sections.filter_map(|section| section.split_once('\n')).find(|(its, _)| *its == name);
        Kernel::parse(found.unwrap_or_else(|| panic!("no kernel is called {name}")).1)
    }

    /// Parses the lines of one kernel.
    pub fn parse(text: &str) -> Kernel {
        let mut k = Kernel { registers: 0, shared: 0, stack: 0, banks: Vec::new(), code: Vec::new() };
        for line in text.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty()) {
            let words: Vec<_> = line.split_whitespace().collect();
            match words[..] {
                ["registers", n] => k.registers = n.parse().unwrap(),
                ["shared", n] => k.shared = n.parse().unwrap(),
                ["stack", n] => k.stack = n.parse().unwrap(),
                ["bank", n, hex] => {
                    let bytes = (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap());
                    k.banks.push((n.parse().unwrap(), bytes.collect()));
                }
                [lo, hi] => {
                    for half in [lo, hi] {
                        k.code.extend(u64::from_str_radix(half, 16).unwrap().to_le_bytes());
                    }
                }
                _ => panic!("what is {line:?}?"),
            }
        }
        k
    }
}

/// A clock with steps of 32 ns, as PTIMER has them. It advances whenever it is read.
pub fn clock() -> u64 {
    static TIME: AtomicU64 = AtomicU64::new(1 << 40);
    TIME.fetch_add(32, Ordering::Relaxed)
}

/// After how many instructions a program is translated: as usual, or at once if all tests are to see what machine code of the host does.
/// `make cargo-test` sets the variable in a run of its own.
fn translated_after() -> u64 {
    if std::env::var_os("TEGRARM_TEST_TRANSLATED").is_some() { 0 } else { Limits::default().translated_after }
}

/// Memory that kernels work on.
#[derive(Default)]
pub struct Gpu {
    pub table: PageTable,
    pub used: u64,
    pub threads: usize,
    pub budget: Option<u64>,
}

/// A buffer in that memory.
#[derive(Clone)]
pub struct Buffer {
    pub va: u64,
    pub backing: Arc<Backing>,
}

/// A kernel parameter.
pub enum Arg<'a> {
    Ptr(&'a Buffer),
    Address(u64),
    Int(i32),
}

/// Zeroed memory, of whole pages.
#[cfg(not(miri))]
fn memory(bytes: usize) -> Backing {
    Backing::anonymous("sm-test", bytes).unwrap()
}

/// The same under Miri, which has no shared memory: pages of the heap.
#[cfg(miri)]
#[allow(unsafe_code)]
fn memory(bytes: usize) -> Backing {
    #[derive(Clone)]
    #[repr(align(4096))]
    struct Page {
        _bytes: [u8; 4096],
    }
    let mut pages = vec![Page { _bytes: [0; 4096] }; bytes.div_ceil(4096)];
    let (address, len) = (std::ptr::NonNull::new(pages.as_mut_ptr()).unwrap(), size_of_val(&pages[..]));
    // SAFETY: the pages are aligned and live as long as the result, which holds them, and nobody else uses them.
    unsafe { Backing::from_pages(address.cast(), len, std::sync::Mutex::new(pages)) }
}

impl Gpu {
    /// Zeroed memory, with an unmapped page behind it.
    pub fn alloc(&mut self, bytes: usize) -> Buffer {
        self.alloc_with(bytes, true)
    }

    /// Zeroed memory, which the GPU may not write if `writable` is false.
    pub fn alloc_with(&mut self, bytes: usize, writable: bool) -> Buffer {
        let backing = Arc::new(memory(bytes.max(1)));
        let len = bytes.max(1).next_multiple_of(4096) as u64;
        let va = BASE + self.used;
        self.used += len + 4096;
        self.table.insert(Extent { va, len, backing: Some(backing.clone()), writable, ..Extent::default() });
        Buffer { va, backing }
    }

    /// A buffer that contains `items`.
    pub fn upload<T: Copy + Bytes>(&mut self, items: &[T]) -> Buffer {
        let bytes: Vec<u8> = items.iter().flat_map(|i| i.bytes()).collect();
        let b = self.alloc(bytes.len());
        assert!(b.backing.write(0, &bytes));
        b
    }

    /// Makes a launch of `kernel`.
    pub fn launch(&mut self, kernel: &Kernel, grid: [u32; 3], block: [u32; 3], args: &[Arg<'_>]) -> Launch {
        let mut bank = vec![0u8; PARAMETERS];
        for (i, n) in block.iter().chain(&grid).enumerate() {
            bank[4 * i..4 * i + 4].copy_from_slice(&n.to_le_bytes());
        }
        let (shared_window, local_window) = (0xfe_0000_0000u64, 0xfd_0000_0000u64);
        bank[0x18..0x20].copy_from_slice(&shared_window.to_le_bytes());
        bank[0x20..0x28].copy_from_slice(&local_window.to_le_bytes());
        bank[0x28..0x2c].copy_from_slice(&0xff_fdc0u32.to_le_bytes());
        for arg in args {
            let word = |bank: &mut Vec<u8>, x: u64| {
                bank.resize(bank.len().next_multiple_of(8), 0);
                bank.extend(x.to_le_bytes());
            };
            match arg {
                Arg::Ptr(b) => word(&mut bank, b.va),
                Arg::Address(x) => word(&mut bank, *x),
                Arg::Int(x) => bank.extend(x.to_le_bytes()),
            }
        }
        let mut banks = [None; 8];
        for (n, bytes) in kernel.banks.iter().map(|(n, b)| (*n, b)).chain([(0, &bank)]) {
            banks[n] = Some(ConstantBank { va: self.upload(bytes).va, size: bytes.len() as u32 });
        }
        let code = self.upload(&kernel.code).va;
        Launch {
            table: Arc::new(self.table.clone()),
            code,
            grid,
            block,
            registers: kernel.registers,
            shared_bytes: kernel.shared,
            local_low: 0,
            local_high: kernel.stack.next_multiple_of(32) + 0x240,
            banks,
            shared_window,
            local_window,
            first: [0; 3],
            sm_count: 16,
            disabled_sms: 0,
            sequential: false,
            veid: 1,
            begun: clock(),
            limits: Limits {
                threads: self.threads,
                budget: self.budget.unwrap_or(1 << 40),
                translated_after: translated_after(),
                ..Limits::default()
            },
        }
    }

    /// Launches a kernel and waits.
    pub fn run(
        &mut self,
        kernel: &Kernel,
        grid: [u32; 3],
        block: [u32; 3],
        args: &[Arg<'_>],
    ) -> Result<RunStats, Stopped> {
        let launch = self.launch(kernel, grid, block, args);
        run(&launch)
    }
}

impl Buffer {
    /// The first `n` items.
    pub fn read<T: Bytes>(&self, n: usize) -> Vec<T> {
        let mut bytes = vec![0; n * T::SIZE];
        assert!(self.backing.read(0, &mut bytes));
        bytes.chunks_exact(T::SIZE).map(T::of).collect()
    }
}

/// Numbers as little-endian bytes.
pub trait Bytes {
    const SIZE: usize;
    fn bytes(&self) -> Vec<u8>;
    fn of(bytes: &[u8]) -> Self;
}

macro_rules! bytes {
    ($($t:ty)*) => {$(
        impl Bytes for $t {
            const SIZE: usize = size_of::<$t>();
            fn bytes(&self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
            fn of(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().unwrap())
            }
        }
    )*};
}

bytes!(u8 i32 u32 i64 u64 f32 f64);

/// Loads a kernel by name.
#[macro_export]
macro_rules! kernel {
    ($name:literal) => {
        $crate::support::Kernel::named($name)
    };
}

/// A kernel that consists of these instructions only.
pub fn program(words: &[(u64, u64)]) -> Kernel {
    let mut text = String::from("registers 16\nshared 256\nstack 0\n");
    for (lo, hi) in words {
        text += &format!("{lo:016x} {hi:016x}\n");
    }
    Kernel::parse(&text)
}

/// EXIT.
pub const EXIT: (u64, u64) = (0x0000_0000_0000_794d, 0x000f_ea00_0380_0000);

/// Pseudo-random numbers, which are the same in every run.
pub struct Noise(pub u64);

impl Noise {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let x = self.0 ^ self.0 >> 33;
        x.wrapping_mul(0xff51_afd7_ed55_8ccd) ^ x >> 29
    }

    /// A float of moderate size.
    pub fn float(&mut self) -> f32 {
        (self.next() as i32 >> 8) as f32 / 65536.0
    }
}

/// Code that is assembled for the address at which it is put.
pub mod code {
    /// The scheduling bits of an instruction that waits for nothing.
    const PLAIN: u64 = 0x000f_e200_0000_0f00;
    const CONTROL: u64 = 0x000f_ea00_0380_0000;

    /// MOV, with P0 as its guard if `guarded`.
    pub fn mov(register: u64, x: u32, guarded: bool) -> (u64, u64) {
        (u64::from(x) << 32 | register << 16 | if guarded { 0x0802 } else { 0x7802 }, PLAIN)
    }

    /// MOV of an address into a pair of registers.
    pub fn address(register: u64, x: u64, guarded: bool) -> [(u64, u64); 2] {
        [mov(register, x as u32, guarded), mov(register + 1, (x >> 32) as u32, guarded)]
    }

    /// An instruction that goes to a place that is so many bytes from the next instruction, or to that address if it is CALL.ABS.
    pub fn jump(opcode: u64, offset: i64) -> (u64, u64) {
        (opcode | (offset as u64) << 32, CONTROL | (offset >> 32) as u64 & 0x3_ffff)
    }

    /// The opcodes of [`jump`].
    pub const BRA: u64 = 0x7947;
    pub const CALL_RELATIVE: u64 = 0x7944;
    pub const CALL_ABSOLUTE: u64 = 0x7943;
    /// CALL.ABS.NOINC R4, and RET.ABS.NODEC R20.
    pub const CALL_R4: (u64, u64) = (0x0400_7343, 0x001f_ea00_03c0_0000);
    pub const RETURN_R20: (u64, u64) = (0x1400_7950, 0x000f_ea00_03e0_0000);
    /// S2R R7, SR_TID.X, and ISETP.GT.U32.AND P0, PT, R7, 0xf, PT.
    pub const THREAD: (u64, u64) = (0x0007_7919, 0x000e_2400_0000_2100);
    pub const IS_HIGH: (u64, u64) = (0x0000_000f_0700_780c, 0x000f_e200_03f0_4070);
    /// IMAD R2, R7, 0x4, R2, and STG.E [R2.64], R0.
    pub const INDEX: (u64, u64) = (0x0000_0004_0702_7824, 0x000f_e200_078e_0202);
    pub const STORE: (u64, u64) = (0x0000_0000_0200_7986, 0x000f_e800_0c10_193f);
}

impl Gpu {
    /// Puts code into memory of its own. `make` gets its address.
    pub fn put(&mut self, make: impl FnOnce(u64) -> Vec<(u64, u64)>) -> u64 {
        let va = BASE + self.used;
        self.upload(&make(va).into_iter().flat_map(|(low, high)| [low, high]).collect::<Vec<u64>>()).va
    }

    /// A launch of a kernel that calls one function that lies `apart` bytes below it, and one that lies so far above it, in each warp at
    /// once: the first lanes call the one below. Each thread stores what it gets, which [`Gpu::CALLED`] says.
    pub fn calls(&mut self, out: &Buffer, apart: u64, grid: u32) -> Launch {
        use code::{CALL_R4, INDEX, IS_HIGH, RETURN_R20, STORE, THREAD, address, mov};
        let function = |x: u32| move |_| vec![mov(0, x, false), RETURN_R20];
        let below = self.put(function(Gpu::CALLED[0]));
        self.used += apart;
        let kernel = BASE + self.used;
        let above = kernel + apart;
        let put = self.put(|va| {
            let [low, high] = address(4, below, false);
            let [low_too, high_too] = address(4, above, true);
            let [out_low, out_high] = address(2, out.va, false);
            let start = [THREAD, IS_HIGH, low, high, low_too, high_too, out_low, out_high, INDEX];
            let [back, back_high] = address(20, va + 16 * (start.len() as u64 + 3), false);
            [&start[..], &[back, back_high, CALL_R4, STORE, EXIT]].concat()
        });
        assert_eq!(put, kernel);
        self.used = above - BASE;
        self.put(function(Gpu::CALLED[1]));
        Launch { code: kernel, registers: 24, ..self.launch(&program(&[EXIT]), [grid, 1, 1], [64, 1, 1], &[]) }
    }

    /// What the functions of [`Gpu::calls`] return.
    pub const CALLED: [u32; 2] = [100, 200];
}
