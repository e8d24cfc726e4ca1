//! Inline to memory: writes data words of the pushbuffer to memory
//! (docs/hardware/gpu-compute-class.md#inline-to-memory).

use super::super::copy::{BlockLinear, Surface};
use super::super::fault;
use super::super::mem::Accessor;
use super::super::semaphore::{Op, Reduction, Release};
use super::super::turn::Turn;
use tegra_hw::{Awakening, Fault};
use tegrarm_abi::layout::Bits;
use tegrarm_abi::methods::compute::*;

const FIRST: u32 = NVC6C0_LINE_LENGTH_IN;
const LAST: u32 = NVC6C0_SET_I2M_SEMAPHORE_C;

/// The registers of the block, and the transfer that takes data now.
#[derive(Debug)]
pub(crate) struct Inline {
    registers: [u32; ((LAST - FIRST) / 4 + 1) as usize],
    running: Option<Running>,
    /// The upper parts of the addresses of the destination and of the semaphore.
    upper: [Bits; 2],
}

/// The upper part of every address of class A140.
pub(super) const A140_UPPER: Bits = Bits { msb: 24, lsb: 0, stride: 0, count: 1 };

/// A transfer that was launched.
#[derive(Clone, Copy, Debug)]
struct Running {
    to: Surface,
    line_bytes: u64,
    lines: u64,
    line: u64,
    done: u64,
    word: u32,
}

impl Inline {
    fn new(upper: [Bits; 2]) -> Inline {
        Inline { registers: Default::default(), running: None, upper }
    }

    /// The block of class C7C0.
    pub(crate) fn of_compute() -> Inline {
        Inline::new([NVC6C0_OFFSET_OUT_UPPER_VALUE, NVC6C0_SET_I2M_SEMAPHORE_A_OFFSET_UPPER])
    }

    /// The block of class A140.
    pub(crate) fn of_a140() -> Inline {
        Inline::new([A140_UPPER; 2])
    }

    /// Executes one method of the block.
    pub(super) fn method(&mut self, turn: &Turn<'_>, offset: u32, data: u32) -> Result<(), Fault> {
        match offset {
            NVC6C0_LAUNCH_DMA => self.launch(turn, data),
            NVC6C0_LOAD_INLINE_DATA => self.load(turn, data),
            _ => {
                self.registers[((offset - FIRST) / 4) as usize] = data;
                Ok(())
            }
        }
    }

    /// Checks that no transfer still waits for words, because a transfer must get all its words before another method
    /// comes.
    pub(super) fn check_complete(&self, turn: &Turn<'_>) -> Result<(), Fault> {
        match &self.running {
            None => Ok(()),
            Some(r) => {
                let what = format!(
                    "{}: esr 00000002: inline data ends in line {} of {}, at byte {}",
                    fault::MEMFMT,
                    r.line,
                    r.lines,
                    r.done
                );
                Err(fault::graphics(turn.hw, what))
            }
        }
    }

    fn get(&self, offset: u32) -> u32 {
        self.registers[((offset - FIRST) / 4) as usize]
    }

    fn launch(&mut self, turn: &Turn<'_>, word: u32) -> Result<(), Fault> {
        let line_bytes = u64::from(self.get(NVC6C0_LINE_LENGTH_IN));
        let lines = u64::from(self.get(NVC6C0_LINE_COUNT));
        let va = u64::from(self.upper[0].of(self.get(NVC6C0_OFFSET_OUT_UPPER))) << 32
            | u64::from(self.get(NVC6C0_OFFSET_OUT));
        let pitched = NVC6C0_LAUNCH_DMA_DST_MEMORY_LAYOUT.of(word) == NVC6C0_LAUNCH_DMA_DST_MEMORY_LAYOUT_PITCH;
        let to = if pitched {
            Surface::Pitch { va, pitch: i64::from(self.get(NVC6C0_PITCH_OUT)) }
        } else {
            Surface::Block(self.block_linear(va))
        };
        let running = Running { to, line_bytes, lines, line: 0, done: 0, word };
        if line_bytes == 0 || lines == 0 {
            return self.complete(turn, word);
        }
        self.running = Some(running);
        Ok(())
    }

    fn block_linear(&self, va: u64) -> BlockLinear {
        let size = self.get(NVC6C0_SET_DST_BLOCK_SIZE);
        BlockLinear {
            va,
            width: u64::from(self.get(NVC6C0_SET_DST_WIDTH)),
            height: u64::from(self.get(NVC6C0_SET_DST_HEIGHT)),
            block_height: NVC6C0_SET_DST_BLOCK_SIZE_HEIGHT.of(size),
            block_depth: NVC6C0_SET_DST_BLOCK_SIZE_DEPTH.of(size),
            x: u64::from(NVC6C0_SET_DST_ORIGIN_BYTES_X_V.of(self.get(NVC6C0_SET_DST_ORIGIN_BYTES_X))),
            y: u64::from(NVC6C0_SET_DST_ORIGIN_SAMPLES_Y_V.of(self.get(NVC6C0_SET_DST_ORIGIN_SAMPLES_Y))),
            layer: u64::from(self.get(NVC6C0_SET_DST_LAYER)),
        }
    }

    /// Takes one data word. Every line is padded to whole words.
    fn load(&mut self, turn: &Turn<'_>, data: u32) -> Result<(), Fault> {
        let Some(r) = &mut self.running else {
            let what =
                format!("{}: esr 00000001: inline data {data:#x} without a transfer that takes it", fault::MEMFMT);
            return Err(fault::graphics(turn.hw, what));
        };
        let n = (r.line_bytes - r.done).min(4);
        let table = turn.table();
        let mem = Accessor::new(&table);
        let bytes = data.to_le_bytes();
        r.to.scatter(&mem, r.done, r.line, &bytes[..n as usize]).map_err(turn.mmu(fault::FRONT_END))?;
        r.done += n;
        if r.done == r.line_bytes {
            r.done = 0;
            r.line += 1;
        }
        if r.line == r.lines {
            let (word, to, line_bytes, lines) = (r.word, r.to, r.line_bytes, r.lines);
            self.running = None;
            let ranges = (0..lines).flat_map(|line| to.ranges(line, line_bytes, true));
            turn.copied(|| format!("{} bytes of commands", line_bytes * lines), &table, ranges);
            return self.complete(turn, word);
        }
        Ok(())
    }

    /// Ends a transfer whose data is all in memory: releases the semaphore and raises the interrupt that were asked
    /// for.
    fn complete(&self, turn: &Turn<'_>, word: u32) -> Result<(), Fault> {
        let completion = NVC6C0_LAUNCH_DMA_COMPLETION_TYPE.of(word);
        if completion == NVC6C0_LAUNCH_DMA_COMPLETION_TYPE_RELEASE_SEMAPHORE {
            let upper = self.upper[1].of(self.get(NVC6C0_SET_I2M_SEMAPHORE_A));
            let four =
                NVC6C0_LAUNCH_DMA_SEMAPHORE_STRUCT_SIZE.of(word) == NVC6C0_LAUNCH_DMA_SEMAPHORE_STRUCT_SIZE_FOUR_WORDS;
            let reduces = NVC6C0_LAUNCH_DMA_REDUCTION_ENABLE.of(word) == NVC6C0_LAUNCH_DMA_REDUCTION_ENABLE_TRUE;
            let signed = NVC6C0_LAUNCH_DMA_REDUCTION_FORMAT.of(word) == NVC6C0_LAUNCH_DMA_REDUCTION_FORMAT_SIGNED_32;
            let op = Op::from_graphics(NVC6C0_LAUNCH_DMA_REDUCTION_OP.of(word));
            let release = Release {
                va: u64::from(upper) << 32 | u64::from(self.get(NVC6C0_SET_I2M_SEMAPHORE_B)),
                payload: u64::from(self.get(NVC6C0_SET_I2M_SEMAPHORE_C)),
                wide: false,
                timestamp: four.then(|| turn.ptimer.stamp()),
                reduction: reduces.then_some(Reduction { op, signed }),
            };
            let table = turn.table();
            turn.release(&table, &release).map_err(turn.mmu(fault::FRONT_END))?;
            turn.semaphore(release.va, "released by inline to memory", release.payload);
        }
        if NVC6C0_LAUNCH_DMA_INTERRUPT_TYPE.of(word) == NVC6C0_LAUNCH_DMA_INTERRUPT_TYPE_INTERRUPT {
            turn.awaken(Awakening::NonStall);
        }
        Ok(())
    }
}
