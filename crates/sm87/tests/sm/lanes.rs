//! Loads and stores at any addresses. The engine handles lanes together if they access one piece of memory. It must read, write
//! and report the same as if one lane came after another.

use crate::kernel;
use crate::support::{Arg, Buffer, Gpu, program};
use proptest::prelude::*;
use sm87::{SmFault, Stopped};
use tegra_mm::{Access, FaultKind};

/// The size in bytes of the buffer that lanes access. Shared memory has the same size.
const BYTES: usize = 1024;
/// The address at which the kernel's shared memory begins in the shared window.
const SHARED: u64 = 0;

/// How a lane's address is chosen.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// At a multiple of the size.
    Aligned(u32),
    /// At an address that need not be a multiple of the size.
    Any(u32),
    /// Behind the buffer, where nothing is mapped.
    Outside,
    /// In another buffer.
    Elsewhere(u32),
}

/// The layout of all lanes.
#[derive(Clone, Debug)]
enum Layout {
    Row(u32),
    Same(u32),
    /// So many lanes have a row, or one place if the step is 0, and the next ones begin elsewhere.
    Rows {
        lanes: u32,
        step: u32,
        firsts: Vec<u32>,
    },
    Scattered(Vec<Place>),
}

fn layouts() -> impl Strategy<Value = Layout> {
    let aligned = any::<u32>().prop_map(Place::Aligned);
    let bad =
        prop_oneof![any::<u32>().prop_map(Place::Any), Just(Place::Outside), any::<u32>().prop_map(Place::Elsewhere)];
    let mixed = (prop::collection::vec(aligned.clone(), 32), prop::collection::vec((0..32usize, bad), 0..3));
    let scattered = mixed.prop_map(|(mut places, bad)| {
        bad.into_iter().for_each(|(lane, place)| places[lane] = place);
        Layout::Scattered(places)
    });
    let rows = (prop::sample::select(vec![4, 8, 16, 12]), 0..2u32, prop::collection::vec(any::<u32>(), 8))
        .prop_map(|(lanes, step, firsts)| Layout::Rows { lanes, step, firsts });
    prop_oneof![
        rows,
        any::<u32>().prop_map(Layout::Row),
        any::<u32>().prop_map(Layout::Same),
        prop::collection::vec(aligned, 32).prop_map(Layout::Scattered),
        scattered,
    ]
}

fn masks() -> impl Strategy<Value = u32> {
    prop_oneof![Just(u32::MAX), any::<u32>(), (0..32u32).prop_map(|lane| 1 << lane)]
}

/// The address of the buffer, the address of another buffer, and the address of each lane.
struct Addresses {
    base: u64,
    other: u64,
    at: Vec<u64>,
}

impl Addresses {
    fn new(layout: &Layout, size: usize, base: u64, other: u64) -> Self {
        let slots = (BYTES / size) as u32;
        let aligned = |n: u32| u64::from(n % slots) * size as u64;
        let at = (0..32u32).map(|lane| match layout {
            Layout::Row(n) => base + u64::from(n % (slots - 31) + lane) * size as u64,
            Layout::Same(n) => base + aligned(*n),
            Layout::Rows { lanes, step, firsts } => {
                base + aligned(firsts[(lane / lanes) as usize] % (slots - 31) + step * (lane % lanes))
            }
            Layout::Scattered(places) => match places[lane as usize] {
                Place::Aligned(n) => base + aligned(n),
                Place::Any(n) => base + u64::from(n % (BYTES - 16) as u32),
                Place::Outside => base + 4096,
                Place::Elsewhere(n) => other + aligned(n),
            },
        });
        Addresses { base, other, at: at.collect() }
    }

    /// Where a lane's bytes are: whether in the other buffer, and at which offset. The error is the fault of an address outside both.
    fn place(&self, lane: usize, size: usize) -> Result<(bool, usize), String> {
        let at = self.at[lane];
        if !at.is_multiple_of(size as u64) {
            return Err(format!("{at:#x}: misaligned"));
        }
        for (other, base) in [(false, self.base), (true, self.other)] {
            if at >= base && at + size as u64 <= base + BYTES as u64 {
                return Ok((other, (at - base) as usize));
            }
        }
        Err(format!("{at:#x}"))
    }
}

struct Setup {
    gpu: Gpu,
    out: Buffer,
    input: Buffer,
    memory: Buffer,
    other: Buffer,
}

/// The initial contents of the buffers: byte `i` of buffer `n`.
fn byte(n: usize, i: usize) -> u8 {
    ((i * 7 + n * 101) ^ ((i >> 8) * 13)) as u8
}

fn bytes(n: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| byte(n, i)).collect()
}

fn setup() -> Setup {
    let mut gpu = Gpu { threads: 1, ..Gpu::default() };
    let out = gpu.alloc(BYTES);
    let input = gpu.upload(&bytes(1, BYTES));
    let memory = gpu.upload(&bytes(2, BYTES));
    let other = gpu.upload(&bytes(3, BYTES));
    Setup { gpu, out, input, memory, other }
}

/// Runs the kernel. The error has the message of its fault, or the address that the fault names.
fn execute(s: &mut Setup, at: &[u64], mask: u32, how: usize) -> Result<(), String> {
    let table = s.gpu.upload(&at.iter().map(|&a| a as i64).collect::<Vec<_>>());
    let args = [Arg::Ptr(&s.out), Arg::Ptr(&s.input), Arg::Ptr(&table), Arg::Int(mask as i32), Arg::Int(how as i32)];
    match s.gpu.run(&kernel!("lanes"), [1, 1, 1], [32, 1, 1], &args) {
        Ok(_) => Ok(()),
        Err(Stopped { fault: SmFault::Warp { text, .. }, .. }) => Err(text),
        Err(Stopped { fault: SmFault::Mmu { fault, .. }, .. }) => {
            let wanted = if how < 5 { Access::Read } else { Access::Write };
            assert_eq!((fault.access, fault.kind), (wanted, FaultKind::Pte));
            Err(format!("{:#x}", fault.va))
        }
        Err(other) => panic!("{other:?}"),
    }
}

/// What a lane's registers hold after it loaded these bytes. Fewer than four bytes are extended to a word.
fn loaded(found: &[u8]) -> [u8; 16] {
    let mut lane = [0; 16];
    lane[..found.len()].copy_from_slice(found);
    if found.len() == 2 && found[1] & 0x80 != 0 {
        lane[2..4].fill(0xff);
    }
    lane
}

/// The same, computed one lane after another: the result, the two buffers, and the first fault.
fn reference(a: &Addresses, mask: u32, size: usize, store: bool) -> ([Vec<u8>; 3], Option<String>) {
    let (mut out, mut memory) = (vec![0; BYTES], [bytes(2, BYTES), bytes(3, BYTES)]);
    let input = bytes(1, BYTES);
    let mut fault = None;
    let mut lanes: Vec<[u8; 16]> = Vec::new();
    for lane in (0..32).filter(|lane| mask >> lane & 1 != 0) {
        match a.place(lane, size) {
            Ok((other, at)) if store => {
                memory[usize::from(other)][at..at + size].copy_from_slice(&input[16 * lane..16 * lane + size]);
            }
            Ok((other, at)) => lanes.push(loaded(&memory[usize::from(other)][at..at + size])),
            Err(text) => {
                fault = Some(text);
                break;
            }
        }
    }
    // A load that faults has no result for any lane.
    if fault.is_none() && !store {
        for (lane, found) in (0..32).filter(|lane| mask >> lane & 1 != 0).zip(lanes) {
            out[16 * lane..16 * lane + 16].copy_from_slice(&found);
        }
    }
    let [memory, other] = memory;
    ([out, memory, other], fault)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn global_accesses_are_those_of_one_lane_after_another(layout in layouts(), mask in masks(), size in 0..5usize, store: bool) {
        let (len, mut s) = (1 << size, setup());
        let a = Addresses::new(&layout, len, s.memory.va, s.other.va);
        let found = execute(&mut s, &a.at, mask, size + if store { 5 } else { 0 });
        let ([out, memory, other], fault) = reference(&a, mask, len, store);
        match (&found, &fault) {
            (Ok(()), None) => {}
            (Err(found), Some(wanted)) => prop_assert!(found.contains(wanted.as_str()), "{found}: {wanted}"),
            _ => prop_assert!(false, "{found:?}, and not {fault:?}"),
        }
        prop_assert_eq!(s.out.read::<u8>(BYTES), out);
        prop_assert_eq!(s.memory.read::<u8>(BYTES), memory);
        prop_assert_eq!(s.other.read::<u8>(BYTES), other);
    }

    #[test]
    fn shared_accesses_are_those_of_one_lane_after_another(layout in layouts(), mask in masks(), size in 0..5usize, store: bool) {
        let (len, mut s) = (1 << size, setup());
        // There is no other buffer here, so an address in it is out of range, too.
        let a = Addresses::new(&layout, len, SHARED, 1 << 20);
        let found = execute(&mut s, &a.at, mask, size + if store { 15 } else { 10 });
        let (mut out, mut memory, input) = (vec![0; BYTES], bytes(1, BYTES), bytes(1, BYTES));
        let mut fault = None;
        for lane in (0..32).filter(|lane| mask >> lane & 1 != 0) {
            match a.place(lane, len) {
                Ok((false, at)) if store => memory[at..at + len].copy_from_slice(&input[16 * lane..16 * lane + len]),
                Ok((false, at)) => out[16 * lane..16 * lane + 16].copy_from_slice(&loaded(&memory[at..at + len])),
                Ok((true, _)) => fault = Some(format!("{:#x}", a.at[lane])),
                Err(text) => fault = Some(text),
            }
            if fault.is_some() {
                break;
            }
        }
        match (&found, &fault) {
            (Ok(()), None) => prop_assert_eq!(s.out.read::<u8>(BYTES), if store { memory } else { out }),
            (Err(found), Some(wanted)) => prop_assert!(found.contains(wanted.as_str()), "{found}: {wanted}"),
            _ => prop_assert!(false, "{found:?}, and not {fault:?}"),
        }
    }
}

/// What is done to a word: it is loaded, stored, or added to.
#[derive(Clone, Copy, Debug)]
enum Does {
    Load,
    Store,
    Add,
}

/// An access of a word in shared memory: which of the layouts the lanes have, how many bytes behind it they are, how many of these are in the
/// instruction, and whether the register counts words.
#[derive(Clone, Copy, Debug)]
struct Word {
    does: Does,
    layout: usize,
    bytes: i64,
    offset: i64,
    scaled: bool,
}

impl Word {
    fn at(self, layouts: &[Vec<u32>], lane: usize) -> i64 {
        4 * i64::from(layouts[self.layout][lane]) + self.bytes
    }

    /// What the address register holds.
    fn register(self, layouts: &[Vec<u32>], lane: usize) -> u32 {
        let bytes = self.at(layouts, lane) - self.offset;
        if self.scaled { bytes as u32 / 4 } else { bytes as u32 }
    }

    /// STS [R + offset], R8, or LDS R4 or ATOMS.ADD R4 there, which is added to twice R8. The register is the next one of the table.
    fn words(self, n: u64) -> Vec<(u64, u64)> {
        let at = 10 << 24 | (self.offset as u64 & 0xff_ffff) << 40;
        let scale = if self.scaled { 0x4000 } else { 0 };
        let register = (0x7981 | 10 << 16 | 6 << 24 | (128 * n) << 40, 0x000e_a800_0c1e_1900); // LDG.E R10, [R6.64+128n]
        let sum = (0x7210 | 8 << 16 | 8 << 24 | 8 << 32, 0x000f_c800_07ff_e004); // IADD3 R8, R8, R8, R4
        match self.does {
            Does::Store => vec![register, (0x7388 | 8 << 32 | at, 0x000f_e800_0000_0800 | scale)],
            Does::Load => vec![register, (0x7984 | 4 << 16 | at, 0x000e_2800_0000_0800 | scale), sum],
            Does::Add => vec![register, (0x738c | 4 << 16 | 8 << 32 | at, 0x0001_e200_0000_0000 | scale), sum],
        }
    }
}

fn layouts_of_words() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        Just((0..32).collect()),
        (0..64u32).prop_map(|n| vec![n; 32]),
        (prop::sample::select(vec![8, 16, 12]), 0..40u32)
            .prop_map(|(n, apart)| (0..32).map(|i| i % n + apart * (i / n)).collect()),
        (0..4u32).prop_map(|step| (0..32).map(|i| step * i).collect()),
        prop::collection::vec(0..64u32, 32),
    ]
}

fn words_of_shared_memory() -> impl Strategy<Value = Word> {
    let bytes = prop_oneof![80 => (0..33i64).prop_map(|n| 4 * n), 1 => Just(-4i64), 4 => (0..40i64).prop_map(|n| BYTES as i64 - 4 * n), 1 => Just(2i64)];
    (prop::sample::select(vec![Does::Load, Does::Store, Does::Add]), 0..2usize, bytes, -8..9i64, any::<bool>())
        .prop_map(|(does, layout, bytes, offset, scaled)| {
            let scaled = scaled && bytes % 4 == 0;
            Word { does, layout, bytes, offset: 4 * offset, scaled }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// The engine keeps how the lanes of one access lay for the next one.
    #[test]
    fn words_of_shared_memory_are_those_of_one_lane_after_another(
        layouts in prop::collection::vec(layouts_of_words(), 2), accesses in prop::collection::vec(words_of_shared_memory(), 1..16),
        threads in prop::sample::select(vec![32usize, 20]),
    ) {
        let mut words = vec![
            (0x7919, 0x000e_2200_0000_2100),           // S2R R0, SR_TID.X
            (0x7802 | 9 << 16 | 4 << 32, 0x000f_e200_0000_0f00), // MOV R9, 0x4
            (0x7802 | 8 << 16, 0x000f_e200_0000_0f00), // MOV R8, 0x0
            (0x7625 | 6 << 16 | (0x160 / 4) << 40, 0x000f_c800_078e_0209), // IMAD.WIDE R6, R0, R9, c[0x0][0x160]
        ];
        for n in 0..8 {
            words.push((0x7810 | 3 << 16 | (32 * n) << 32, 0x000f_c800_07ff_e0ff)); // IADD3 R3, R0, 32n, RZ
            words.push((0x7388 | 3 << 32 | (128 * n) << 40, 0x000f_e800_0000_4800)); // STS [R0.X4+128n], R3
        }
        words.extend(accesses.iter().zip(0..).flat_map(|(access, n)| access.words(n)));
        words.push((0x7625 | 6 << 16 | (0x168 / 4) << 40, 0x000f_c800_078e_0209)); // IMAD.WIDE R6, R0, R9, c[0x0][0x168]
        words.push((0x7986 | 6 << 24 | 8 << 32, 0x000f_e200_0c10_1904)); // STG.E [R6.64], R8
        words.push((0x794d, 0x000f_ea00_0380_0000)); // EXIT
        let mut gpu = Gpu::default();
        let table: Vec<u32> = accesses.iter().flat_map(|access| (0..32).map(|lane| access.register(&layouts, lane))).collect();
        let (table, out) = (gpu.upload(&table), gpu.upload(&[0u32; 32]));
        let kernel = crate::support::Kernel { shared: BYTES as u32, ..program(&words) };
        let found = gpu.run(&kernel, [1, 1, 1], [threads as u32, 1, 1], &[Arg::Ptr(&table), Arg::Ptr(&out)]);

        let mut memory: Vec<u32> = (0..BYTES as u32 / 4).map(|n| if n % 32 < threads as u32 { n } else { 0 }).collect();
        let mut sums = [0u32; 32];
        let mut fails = false;
        for access in accesses {
            for (lane, sum) in sums.iter_mut().enumerate().take(threads) {
                let Some(word) = usize::try_from(access.at(&layouts, lane)).ok().filter(|at| at % 4 == 0 && *at < BYTES) else {
                    fails = true;
                    continue;
                };
                let (found, own) = (memory[word / 4], *sum);
                match access.does {
                    Does::Load => {}
                    Does::Store => memory[word / 4] = own,
                    Does::Add => memory[word / 4] = found.wrapping_add(own),
                }
                if !matches!(access.does, Does::Store) {
                    *sum = own.wrapping_mul(2).wrapping_add(found);
                }
            }
            if fails {
                break;
            }
        }
        prop_assert_eq!(found.is_err(), fails, "{:?}", found);
        if !fails {
            prop_assert_eq!(&out.read::<u32>(32)[..threads], &sums[..threads]);
        }
    }
}

/// LDL or STL: the bytes of each lane, which lanes execute it, and the address of each lane behind [`LOCAL`].
#[derive(Clone, Debug)]
struct OfStack {
    store: bool,
    bytes: usize,
    on: u32,
    at: Vec<usize>,
}

/// The part of a thread's local memory that [`OfStack`] accesses, which ends with the memory.
const LOCAL: usize = 0xff_ff00;

fn accesses_of_stacks() -> impl Strategy<Value = OfStack> {
    let at = prop_oneof![
        6 => (0..64usize).prop_map(|n| vec![n; 32]),
        2 => (0..32usize).prop_map(|n| (0..32).map(|lane| n + lane).collect::<Vec<_>>()),
        2 => prop::collection::vec(0..64usize, 32),
    ];
    let odd = prop_oneof![30 => Just(None), 1 => (0..32usize, 1..64usize).prop_map(Some), 1 => (0..32usize, 256..260usize).prop_map(Some)];
    (any::<bool>(), prop::sample::select(vec![1, 2, 4, 8, 16]), masks(), at, odd).prop_map(
        |(store, bytes, on, at, odd)| {
            let mut at: Vec<usize> = at.into_iter().map(|n| 4 * n / bytes * bytes).collect();
            if let Some((lane, place)) = odd {
                at[lane] = place;
            }
            OfStack { store, bytes, on, at }
        },
    )
}

impl OfStack {
    /// The instruction, for the lanes of P0: STL [R4], R8 or LDL R12, [R4].
    fn word(&self) -> (u64, u64) {
        // Bytes and halves are without a sign.
        let size = [0, 2, 4, 5, 6][self.bytes.trailing_zeros() as usize] << 9;
        let low = if self.store { 0x0387 | 8 << 32 } else { 0x0983 | 12 << 16 };
        (low | 4 << 24, 0x000e_a800_0010_0000 | size)
    }

    /// Executes it for a thread with these registers from R8 on, and its memory. It fails at other addresses.
    fn execute(&self, lane: usize, registers: &mut [u32; 8], memory: &mut [u8; 256]) -> bool {
        let (at, len) = (self.at[lane], self.bytes);
        if self.on >> lane & 1 == 0 {
            return true;
        }
        if at % len != 0 || at + len > memory.len() {
            return false;
        }
        for word in 0..len.div_ceil(4) {
            let place = &mut memory[at + 4 * word..][..len.min(4)];
            if self.store {
                place.copy_from_slice(&registers[word].to_le_bytes()[..len.min(4)]);
            } else {
                let mut found = [0; 4];
                found[..place.len()].copy_from_slice(place);
                registers[4 + word] = u32::from_le_bytes(found);
            }
        }
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Lanes that access the same slot of their stacks are handled together.
    #[test]
    fn local_accesses_are_those_of_one_lane_after_another(accesses in prop::collection::vec(accesses_of_stacks(), 1..24), threads in prop::sample::select(vec![32usize, 20])) {
        let sum = |d: u64, a: u64, b: u64, c: u64| (0x7210 | d << 16 | a << 24 | b << 32, 0x000f_c800_07ff_e000 | c); // IADD3
        let load = |d: u64, at: u64| (0x7981 | d << 16 | 6 << 24 | at << 40, 0x000e_a800_0c1e_1900); // LDG.E Rd, [R6.64+at]
        let mut words = vec![
            (0x7919, 0x000e_2200_0000_2100),                     // S2R R0, SR_TID.X
            (0x7802 | 3 << 16 | 4 << 32, 0x000f_e200_0000_0f00), // MOV R3, 0x4
            (0x7625 | 6 << 16 | (0x160 / 4) << 40, 0x000f_c800_078e_0203), // IMAD.WIDE R6, R0, R3, c[0x0][0x160]
        ];
        words.extend((8..16).map(|n| sum(n, 0, 3, if n == 8 { 255 } else { n - 1 })));
        for (n, access) in (0..).zip(&accesses) {
            words.extend([load(4, 256 * n), load(5, 256 * n + 128)]);
            words.push((0x720c | 5 << 24 | 255 << 32, 0x000f_c600_03f0_5270)); // ISETP.NE.AND P0, PT, R5, RZ, PT
            words.push(access.word());
            words.extend([sum(8, 8, 9, 12), sum(9, 9, 10, 13), sum(10, 10, 11, 14), sum(11, 11, 0, 15)]);
        }
        words.push((0x7625 | 6 << 16 | (0x168 / 4) << 40, 0x000f_c800_078e_0203)); // IMAD.WIDE R6, R0, R3, c[0x0][0x168]
        words.extend((0..4).map(|n| (0x7986 | 6 << 24 | (8 + n) << 32 | (128 * n) << 40, 0x000f_e200_0c10_1904))); // STG.E [R6.64+128n]
        words.push((0x794d, 0x000f_ea00_0380_0000)); // EXIT
        let table: Vec<u32> = accesses.iter().flat_map(|one| {
            let addresses = one.at.iter().map(|at| (LOCAL + at) as u32);
            addresses.chain((0..32).map(|lane| one.on >> lane & 1))
        }).collect();
        let mut gpu = Gpu::default();
        let (table, out) = (gpu.upload(&table), gpu.upload(&[0u32; 128]));
        let found = gpu.run(&program(&words), [1, 1, 1], [threads as u32, 1, 1], &[Arg::Ptr(&table), Arg::Ptr(&out)]);

        let mut fails = false;
        let mut expected = [0u32; 128];
        for lane in 0..threads {
            let t = lane as u32;
            let (mut registers, mut memory): ([u32; 8], _) = (std::array::from_fn(|n| (t + 4) * (n as u32 + 1)), [0; 256]);
            for access in &accesses {
                fails |= !access.execute(lane, &mut registers, &mut memory);
                for n in 0..4 {
                    let next = if n < 3 { registers[n + 1] } else { t };
                    registers[n] = registers[n].wrapping_add(next).wrapping_add(registers[4 + n]);
                }
            }
            (0..4).for_each(|n| expected[32 * n + lane] = registers[n]);
        }
        prop_assert_eq!(found.is_err(), fails, "{:?}", found);
        if !fails {
            prop_assert_eq!(out.read::<u32>(128), expected);
        }
    }
}
