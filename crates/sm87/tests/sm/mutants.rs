//! A wrong rule of the instruction set shows in a result.
//!
//! `python/suite/ptx/mutate.py` looks for that with the kernels of the PTX table, and `data/ptx_rows.tsv` lists the rows that
//! it covers. Compilers need the other rows for control flow, or do not emit them for PTX at all. Each of them has a program
//! here whose result is known. The program also runs with mutants of that row's instructions: as if they did nothing, and as
//! if one of their modifiers had another value. Every mutant must change the result, or stop the program, or be listed as one
//! that cannot be seen.

use crate::flow::walked;
use crate::kernel;
use crate::support::{Arg, BASE, Buffer, Gpu, Kernel};
use crate::support::{EXIT, program};
use sm87::isa::{Isa, ROWS, Row};
use sm87::{Stopped, Word};
use std::collections::{BTreeMap, BTreeSet};

/// What a program stored, or the global error register of the SM that it stopped. The register is zero if the program hung.
type Seen = Result<Vec<u32>, u32>;

/// A program, and what it must store.
struct Known {
    kernel: Kernel,
    run: fn(&Kernel) -> Seen,
    want: Seen,
}

/// Makes a program.
type Make = fn() -> Known;

/// The rows that the kernels of the PTX table do not have or do not test, each with a program that tests it.
const PROGRAMS: [(&str, Make); 19] = [
    ("004 1456 R2P", predicates_from_a_register),
    ("083 46 UP2UR", uniform_predicates),
    ("09f 1 UPLOP3", signs),
    ("0bb 5 ULDC", constants),
    ("11d 1 BAR", barriers),
    ("141 4 BSYNC", recursion),
    ("142 4 BREAK", lanes_that_leave),
    ("144 1 CALL", call_of_a_register),
    ("144 4 CALL", recursion),
    ("145 4 BSSY", recursion),
    ("147 2 BRA", uniform_branch),
    ("148 1 WARPSYNC", lanes_named_by_a_register),
    ("148 456 WARPSYNC", all_lanes),
    ("14e 1 LEPC", own_addresses),
    ("150 4 RET", recursion),
    ("155 1 BMOV", recursion),
    ("156 1 BMOV", recursion),
    ("15c 4 BPT", trap),
    ("15d 1456 NANOSLEEP", sleep),
];

/// Mutants that give the right result: the row, the modifier before and after, and the reason.
const HIDDEN: [(&str, &str, &str, &str); 13] = [
    ("11d 1 BAR", "SYNC", "RED", "BAR.RED waits too, and the next BAR.RED replaces its result"),
    ("11d 1 BAR", "", "", "the operation of a reduction, which BAR.SYNC does not have"),
    ("11d 1 BAR", "", "DEFER_BLOCKING", HINT),
    ("11d 1 BAR", "DEFER_BLOCKING", "", HINT),
    ("144 1 CALL", "NOINC", "", HINT),
    ("144 4 CALL", "NOINC", "", HINT),
    ("148 1 WARPSYNC", "", "EXCLUSIVE", "all lanes wait for the same lanes, so that there is only one group"),
    ("150 4 RET", "NODEC", "", HINT),
    ("155 1 BMOV", "CLEAR", "", "the function writes the barrier before it reads it again"),
    ("156 1 BMOV", "", "CLEAR", "the function reads the register no more"),
    ("15c 4 BPT", "TRAP", "INT", "BPT.INT stops the grid too, and in the same way"),
    ("15d 1456 NANOSLEEP", "", "WARP", HINT),
    ("15d 1456 NANOSLEEP", "", "RAND", "PTX allows a range of times, and the range is tested"),
];
/// The reason for modifiers that do not change what threads compute.
const HINT: &str = "a hint, which changes no result";

/// The number of instructions after which a program counts as one that hangs.
const BUDGET: u64 = 200_000;

/// Names a row by what says which words are its instructions.
fn key(row: &Row) -> String {
    let forms: String = (0..8).filter(|form| row.forms >> form & 1 == 1).map(|form| form.to_string()).collect();
    format!("{:03x} {forms} {}", row.base, row.name)
}

/// The rows of `data/ptx_rows.tsv`.
fn listed() -> BTreeSet<&'static str> {
    let lines = include_str!("data/ptx_rows.tsv").lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split('\t').next().unwrap_or(line)).collect()
}

#[test]
fn every_row_has_programs_that_notice_its_mutants() {
    let (here, listed) = (BTreeMap::from(PROGRAMS), listed());
    let rows: BTreeSet<String> = ROWS.iter().map(key).collect();
    for row in &rows {
        let places = usize::from(here.contains_key(&**row)) + usize::from(listed.contains(&**row));
        assert_eq!(
            places, 1,
            "{row} is in {places} of the lists of mutants.rs and data/ptx_rows.tsv: add it to one of them"
        );
    }
    for row in here.keys().chain(&listed) {
        assert!(rows.contains(*row), "there is no row {row}: remove it from mutants.rs or data/ptx_rows.tsv");
    }
}

#[test]
fn programs_notice_mutants_of_their_rows() {
    let (mut wrong, mut hidden) = (Vec::new(), BTreeSet::new());
    for (row, make) in PROGRAMS {
        let known = make();
        assert_eq!((known.run)(&known.kernel), known.want, "the program of {row}");
        for mutant in mutants(row, &known.kernel) {
            let place = hidden_at(row, &mutant);
            let is_seen = (known.run)(&mutant.kernel) != known.want;
            if is_seen == place.is_some() {
                wrong.push(format!("{row}: {:?} became {:?}: noticed: {is_seen}", mutant.was, mutant.now));
            }
            hidden.extend(place);
        }
    }
    assert!(wrong.is_empty(), "HIDDEN says something else of the mutants:\n{}", wrong.join("\n"));
    assert_eq!(hidden, (0..HIDDEN.len()).collect(), "HIDDEN has entries of which there is no mutant");
}

/// The entry of [`HIDDEN`] for a mutant.
fn hidden_at(row: &str, mutant: &Mutant) -> Option<usize> {
    HIDDEN.iter().position(|&(r, was, now, _)| (r, was, now) == (row, mutant.was, mutant.now))
}

/// A program in which all occurrences of one word are another word.
struct Mutant {
    kernel: Kernel,
    was: &'static str,
    now: &'static str,
}

/// The mutants of a program that have other words for instructions of `row`.
fn mutants(row: &str, kernel: &Kernel) -> Vec<Mutant> {
    let here: BTreeSet<u128> = words(kernel).map(|w| w.unscheduled().0).filter(|&w| is_of(row, Word(w))).collect();
    assert!(!here.is_empty(), "the program of {row} has no such instruction");
    let nop = Mutant { kernel: changed(kernel, |w| is_of(row, w).then_some(NOP)), was: "", now: "NOP" };
    let others = here.into_iter().flat_map(|word| Isa::sm87().mutants(Word(word)).map(move |other| (word, other)));
    let replace = |(word, (other, was, now))| {
        let kernel = changed(kernel, |w: Word| (w.unscheduled().0 == word).then_some(other));
        Mutant { kernel, was, now }
    };
    std::iter::once(nop).chain(others.map(replace)).collect()
}

const NOP: Word = Word(0x7918);

fn is_of(row: &str, word: Word) -> bool {
    Isa::sm87().legal(word).is_ok_and(|opcode| key(opcode.row()) == row)
}

fn words(kernel: &Kernel) -> impl Iterator<Item = Word> {
    kernel.code.chunks_exact(16).map(|bytes| Word(u128::from_le_bytes(bytes.try_into().unwrap())))
}

/// The program with other words where `change` gives one. The scheduling bits stay.
fn changed(kernel: &Kernel, change: impl Fn(Word) -> Option<Word>) -> Kernel {
    let new = |word: Word| change(word).map_or(word.0, |other| word.0 & Word::SCHEDULING | other.unscheduled().0);
    Kernel { code: words(kernel).flat_map(|word| new(word).to_le_bytes()).collect(), ..kernel.clone() }
}

/// Runs a kernel whose first result is in `out`.
fn launch(gpu: &mut Gpu, kernel: &Kernel, grid: u32, block: u32, args: &[Arg<'_>], out: (&Buffer, usize)) -> Seen {
    gpu.budget = Some(BUDGET);
    match gpu.run(kernel, [grid, 1, 1], [block, 1, 1], args) {
        Ok(_) => Ok(out.0.read::<u32>(out.1)),
        Err(Stopped { fault, .. }) => Err(fault.record().map_or(0, |(_, record)| record.global_esr)),
    }
}

/// The number of CTAs of a program that [`small`] makes.
const CTAS: u32 = 8;
/// The number of threads of a program that [`together`] makes: two warps.
const THREADS: u32 = 64;

/// A program of few instructions for CTAs of one thread. The instructions find the number of the CTA in R4 and UR7, and leave in
/// R0 what `want` says of it.
fn small(constants: &[u32], instructions: &[(u64, u64)], want: fn(u32) -> u32) -> Known {
    let cta = [
        (0x0000_0000_0004_7919, 0x000e_2200_0000_2500), // S2R R4, SR_CTAID.X
        (0x0000_0000_0007_79c3, 0x000e_6200_0000_2500), // S2UR UR7, SR_CTAID.X
    ];
    let banks = vec![(2, constants.iter().flat_map(|word| word.to_le_bytes()).collect())];
    let kernel = Kernel { banks, ..stored(&cta, instructions) };
    Known { kernel, run: |kernel| run_stored(kernel, CTAS, 1), want: Ok((0..CTAS).map(want).collect()) }
}

/// The same for the threads of one CTA. R4 is the number of the thread.
fn together(instructions: &[(u64, u64)], want: fn(u32) -> u32) -> Known {
    let thread = [(0x0000_0000_0004_7919, 0x000e_2200_0000_2100)]; // S2R R4, SR_TID.X
    let kernel = stored(&thread, instructions);
    Known { kernel, run: |kernel| run_stored(kernel, 1, THREADS), want: Ok((0..THREADS).map(want).collect()) }
}

/// Instructions and what stores R0 in the word with the number R4.
fn stored(first: &[(u64, u64)], instructions: &[(u64, u64)]) -> Kernel {
    let store = [
        (0x0000_5800_0002_7a02, 0x000f_e400_0000_0f00), // MOV R2, c[0x0][0x160]
        (0x0000_5900_0003_7a02, 0x000f_e400_0000_0f00), // MOV R3, c[0x0][0x164]
        (0x0000_0004_0402_7824, 0x000f_e200_078e_0002), // IMAD.U32 R2, R4, 0x4, R2
        (0x0000_0000_0200_7986, 0x000f_e200_0c10_1904), // STG.E [R2.64], R0
        EXIT,
    ];
    program(&[first, instructions, &store].concat())
}

fn run_stored(kernel: &Kernel, grid: u32, block: u32) -> Seen {
    let mut gpu = Gpu::default();
    let count = (grid * block) as usize;
    let out = gpu.alloc(4 * count);
    launch(&mut gpu, kernel, grid, block, &[Arg::Ptr(&out)], (&out, count))
}

/// MOV R0, UR5
const UR5_TO_R0: (u64, u64) = (0x0000_0005_0000_7c02, 0x000f_e200_0800_0f00);
/// UISETP.NE.AND UP0, UPT, UR7, 0x5, UPT
const UP0_IS_NOT_5: (u64, u64) = (0x0000_0005_0700_788c, 0x000f_e200_0bf0_5270);

fn predicates_from_a_register() -> Known {
    let instructions = [
        (0x0000_0005_0400_7804, 0x000f_e200_0000_0000), // R2P PR, R4, 0x5
        (0x0000_007f_ff00_7803, 0x000f_e400_0000_0000), // P2R R0, PR, RZ, 0x7f
    ];
    small(&[], &instructions, |cta| cta & 5)
}

fn uniform_predicates() -> Known {
    let read = (0x0000_0001_0705_7883, 0x000f_e400_0800_0000); // UP2UR UR5, UPR, UR7, 0x1
    small(&[], &[UP0_IS_NOT_5, read, UR5_TO_R0], |cta| cta & !1 | u32::from(cta != 5))
}

/// Each CTA has other signs, and so another bit of the table of truth.
fn signs() -> Known {
    let instructions = [
        (0x0000_001d_0705_7899, 0x000f_e400_0800_063f), // USHF.L.U32 UR5, UR7, 0x1d, URZ
        (0x0000_001e_0706_7899, 0x000f_e400_0800_063f), // USHF.L.U32 UR6, UR7, 0x1e, URZ
        (0x0000_001f_0704_7899, 0x000f_e400_0800_063f), // USHF.L.U32 UR4, UR7, 0x1f, URZ
        (0x0000_0006_0500_729f, 0x000f_e400_0870_d804), // UPLOP3.LUT UP0, UPT, UR5.SIGN, UR6.SIGN, UR4.SIGN, 0xd8, 0x0
        (0x0000_0001_3f05_7887, 0x000f_e200_0c00_0000), // USEL UR5, URZ, 0x1, !UP0
        UR5_TO_R0,
    ];
    small(&[], &instructions, |cta| 0xd8 >> cta & 1)
}

/// The bank that [`constants`] reads.
const CONSTANTS: [u32; 2 * CTAS as usize] = {
    let (mut words, mut i) = ([0; 2 * CTAS as usize], 0);
    while i < words.len() {
        words[i] = 0x9e37_79b9u32.wrapping_mul(i as u32 + 1) | 0x8080;
        i += 1;
    }
    words
};

fn constants() -> Known {
    let instructions = [
        (0x0000_0002_0706_7899, 0x000f_e400_0800_063f), // USHF.L.U32 UR6, UR7, 0x2, URZ
        (0x0080_0000_0608_7abb, 0x000f_e400_0800_0800), // ULDC UR8, c[0x2][UR6]
        (0x0000_0009_0805_7290, 0x000f_e400_0fff_e03f), // UIADD3 UR5, UR8, UR9, URZ
        UR5_TO_R0,
    ];
    small(&CONSTANTS, &instructions, |cta| CONSTANTS[cta as usize])
}

/// CTA n calls the instruction that is n instructions after the CALL, and the last eight count.
fn call_of_a_register() -> Known {
    let mut instructions = vec![
        (0x0000_0004_040a_7819, 0x000f_e400_0000_06ff), // SHF.L.U32 R10, R4, 0x4, RZ
        (0x0000_00ff_000b_7202, 0x000f_e400_0000_0f00), // MOV R11, RZ
        (0x0000_0000_0a00_7344, 0x000f_ea00_03c0_0000), // CALL.REL.NOINC R10, to the next instruction plus R10
    ];
    let count = (0x0000_0001_0000_7810, 0x000f_e400_07ff_e0ff); // IADD3 R0, R0, 0x1, RZ
    instructions.extend([count; CTAS as usize]);
    small(&[], &instructions, |cta| CTAS - cta)
}

fn uniform_branch() -> Known {
    let instructions = [
        UP0_IS_NOT_5,
        (0x0000_0007_0000_7802, 0x000f_e400_0000_0f00), // MOV R0, 0x7
        (0x0000_0011_0000_7547, 0x000f_ea00_0b80_0000), // BRA.U UP0, over the next instruction
        (0x0000_0003_0000_7802, 0x000f_e400_0000_0f00), // MOV R0, 0x3
    ];
    small(&[], &instructions, |cta| if cta == 5 { 3 } else { 7 })
}

/// The distance of two instructions, plus the upper half of their addresses.
fn own_addresses() -> Known {
    let instructions = [
        (0x0000_0000_0008_734e, 0x000f_e400_0000_0000), // LEPC R8
        (0x0000_0000_000a_734e, 0x000f_e400_0000_0000), // LEPC R10
        (0x8000_0008_0a00_7210, 0x000f_e400_07ff_e009), // IADD3 R0, R10, -R8, R9
    ];
    small(&[], &instructions, |_| 16 + (BASE >> 32) as u32)
}

/// Each thread reads what a thread of the other warp stored, and counts the threads above 40 a hundredfold.
fn barriers() -> Known {
    let instructions = [
        (0x0000_0002_0405_7819, 0x000f_e400_0000_06ff), // SHF.L.U32 R5, R4, 0x2, RZ
        (0x0040_0003_0006_7802, 0x000f_e400_0000_0f00), // MOV R6, 0x400003: 64 threads at barrier 3
        (0x0000_0004_0500_7388, 0x0001_e800_0000_0800), // STS [R5], R4
        (0x0000_0006_0600_731d, 0x000f_ec00_0000_0000), // BAR.SYNC R6, R6
        (0x0000_0080_0505_7812, 0x000f_e400_078e_3cff), // LOP3.LUT R5, R5, 0x80, RZ, 0x3c, !PT
        (0x0000_0000_0500_7984, 0x000e_2800_0000_0800), // LDS R0, [R5]
        (0x0000_0028_0400_780c, 0x000f_e200_03f0_4070), // ISETP.GT.U32.AND P0, PT, R4, 0x28, PT
        (0x0000_0006_0600_731d, 0x000f_ec00_0001_4000), // BAR.RED.POPC.DEFER_BLOCKING R6, R6, P0
        (0x0000_0000_0007_731c, 0x000e_2800_000e_4000), // B2R.RESULT R7
        (0x0000_0064_0700_7824, 0x000f_c800_078e_0200), // IMAD R0, R7, 0x64, R0
    ];
    together(&instructions, |thread| 100 * (41..THREADS).len() as u32 + (thread ^ 32))
}

/// The lanes below seven go around a BSYNC to a CTA barrier. The others converge there and read which lanes execute.
fn lanes_that_leave() -> Known {
    let instructions = [
        (0x0000_0006_0400_780c, 0x000f_e200_03f0_4070), // ISETP.GT.U32.AND P0, PT, R4, 0x6, PT
        (0x0000_0030_0000_7945, 0x000f_e200_0380_0000), // BSSY B0, behind the BSYNC
        (0x0000_0000_0000_8942, 0x000f_e200_0380_0000), // @!P0 BREAK B0
        (0x0000_0020_0000_8947, 0x000f_ea00_0380_0000), // @!P0 BRA, to the BAR
        (0x0000_0000_0000_7941, 0x000f_ea00_0380_0000), // BSYNC B0
        (0x0000_0000_0000_7806, 0x000f_e400_038e_0100), // VOTE.ANY R0, PT, PT
        (0x0000_0000_0000_7b1d, 0x000f_ec00_0001_0000), // BAR.SYNC.DEFER_BLOCKING 0x0
    ];
    together(&instructions, |thread| match thread {
        0..7 => 0,
        7..32 => u32::MAX << 7,
        _ => u32::MAX,
    })
}

/// The lanes above six are late at `join`, which stands behind two instructions. It must bring all lanes together, and then each
/// reads which lanes execute.
fn late_lanes(join: (u64, u64)) -> Known {
    let instructions = [
        (0xffff_ffff_0007_7802, 0x000f_e400_0000_0f00), // MOV R7, 0xffffffff
        (0x0000_0006_0400_780c, 0x000f_e200_03f0_4070), // ISETP.GT.U32.AND P0, PT, R4, 0x6, PT
        (0x0000_0070_0000_0947, 0x000f_ea00_0380_0000), // @P0 BRA, behind the EXIT
        join,
        (0x0000_0000_0000_7806, 0x000f_e400_038e_0100), // VOTE.ANY R0, PT, PT
    ];
    let back = (0xffff_ff80_0000_7947, 0x000f_ea00_0383_ffff); // BRA, to the join
    let mut known = together(&instructions, |_| u32::MAX);
    known.kernel.code.extend(program(&[back]).code);
    known
}

fn lanes_named_by_a_register() -> Known {
    late_lanes((0x0000_0007_0000_7348, 0x000f_ea00_0380_0000)) // WARPSYNC R7
}

fn all_lanes() -> Known {
    late_lanes((0xffff_ffff_0000_7948, 0x000f_ea00_0380_0000)) // WARPSYNC 0xffffffff
}

/// Whether each thread slept for about as long as it was asked to. It reads the time before and after.
fn sleep() -> Known {
    const NAP: i32 = 50_000;
    let run = |kernel: &Kernel| {
        let mut gpu = Gpu::default();
        let out = gpu.alloc(32 * 32);
        launch(&mut gpu, kernel, 1, 32, &[Arg::Ptr(&out), Arg::Int(1), Arg::Int(NAP)], (&out, 1))?;
        let slept = |times: &[i64]| (NAP / 2..3 * NAP).contains(&(times[1] as i32));
        Ok(out.read::<i64>(4 * 32).chunks(4).map(|times| u32::from(slept(times))).collect())
    };
    Known { kernel: kernel!("clocks"), run, want: Ok(vec![1; 32]) }
}

/// Lanes recurse to different depths, and vote when they have met again.
fn recursion() -> Known {
    const DEPTHS: [i32; 64] = {
        let (mut depths, mut i) = ([0; 64], 0);
        while i < 64 {
            depths[i] = i as i32 * 7 % 13;
            i += 1;
        }
        depths
    };
    let run = |kernel: &Kernel| {
        let mut gpu = Gpu::default();
        let (depths, out) = (gpu.upload(&DEPTHS), gpu.alloc(4 * DEPTHS.len()));
        launch(&mut gpu, kernel, 1, 64, &[Arg::Ptr(&depths), Arg::Ptr(&out)], (&out, DEPTHS.len()))
    };
    let kernel = Kernel { stack: 1024, ..kernel!("divergent_recursion") };
    Known { kernel, run, want: Ok(walked(&DEPTHS).into_iter().map(|x| x as u32).collect()) }
}

/// A trap has a bit of its own in the global error register.
fn trap() -> Known {
    let run = |kernel: &Kernel| {
        let mut gpu = Gpu::default();
        let memory = gpu.alloc(4096);
        launch(&mut gpu, kernel, 1, 64, &[Arg::Ptr(&memory), Arg::Int(4), Arg::Int(0)], (&memory, 1))
    };
    Known { kernel: kernel!("faults"), run, want: Err(0x10) }
}
