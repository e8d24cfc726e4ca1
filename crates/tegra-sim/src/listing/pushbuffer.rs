//! Listings of a segment of a pushbuffer, with its headers one after another.

use super::class::{self, Class};
use std::fmt::Write;
use tegra_gpu::compute_method_name;
use tegrarm_abi::methods::host::*;
use tegrarm_abi::rm::classes::AMPERE_DMA_COPY_B;

/// Methods below this offset belong to the host on every subchannel. SET_OBJECT, which the host passes on to the
/// engine, has its name there too.
const HOST_METHODS: u32 = 0x100;

/// The subchannels, and the listing so far.
struct Listing {
    classes: [&'static Class; 8],
    out: String,
}

/// Lists a segment. Until a SET_OBJECT says otherwise, subchannels 0–3 are taken for the compute engine and subchannel
/// 4 for the copy engine.
pub(super) fn text(words: &[u32]) -> String {
    let mut classes = [&class::COMPUTE; 8];
    classes[4] = &class::COPY;
    let mut listing = Listing { classes, out: String::new() };
    let mut at = 0;
    while let Some(header) = words.get(at) {
        at += 1 + listing.header(4 * at, *header, &words[at + 1..]);
    }
    listing.out
}

impl Listing {
    fn line(&mut self, args: std::fmt::Arguments<'_>) {
        writeln!(self.out, "{args}").expect("a string takes everything");
    }

    /// Lists one header and its data. Returns how many data words there were.
    fn header(&mut self, at: usize, word: u32, rest: &[u32]) -> usize {
        let subchannel = NVC56F_DMA_METHOD_SUBCHANNEL.of(word);
        let method = 4 * NVC56F_DMA_METHOD_ADDRESS.of(word);
        let count = NVC56F_DMA_METHOD_COUNT.of(word) as usize;
        let (name, steps): (_, fn(u32) -> u32) = match NVC56F_DMA_SEC_OP.of(word) {
            _ if word == NVC56F_DMA_NOP => return self.plain(at, word, "nop"),
            NVC56F_DMA_SEC_OP_GRP0_USE_TERT => return self.plain(at, word, group0(word)),
            NVC56F_DMA_SEC_OP_INC_METHOD => ("increasing", |i| i),
            NVC56F_DMA_SEC_OP_NON_INC_METHOD => ("not increasing", |_| 0),
            NVC56F_DMA_SEC_OP_ONE_INC => ("increasing once", |i| i.min(1)),
            NVC56F_DMA_SEC_OP_IMMD_DATA_METHOD => {
                self.line(format_args!("{at:#06x}  {word:08x}  immediate, subchannel {subchannel}"));
                self.method(subchannel, method, NVC56F_DMA_IMMD_DATA.of(word));
                return 0;
            }
            NVC56F_DMA_SEC_OP_END_PB_SEGMENT => return self.plain(at, word, "end of segment"),
            _ => return self.plain(at, word, "reserved operation: a PBDMA error"),
        };
        let here = &rest[..count.min(rest.len())];
        let more = if here.len() < count { ", which go on in the next segment" } else { "" };
        self.line(format_args!("{at:#06x}  {word:08x}  {name}, subchannel {subchannel}, {count} words{more}"));
        for (i, data) in (0..).zip(here) {
            self.method(subchannel, method + 4 * steps(i), *data);
        }
        here.len()
    }

    fn plain(&mut self, at: usize, word: u32, what: &str) -> usize {
        self.line(format_args!("{at:#06x}  {word:08x}  {what}"));
        0
    }

    fn method(&mut self, subchannel: u32, method: u32, data: u32) {
        if method == NVC56F_SET_OBJECT {
            let copies = data & 0xffff == AMPERE_DMA_COPY_B;
            self.classes[subchannel as usize] = if copies { &class::COPY } else { &class::COMPUTE };
        }
        let class = if method < HOST_METHODS { &class::HOST } else { self.classes[subchannel as usize] };
        match class.method(method) {
            Some(name) => {
                let fields: Vec<String> = class.fields(name, data).iter().map(|f| f.to_string()).collect();
                self.line(format_args!("                    {name} = {data:#010x}  {}", fields.join(" ")));
            }
            None => {
                let known = if std::ptr::eq(class, &class::COMPUTE) { compute_method_name(method) } else { None };
                let name = known.unwrap_or("unknown method");
                self.line(format_args!("                    {name} ({method:#x}) = {data:#010x}"));
            }
        }
    }
}

fn group0(word: u32) -> &'static str {
    match NVC56F_DMA_SET_SUBDEVICE_MASK_OPCODE.of(word) {
        NVC56F_DMA_SET_SUBDEVICE_MASK_OPCODE_VALUE => "set subdevice mask",
        NVC56F_DMA_STORE_SUBDEVICE_MASK_OPCODE_VALUE => "store subdevice mask",
        NVC56F_DMA_USE_SUBDEVICE_MASK_OPCODE_VALUE => "use subdevice mask",
        _ => "no operation of group 0: a PBDMA error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inc(subchannel: u32, method: u32, count: u32) -> u32 {
        NVC56F_DMA_SEC_OP.put(NVC56F_DMA_SEC_OP_INC_METHOD)
            | NVC56F_DMA_METHOD_COUNT.put(count)
            | NVC56F_DMA_METHOD_SUBCHANNEL.put(subchannel)
            | NVC56F_DMA_METHOD_ADDRESS.put(method / 4)
    }

    #[test]
    fn a_release_and_a_copy_are_named() {
        let semaphore = [inc(0, NVC56F_SEM_ADDR_LO, 5), 0x1000, 0, 7, 0, 1];
        let copy = [inc(4, 0, 1), AMPERE_DMA_COPY_B, inc(4, 0x300, 1), 0x182, 0];
        let text = text(&[&semaphore[..], &copy[..]].concat());
        for wanted in ["SEM_PAYLOAD_LO = 0x00000007", "OPERATION=RELEASE", "LAUNCH_DMA = 0x00000182", "nop"] {
            assert!(text.contains(wanted), "{wanted} is missing in\n{text}");
        }
    }

    #[test]
    fn a_cut_off_segment_and_arrays_are_said_to_be_such() {
        let text = text(&[inc(1, 0x320, 3), 1, 2]);
        assert!(text.contains("3 words, which go on in the next segment"), "{text}");
        assert!(text.contains("LOAD_INLINE_QMD_DATA (0x324) = 0x00000002"), "{text}");
    }
}
