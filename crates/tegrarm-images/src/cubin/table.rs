//! Every attribute that a compiler may write into `.nv.info`: its number, its name, its format, and what the loader does with it.
//!
//! The numbers and names are those that NVIDIA's disassembler of CUDA 13.5 prints. It hides the names of a few remedies for hardware; they are
//! known from older disassemblers. An attribute with a format other than [`Format::Unseen`] was seen in machine code for sm_87 by NVRTC
//! 11.7 to 13.5, or in other machine code.

use super::attributes::id;

/// What follows the number of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Nothing.
    Alone,
    /// A value of one byte.
    Byte,
    /// A value of two bytes.
    Half,
    /// As many bytes as the length says.
    Data,
    /// No code with this attribute was seen.
    Unseen,
}

impl Format {
    /// The number of the format in the file, 1 to 4. `None` if every format is accepted.
    pub fn number(self) -> Option<u8> {
        match self {
            Format::Alone => Some(1),
            Format::Byte => Some(2),
            Format::Half => Some(3),
            Format::Data => Some(4),
            Format::Unseen => None,
        }
    }
}

/// What the loader does with an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It reads it.
    Read,
    /// There is nothing to do, for this reason.
    Idle(&'static str),
    /// It refuses the module, for this reason.
    Refused(&'static str),
}

use Format::{Alone, Byte, Data, Half, Unseen};
use Treatment::{Idle, Read, Refused};

/// One attribute.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The number.
    pub number: u8,
    /// NVIDIA's name without `EIATTR_`.
    pub name: &'static str,
    /// What follows the number.
    pub format: Format,
    /// What the loader does with it.
    pub treatment: Treatment,
}

/// The row of an attribute. `None` if no compiler up to CUDA 13.5 knows such a number.
pub fn find(number: u8) -> Option<&'static Row> {
    ROWS.binary_search_by_key(&number, |row| row.number).ok().map(|index| &ROWS[index])
}

const fn row(number: u8, name: &'static str, format: Format, treatment: Treatment) -> Row {
    Row { number, name, format, treatment }
}

const TOOLS: &str = "it is for tools that patch code";
const OLD_CACHES: &str = "it chooses a cache of sm_3x";
const DEBUGGERS: &str = "it is for debuggers";
const COUNTS: &str = "it counts instructions";
const REMEDY: &str = "the compiler has put the remedy into the code";
const IMAGES: &str = "it describes bound textures or surfaces, and this library has no texture objects: read the array through a pointer instead";
const OTHER_GPU: &str = "it belongs to another kind of GPU than sm_87";
const CLUSTERS: &str = "clusters of blocks need sm_90 or newer";
const GRAPHICS: &str = "it belongs to a shader or a ray-tracing program, not to a CUDA kernel";
const UNSEEN: &str = "no compiler up to CUDA 13.5 writes it for sm_87, so it is not known what it asks for";
const NESTED: &str =
    "dynamic parallelism (kernels that launch kernels) is not supported: launch the kernel from the CPU";
const SHARED_PARAMETERS: &str = "parameters in shared memory belong to sm_1x";

/// All attributes, by their numbers.
#[rustfmt::skip]
pub static ROWS: &[Row] = &[
    row(0x00, "ERROR", Unseen, Refused("it is not an attribute")),
    row(0x01, "PAD", Unseen, Idle("it fills a place")),
    row(0x02, "IMAGE_SLOT", Unseen, Refused(IMAGES)),
    row(0x03, "JUMPTABLE_RELOCS", Unseen, Refused(UNSEEN)),
    row(0x04, "CTAIDZ_USED", Alone, Idle("every launch sets all three numbers of a block")),
    row(id::MAX_THREADS, "MAX_THREADS", Data, Read),
    row(0x06, "IMAGE_OFFSET", Unseen, Refused(IMAGES)),
    row(0x07, "IMAGE_SIZE", Unseen, Refused(IMAGES)),
    row(0x08, "TEXTURE_NORMALIZED", Unseen, Refused(IMAGES)),
    row(0x09, "SAMPLER_INIT", Unseen, Refused(IMAGES)),
    row(id::PARAM_CBANK, "PARAM_CBANK", Data, Read),
    row(0x0b, "SMEM_PARAM_OFFSETS", Unseen, Refused(SHARED_PARAMETERS)),
    row(0x0c, "CBANK_PARAM_OFFSETS", Unseen, Idle("KPARAM_INFO says the same")),
    row(0x0d, "SYNC_STACK", Unseen, Idle("sm_87 has no stack of convergence points")),
    row(0x0e, "TEXID_SAMPID_MAP", Unseen, Refused(IMAGES)),
    row(0x0f, "EXTERNS", Data, Idle("the symbols say which functions are missing")),
    row(id::REQNTID, "REQNTID", Data, Read),
    row(id::FRAME_SIZE, "FRAME_SIZE", Data, Read),
    row(id::MIN_STACK_SIZE, "MIN_STACK_SIZE", Data, Read),
    row(0x13, "SAMPLER_FORCE_UNNORMALIZED", Unseen, Refused(IMAGES)),
    row(0x14, "BINDLESS_IMAGE_OFFSETS", Unseen, Refused(IMAGES)),
    row(0x15, "BINDLESS_TEXTURE_BANK", Byte, Refused(IMAGES)),
    row(0x16, "BINDLESS_SURFACE_BANK", Unseen, Refused(IMAGES)),
    row(id::KPARAM_INFO, "KPARAM_INFO", Data, Read),
    row(0x18, "SMEM_PARAM_SIZE", Unseen, Refused(SHARED_PARAMETERS)),
    row(0x19, "CBANK_PARAM_SIZE", Half, Idle("PARAM_CBANK says the same")),
    row(0x1a, "QUERY_NUMATTRIB", Unseen, Idle("it counts questions to images")),
    row(0x1b, "MAXREG_COUNT", Half, Idle("it is the compiler's limit; REGCOUNT is the number in use")),
    row(0x1c, "EXIT_INSTR_OFFSETS", Data, Idle(TOOLS)),
    row(0x1d, "S2RCTAID_INSTR_OFFSETS", Unseen, Idle(TOOLS)),
    row(0x1e, "CRS_STACK_SIZE", Data, Idle("sm_87 has no call-return stack")),
    row(0x1f, "NEED_CNP_WRAPPER", Unseen, Refused(NESTED)),
    row(0x20, "NEED_CNP_PATCH", Unseen, Refused(NESTED)),
    row(0x21, "EXPLICIT_CACHING", Alone, Idle(OLD_CACHES)),
    row(0x22, "ISTYPEP_USED", Unseen, Refused(IMAGES)),
    row(id::MAX_STACK_SIZE, "MAX_STACK_SIZE", Data, Read),
    row(0x24, "SUQ_USED", Unseen, Refused(IMAGES)),
    row(0x25, "LD_CACHEMOD_INSTR_OFFSETS", Data, Idle(OLD_CACHES)),
    row(0x26, "LOAD_CACHE_REQUEST", Unseen, Idle(OLD_CACHES)),
    row(0x27, "ATOM_SYS_INSTR_OFFSETS", Data, Idle("atomics of system scope need no help on Orin")),
    row(0x28, "COOP_GROUP_INSTR_OFFSETS", Data, Idle(DEBUGGERS)),
    row(0x29, "COOP_GROUP_MASK_REGIDS", Data, Idle(DEBUGGERS)),
    row(0x2a, "SW1850030_WAR", Alone, Idle("it is for the hardware of sm_6x")),
    row(0x2b, "WMMA_USED", Alone, Idle(DEBUGGERS)),
    row(0x2c, "HAS_PRE_V10_OBJECT", Unseen, Idle("it tells the linker of old code")),
    row(0x2d, "ATOMF16_EMUL_INSTR_OFFSETS", Unseen, Idle("sm_87 has atomics of 16 bits")),
    row(0x2e, "ATOM16_EMUL_INSTR_REG_MAP", Data, Idle("sm_87 has atomics of 16 bits")),
    row(id::REGCOUNT, "REGCOUNT", Data, Read),
    row(0x30, "SW2393858_WAR", Alone, Idle("it is for the hardware of sm_7x")),
    row(0x31, "INT_WARP_WIDE_INSTR_OFFSETS", Data, Idle(DEBUGGERS)),
    row(0x32, "SHARED_SCRATCH", Unseen, Refused(UNSEEN)),
    row(0x33, "STATISTICS", Unseen, Idle(COUNTS)),
    row(0x34, "INDIRECT_BRANCH_TARGETS", Data, Idle(TOOLS)),
    row(0x35, "SW2861232_WAR", Alone, Idle(REMEDY)),
    row(0x36, "SW_WAR", Data, Idle(REMEDY)),
    row(0x37, "CUDA_API_VERSION", Data, Idle("the ELF header says which GPU the code is for")),
    row(0x38, "NUM_MBARRIERS", Half, Idle("shared memory needs no preparation")),
    row(0x39, "MBARRIER_INSTR_OFFSETS", Data, Idle(TOOLS)),
    row(0x3a, "COROUTINE_RESUME_ID_OFFSETS", Unseen, Refused(UNSEEN)),
    row(0x3b, "SAM_REGION_STACK_SIZE", Unseen, Refused(UNSEEN)),
    row(0x3c, "PER_REG_TARGET_PERF_STATS", Unseen, Idle(COUNTS)),
    row(0x3d, "CTA_PER_CLUSTER", Unseen, Refused(CLUSTERS)),
    row(0x3e, "EXPLICIT_CLUSTER", Unseen, Refused(CLUSTERS)),
    row(0x3f, "MAX_CLUSTER_RANK", Unseen, Refused(CLUSTERS)),
    row(0x40, "INSTR_REG_MAP", Data, Idle(TOOLS)),
    row(0x41, "RESERVED_SMEM_USED", Alone, Idle("every block has the reserve")),
    row(0x42, "RESERVED_SMEM_0_SIZE", Unseen, Idle("every block has the reserve")),
    row(0x43, "UCODE_SECTION_DATA", Unseen, Refused(GRAPHICS)),
    row(0x44, "UNUSED_LOAD_BYTE_OFFSET", Unseen, Idle(TOOLS)),
    row(id::KPARAM_INFO_V2, "KPARAM_INFO_V2", Data, Read),
    row(0x46, "SYSCALL_OFFSETS", Data, Idle("the relocations name the same places")),
    row(0x47, "SW_WAR_MEMBAR_SYS_INSTR_OFFSETS", Unseen, Idle(REMEDY)),
    row(0x48, "GRAPHICS_GLOBAL_CBANK", Unseen, Refused(GRAPHICS)),
    row(0x49, "SHADER_TYPE", Unseen, Refused(GRAPHICS)),
    row(0x4a, "VRC_CTA_INIT_COUNT", Unseen, Refused(OTHER_GPU)),
    row(0x4b, "TOOLS_PATCH_FUNC", Unseen, Idle(TOOLS)),
    row(id::NUM_BARRIERS, "NUM_BARRIERS", Byte, Read),
    row(0x4d, "TEXMODE_INDEPENDENT", Unseen, Idle("it matters with texture instructions alone, and these are refused")),
    row(0x4e, "PERF_STATISTICS", Unseen, Idle(COUNTS)),
    row(0x4f, "AT_ENTRY_FRAGMENTS", Unseen, Refused(OTHER_GPU)),
    row(0x50, "SPARSE_MMA_MASK", Unseen, Idle(TOOLS)),
    row(0x51, "TCGEN05_1CTA_USED", Unseen, Refused(OTHER_GPU)),
    row(0x52, "TCGEN05_2CTA_USED", Unseen, Refused(OTHER_GPU)),
    row(0x53, "GEN_ERRBAR_AT_EXIT", Alone, Idle("the code has the barrier itself")),
    row(0x54, "REG_RECONFIG", Unseen, Refused(OTHER_GPU)),
    row(0x55, "ANNOTATIONS", Unseen, Idle("it is for tools that read code")),
    row(0x57, "STACK_CANARY_TRAP_OFFSETS", Data, Idle(DEBUGGERS)),
    row(0x58, "STUB_FUNCTION_KIND", Unseen, Refused(UNSEEN)),
    row(0x59, "LOCAL_CTA_ASYNC_STORE_OFFSETS", Unseen, Refused(OTHER_GPU)),
    row(0x5a, "MERCURY_FINALIZER_OPTIONS", Unseen, Idle("sm_87 has no Mercury code")),
    row(0x5b, "BLOCKS_ARE_CLUSTERS", Unseen, Refused(CLUSTERS)),
    row(0x5c, "SANITIZE", Unseen, Refused("it was compiled for NVIDIA's sanitizer: compile it without `-sanitize`")),
    row(0x5d, "SYSCALLS_FALLBACK", Unseen, Refused(UNSEEN)),
    row(0x5e, "CUDA_REQ", Unseen, Refused(UNSEEN)),
    row(0x5f, "MERCURY_ISA_VERSION", Half, Idle("it is 0: sm_87 has no Mercury code")),
    row(0x61, "RTCORE_ENTRY", Unseen, Refused(GRAPHICS)),
    row(0x62, "CLUSTER_LAUNCH_CONTROL_USED", Unseen, Refused(CLUSTERS)),
    row(0x64, "MIN_PER_CTA_MEMORY_SIZE", Unseen, Refused(UNSEEN)),
    row(0x65, "IGNOREOOB_CP_ASYNC_BULK_INSTR_OFFSETS", Unseen, Refused(OTHER_GPU)),
    row(0x66, "LANGUAGE", Data, Idle(DEBUGGERS)),
    row(0x68, "GRID_ATTRIBUTES", Unseen, Refused(UNSEEN)),
    row(0x69, "STACK_OFFSET", Unseen, Refused(UNSEEN)),
    row(0x6a, "RT_LIVESTATE_SASS_MAP", Unseen, Refused(GRAPHICS)),
    row(0x6c, "INSTR_OFFSETS", Unseen, Idle(TOOLS)),
    row(0x6d, "PREEXIT_USED", Unseen, Refused("programmatic dependent launches need sm_90 or newer")),
];
