//! The words of a pushbuffer.

use tegrarm_abi::methods::compute::*;
use tegrarm_abi::methods::copy::*;
use tegrarm_abi::methods::host::*;

/// The most words that one submission of the runtime has.
pub const SUBMIT_WORDS: usize = 64;

/// The engines to which a channel's subchannels lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Compute, subchannel 1.
    Compute,
    /// Copy, subchannel 4.
    Copy,
}

impl Engine {
    fn subchannel(self) -> u32 {
        match self {
            Engine::Compute => 1,
            Engine::Copy => 4,
        }
    }
}

/// The host accepts its own methods on every subchannel. The runtime writes them to this one.
const HOST: u32 = 0;

/// Makes the word that comes before the data of consecutive methods.
const fn header(subchannel: u32, method: u32, count: u32) -> u32 {
    NVC56F_DMA_SEC_OP.put(NVC56F_DMA_SEC_OP_INC_METHOD)
        | NVC56F_DMA_METHOD_COUNT.put(count)
        | NVC56F_DMA_METHOD_SUBCHANNEL.put(subchannel)
        | NVC56F_DMA_METHOD_ADDRESS.put(method >> 2)
}

/// A place to which words are written: a pushbuffer that the GPU reads, or a recording.
pub trait Sink {
    /// Appends words.
    fn put<const N: usize>(&mut self, words: [u32; N]);

    /// The number of words written so far.
    fn len(&self) -> usize;

    /// Whether no word has been written yet.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Sink for Vec<u32> {
    fn put<const N: usize>(&mut self, words: [u32; N]) {
        self.extend(words);
    }

    fn len(&self) -> usize {
        Vec::len(self)
    }
}

/// Transfers bytes that lie one after another, after the transfer before it.
const LINEAR: u32 = NVC6B5_LAUNCH_DMA_DATA_TRANSFER_TYPE.put(NVC6B5_LAUNCH_DMA_DATA_TRANSFER_TYPE_NON_PIPELINED)
    | NVC6B5_LAUNCH_DMA_SRC_MEMORY_LAYOUT.put(NVC6B5_LAUNCH_DMA_SRC_MEMORY_LAYOUT_PITCH)
    | NVC6B5_LAUNCH_DMA_DST_MEMORY_LAYOUT.put(NVC6B5_LAUNCH_DMA_DST_MEMORY_LAYOUT_PITCH)
    | NVC6B5_LAUNCH_DMA_FLUSH_ENABLE.put(NVC6B5_LAUNCH_DMA_FLUSH_ENABLE_TRUE);

/// Writes methods to a sink.
#[derive(Clone)]
pub struct Commands<S> {
    sink: S,
}

impl<S: Sink> Commands<S> {
    /// Makes a writer of methods to `sink`.
    pub fn new(sink: S) -> Commands<S> {
        Commands { sink }
    }

    /// The number of words written so far.
    #[inline]
    pub fn len(&self) -> usize {
        self.sink.len()
    }

    /// Whether no word has been written yet.
    pub fn is_empty(&self) -> bool {
        self.sink.is_empty()
    }

    /// Returns the sink.
    pub fn finish(self) -> S {
        self.sink
    }

    #[inline]
    fn method<const N: usize>(&mut self, subchannel: u32, method: u32, data: [u32; N]) -> &mut Self {
        self.sink.put([header(subchannel, method, N as u32)]);
        self.sink.put(data);
        self
    }

    /// Binds a class to its subchannel.
    pub fn set_object(&mut self, engine: Engine, class: u32) -> &mut Self {
        self.method(engine.subchannel(), NVC6C0_SET_OBJECT, [class])
    }

    /// Sets the windows in which kernels find shared and local memory.
    pub fn windows(&mut self, shared: u64, local: u64) -> &mut Self {
        let compute = Engine::Compute.subchannel();
        self.method(compute, NVC6C0_SET_SHADER_SHARED_MEMORY_WINDOW_A, halves(shared));
        self.method(compute, NVC6C0_SET_SHADER_LOCAL_MEMORY_WINDOW_A, halves(local))
    }

    /// Sets the memory for local memory: its address, and the number of bytes of each TPC.
    pub fn local_memory(&mut self, at: u64, per_tpc: u64) -> &mut Self {
        let compute = Engine::Compute.subchannel();
        let [hi, lo] = halves(per_tpc);
        self.method(compute, NVC6C0_SET_SHADER_LOCAL_MEMORY_A, halves(at));
        self.method(compute, NVC6C0_SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A, [hi, lo, ALL_SMS])
    }

    /// Launches a grid. The GPU reads the descriptor again, because its address has held other descriptors before.
    #[inline]
    pub fn launch(&mut self, qmd: u64) -> &mut Self {
        let compute = Engine::Compute.subchannel();
        let caches = NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI_INSTRUCTION.put(1)
            | NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI_GLOBAL_DATA.put(1)
            | NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI_CONSTANT.put(1);
        self.method(compute, NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI, [caches]);
        self.method(compute, NVC6C0_SEND_PCAS_A, [(qmd >> 8) as u32]);
        let action = NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_INVALIDATE_PREFETCH_COPY_SCHEDULE;
        self.method(compute, NVC6C0_SEND_SIGNALING_PCAS2_B, [action])
    }

    /// Copies at most 4 GiB − 1 bytes.
    pub fn copy(&mut self, from: u64, to: u64, bytes: u32) -> &mut Self {
        let copy = Engine::Copy.subchannel();
        let [from_hi, from_lo] = halves(from);
        let [to_hi, to_lo] = halves(to);
        self.method(copy, NVC6B5_OFFSET_IN_UPPER, [from_hi, from_lo, to_hi, to_lo]);
        self.method(copy, NVC6B5_LINE_LENGTH_IN, [bytes]);
        self.method(copy, NVC6B5_LAUNCH_DMA, [LINEAR])
    }

    /// Writes `count` elements of `size` bytes (1, 2 or 4), which are the low bytes of `value`.
    pub fn fill(&mut self, to: u64, value: u32, size: u32, count: u32) -> &mut Self {
        let copy = Engine::Copy.subchannel();
        let components = NVC6B5_SET_REMAP_COMPONENTS_DST_X.put(NVC6B5_SET_REMAP_COMPONENTS_DST_X_CONST_A)
            | NVC6B5_SET_REMAP_COMPONENTS_COMPONENT_SIZE.put(size - 1)
            | NVC6B5_SET_REMAP_COMPONENTS_NUM_SRC_COMPONENTS.put(NVC6B5_SET_REMAP_COMPONENTS_NUM_SRC_COMPONENTS_ONE)
            | NVC6B5_SET_REMAP_COMPONENTS_NUM_DST_COMPONENTS.put(NVC6B5_SET_REMAP_COMPONENTS_NUM_DST_COMPONENTS_ONE);
        self.method(copy, NVC6B5_SET_REMAP_CONST_A, [value, 0, components]);
        self.method(copy, NVC6B5_OFFSET_OUT_UPPER, halves(to));
        self.method(copy, NVC6B5_LINE_LENGTH_IN, [count]);
        let how = LINEAR | NVC6B5_LAUNCH_DMA_REMAP_ENABLE.put(NVC6B5_LAUNCH_DMA_REMAP_ENABLE_TRUE);
        self.method(copy, NVC6B5_LAUNCH_DMA, [how])
    }

    /// Waits until both engines are idle. This separates work of one engine from work of the other.
    pub fn wait_for_idle(&mut self) -> &mut Self {
        self.method(HOST, NVC56F_WFI, [NVC56F_WFI_SCOPE.put(NVC56F_WFI_SCOPE_ALL)])
    }

    /// Waits until the double word at `at` is at least `value`, and lets other channels run meanwhile. Returns the
    /// index of the low word of the value. The high word follows it.
    pub fn acquire(&mut self, at: u64, value: u64) -> usize {
        let execute = NVC56F_SEM_EXECUTE_OPERATION.put(NVC56F_SEM_EXECUTE_OPERATION_ACQ_CIRC_GEQ)
            | NVC56F_SEM_EXECUTE_ACQUIRE_SWITCH_TSG.put(NVC56F_SEM_EXECUTE_ACQUIRE_SWITCH_TSG_EN)
            | NVC56F_SEM_EXECUTE_PAYLOAD_SIZE.put(NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_64BIT);
        self.semaphore(at, value, execute)
    }

    /// Writes `value` when the engine is idle. Returns the index of the low word of the value. The high word follows
    /// it.
    #[inline]
    pub fn release(&mut self, at: u64, value: u64) -> usize {
        let execute = NVC56F_SEM_EXECUTE_OPERATION.put(NVC56F_SEM_EXECUTE_OPERATION_RELEASE)
            | NVC56F_SEM_EXECUTE_RELEASE_WFI.put(NVC56F_SEM_EXECUTE_RELEASE_WFI_EN)
            | NVC56F_SEM_EXECUTE_PAYLOAD_SIZE.put(NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_64BIT);
        self.semaphore(at, value, execute)
    }

    /// Writes `value` and the GPU's time when the engine is idle. They take 16 bytes at `at`, which is a multiple of
    /// 16.
    pub fn stamp(&mut self, at: u64, value: u64) -> &mut Self {
        let execute = NVC56F_SEM_EXECUTE_OPERATION.put(NVC56F_SEM_EXECUTE_OPERATION_RELEASE)
            | NVC56F_SEM_EXECUTE_RELEASE_WFI.put(NVC56F_SEM_EXECUTE_RELEASE_WFI_EN)
            | NVC56F_SEM_EXECUTE_RELEASE_TIMESTAMP.put(NVC56F_SEM_EXECUTE_RELEASE_TIMESTAMP_EN)
            | NVC56F_SEM_EXECUTE_PAYLOAD_SIZE.put(NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_64BIT);
        self.semaphore(at, value, execute);
        self
    }

    /// Waits until the syncpoint at `at` has reached `value`. Other channels run during the wait.
    pub fn acquire_syncpoint(&mut self, at: u64, value: u32) -> &mut Self {
        let execute = NVC56F_SEM_EXECUTE_OPERATION.put(NVC56F_SEM_EXECUTE_OPERATION_ACQ_CIRC_GEQ)
            | NVC56F_SEM_EXECUTE_ACQUIRE_SWITCH_TSG.put(NVC56F_SEM_EXECUTE_ACQUIRE_SWITCH_TSG_EN);
        self.semaphore(at, value.into(), execute);
        self
    }

    /// Increments the syncpoint at `at` when the engine is idle. A release of any number to that address increments it.
    pub fn increment_syncpoint(&mut self, at: u64) -> &mut Self {
        let execute = NVC56F_SEM_EXECUTE_OPERATION.put(NVC56F_SEM_EXECUTE_OPERATION_RELEASE)
            | NVC56F_SEM_EXECUTE_RELEASE_WFI.put(NVC56F_SEM_EXECUTE_RELEASE_WFI_EN);
        self.semaphore(at, 0, execute);
        self
    }

    /// Returns the index of the low word of the value.
    #[inline]
    fn semaphore(&mut self, at: u64, value: u64, execute: u32) -> usize {
        let [hi, lo] = halves(at);
        let [value_hi, value_lo] = halves(value);
        let index = self.len() + 3;
        self.method(HOST, NVC56F_SEM_ADDR_LO, [lo, hi, value_lo, value_hi, execute]);
        index
    }
}

/// More SMs than any GPU has, which stands for no throttling.
const ALL_SMS: u32 = 0xff;

/// The halves of a value with the high half first, as pairs of methods take them.
fn halves(value: u64) -> [u32; 2] {
    [(value >> 32) as u32, value as u32]
}
