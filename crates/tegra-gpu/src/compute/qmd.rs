//! The launch descriptor, QMD version 3.0 (docs/hardware/gpu-launch-descriptor.md#qmd-fields).

use super::super::semaphore::{Op, Reduction, Release};
use sm87::ConstantBank;
use tegrarm_abi::layout::Bits;
use tegrarm_abi::methods::qmd::*;

/// The size of a descriptor in bytes.
pub(crate) const BYTES: usize = 256;
/// The largest size of a constant bank, 64 KiB.
const BANK_MAX: u64 = 64 << 10;

/// A launch descriptor: 64 dwords, which are read field by field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qmd {
    words: [u32; BYTES / 4],
}

/// The fields of one release semaphore.
struct ReleaseFields {
    enable: Bits,
    address: [Bits; 2],
    payload: [Bits; 2],
    op: Bits,
    format: Bits,
    reduce: Bits,
    interrupt: Bits,
    wide: Bits,
    structure: Bits,
}

static RELEASES: [ReleaseFields; 3] = [
    ReleaseFields {
        enable: RELEASE0_ENABLE,
        address: [RELEASE0_ADDRESS_LOWER, RELEASE0_ADDRESS_UPPER],
        payload: [RELEASE0_PAYLOAD_LOWER, RELEASE0_PAYLOAD_UPPER],
        op: RELEASE0_REDUCTION_OP,
        format: RELEASE0_REDUCTION_FORMAT,
        reduce: RELEASE0_REDUCTION_ENABLE,
        interrupt: RELEASE0_NON_BLOCKING_INTR_TYPE,
        wide: RELEASE0_PAYLOAD64B,
        structure: RELEASE0_STRUCTURE_SIZE,
    },
    ReleaseFields {
        enable: RELEASE1_ENABLE,
        address: [RELEASE1_ADDRESS_LOWER, RELEASE1_ADDRESS_UPPER],
        payload: [RELEASE1_PAYLOAD_LOWER, RELEASE1_PAYLOAD_UPPER],
        op: RELEASE1_REDUCTION_OP,
        format: RELEASE1_REDUCTION_FORMAT,
        reduce: RELEASE1_REDUCTION_ENABLE,
        interrupt: RELEASE1_NON_BLOCKING_INTR_TYPE,
        wide: RELEASE1_PAYLOAD64B,
        structure: RELEASE1_STRUCTURE_SIZE,
    },
    ReleaseFields {
        enable: RELEASE2_ENABLE,
        address: [RELEASE2_ADDRESS_LOWER, RELEASE2_ADDRESS_UPPER],
        payload: [RELEASE2_PAYLOAD_LOWER, RELEASE2_PAYLOAD_UPPER],
        op: RELEASE2_REDUCTION_OP,
        format: RELEASE2_REDUCTION_FORMAT,
        reduce: RELEASE2_REDUCTION_ENABLE,
        interrupt: RELEASE2_NON_BLOCKING_INTR_TYPE,
        wide: RELEASE2_PAYLOAD64B,
        structure: RELEASE2_STRUCTURE_SIZE,
    },
];

/// A dependent descriptor, and the action on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dependent {
    pub(crate) qmd: u64,
    pub(crate) action: u32,
}

impl Qmd {
    /// Makes a descriptor from its dwords.
    pub fn new(words: [u32; BYTES / 4]) -> Qmd {
        Qmd { words }
    }

    /// One field. It has at most 64 bits.
    pub fn field(&self, bits: Bits) -> u64 {
        bits.of_words(&self.words)
    }

    pub(crate) fn flag(&self, bits: Bits) -> bool {
        self.field(bits) != 0
    }

    /// A field that has at most 32 bits.
    fn small(&self, bits: Bits) -> u32 {
        self.field(bits) as u32
    }

    fn split(&self, [lower, upper]: [Bits; 2]) -> u64 {
        self.field(upper) << 32 | self.field(lower)
    }

    /// The major and minor version. The GPU accepts only 3.0.
    pub fn version(&self) -> (u32, u32) {
        (self.small(QMD_MAJOR_VERSION), self.small(QMD_VERSION))
    }

    /// The number of CTAs in x, y and z.
    pub fn grid(&self) -> [u32; 3] {
        [CTA_RASTER_WIDTH, CTA_RASTER_HEIGHT, CTA_RASTER_DEPTH].map(|b| self.small(b))
    }

    /// The CTA at which the grid starts, in x, y and z. A grid that was preempted continues at the CTA that its
    /// descriptor names.
    pub(crate) fn resume(&self) -> [u32; 3] {
        [CTA_RASTER_WIDTH_RESUME, CTA_RASTER_HEIGHT_RESUME, CTA_RASTER_DEPTH_RESUME].map(|b| self.small(b))
    }

    /// The descriptor as a copying PCAS action loads it, so that the grid starts at its first CTA.
    pub(crate) fn copied(mut self) -> Qmd {
        for bits in [CTA_RASTER_WIDTH_RESUME, CTA_RASTER_HEIGHT_RESUME, CTA_RASTER_DEPTH_RESUME] {
            bits.put_words(&mut self.words, 0);
        }
        self
    }

    /// The SMs that must not run its CTAs, one bit each.
    pub(crate) fn disabled_sms(&self) -> u64 {
        self.split([SM_DISABLE_MASK_LOWER, SM_DISABLE_MASK_UPPER])
    }

    /// The number of threads per CTA in x, y and z.
    pub fn block(&self) -> [u32; 3] {
        [CTA_THREAD_DIMENSION0, CTA_THREAD_DIMENSION1, CTA_THREAD_DIMENSION2].map(|b| self.small(b))
    }

    /// The virtual address of the first instruction.
    pub fn program(&self) -> u64 {
        self.split([PROGRAM_ADDRESS_LOWER, PROGRAM_ADDRESS_UPPER])
    }

    /// The number of registers per thread.
    pub fn registers(&self) -> u32 {
        self.small(REGISTER_COUNT_V)
    }

    /// The bytes of shared memory per CTA.
    pub fn shared_bytes(&self) -> u32 {
        self.small(SHARED_MEMORY_SIZE)
    }

    /// The local memory per thread: the bytes that start at address 0, and the bytes that end at address 2^24.
    pub fn local_bytes(&self) -> (u32, u32) {
        (self.small(SHADER_LOCAL_MEMORY_LOW_SIZE), self.small(SHADER_LOCAL_MEMORY_HIGH_SIZE))
    }

    /// Constant banks 0 to 7. Some programs write a bank's size in bytes into its field, which counts units of 16
    /// bytes, so a size is an upper bound.
    pub fn banks(&self) -> [Option<ConstantBank>; 8] {
        std::array::from_fn(|i| {
            let at = i as u16;
            self.flag(CONSTANT_BUFFER_VALID.at(at)).then(|| ConstantBank {
                va: self.split([CONSTANT_BUFFER_ADDR_LOWER.at(at), CONSTANT_BUFFER_ADDR_UPPER.at(at)]),
                size: (self.field(CONSTANT_BUFFER_SIZE_SHIFTED4.at(at)) * 16).min(BANK_MAX) as u32,
            })
        })
    }

    /// The enabled release semaphores in order, and whether each raises an interrupt. `now` is their timestamp.
    pub(crate) fn releases(&self, now: u64) -> impl Iterator<Item = (Release, bool)> + '_ {
        RELEASES.iter().filter(|f| self.flag(f.enable)).map(move |f| {
            let structure = self.small(f.structure);
            let wide = self.flag(f.wide);
            let payload = self.split(f.payload);
            let op = Op::from_graphics(self.small(f.op));
            let signed = self.small(f.format) == RELEASE0_REDUCTION_FORMAT_SIGNED_32;
            let release = Release {
                va: self.split(f.address),
                payload: if wide { payload } else { payload & 0xffff_ffff },
                wide: wide || structure == RELEASE0_STRUCTURE_SIZE_SEMAPHORE_TWO_WORDS,
                timestamp: (structure == RELEASE0_STRUCTURE_SIZE_SEMAPHORE_FOUR_WORDS).then_some(now),
                reduction: self.flag(f.reduce).then_some(Reduction { op, signed }),
            };
            (release, self.small(f.interrupt) != RELEASE0_NON_BLOCKING_INTR_TYPE_NONE)
        })
    }

    /// The descriptor that follows this one.
    pub(crate) fn dependent(&self) -> Option<Dependent> {
        self.flag(DEPENDENT_QMD0_ENABLE).then(|| Dependent {
            qmd: self.field(DEPENDENT_QMD0_POINTER) << 8,
            action: self.small(DEPENDENT_QMD0_ACTION),
        })
    }
}
