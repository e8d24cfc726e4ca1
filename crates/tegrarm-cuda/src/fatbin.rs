//! Images: what kind a pointer points at, how long it is, and which part of a fat binary this GPU takes.
//!
//! CUDA's documentation promises binary compatibility within compute capability 8 between desktop GPUs, and says that it does not hold
//! between desktop and Tegra (CUDA C++ Programming Guide, "Binary Compatibility"). So machine code is taken if it is for sm_87 itself, and
//! PTX if there is none.

use crate::numbers::*;
use crate::pointers::{Ptr, at};
use crate::result::{Answer, fail};
use std::ffi::{c_char, c_void};
use std::io::Read;

const FATBIN: u32 = 0xBA55_ED50;
const WRAPPER: u32 = 0x4662_43B1;
const ELF: u32 = u32::from_le_bytes(*b"\x7FELF");
/// Archives of object files, which cuLinkAddData takes.
const ARCHIVE: &[u8] = b"!<arch>\n";
/// The kinds of entries.
const KIND_PTX: u16 = 1;
const KIND_ELF: u16 = 2;
/// Flags of an entry: how it is compressed.
const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
/// No image is larger: libtegrarm's TEGRARM_IMAGE_SIZE.
const IMAGE_BYTES: u64 = 1 << 30;

/// What this GPU takes of an image.
#[derive(Clone, Debug)]
pub enum Code {
    /// Machine code.
    Cubin(Vec<u8>),
    /// PTX, without a NUL at its end.
    Ptx(Vec<u8>),
}

/// The header of an entry of a fat binary.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    kind: u16,
    version: u16,
    header: u32,
    size: u64,
    compressed: u32,
    options: u32,
    minor: u16,
    major: u16,
    arch: u32,
    name: u32,
    name_size: u32,
    flags: u64,
    zero: u64,
    whole: u64,
}

/// Reads an image whose length its own contents say.
pub fn read(image: Ptr<c_void>, arch: u32) -> Answer<Code> {
    let magic = first_word(image)?;
    match magic {
        ELF => cubin(image.bytes(elf_size(image)?)?, arch),
        FATBIN => choose(&image.bytes(fatbin_size(image.address())?)?, arch),
        WRAPPER => {
            // The wrapper that nvcc writes: magic, version, and the address of the fat binary.
            let data: usize = at::<usize>(image.address() + 8).get("the fat binary")?;
            let size = fatbin_size(data)?;
            choose(&at::<c_void>(data).bytes(size)?, arch)
        }
        _ => Ok(Code::Ptx(image.cast::<c_char>().text("image")?.into_bytes())),
    }
}

/// Reads an image whose length is known.
pub fn read_bytes(bytes: &[u8], arch: u32) -> Answer<Code> {
    match bytes.first_chunk::<4>().map(|word| u32::from_le_bytes(*word)) {
        Some(ELF) => cubin(bytes.to_vec(), arch),
        Some(FATBIN) => choose(bytes, arch),
        _ if bytes.starts_with(ARCHIVE) => {
            fail!(CUDA_ERROR_INVALID_IMAGE, "an archive of objects is for cuLinkAddData")
        }
        _ => {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            Ok(Code::Ptx(bytes[..end].to_vec()))
        }
    }
}

fn first_word(image: Ptr<c_void>) -> Answer<u32> {
    image.present("image")?;
    // PTX may be shorter than a word: it is read byte by byte up to its NUL.
    let mut bytes = [0; 4];
    for (offset, byte) in bytes.iter_mut().enumerate() {
        *byte = at::<u8>(image.address() + offset).get("image")?;
        if *byte == 0 {
            break;
        }
    }
    Ok(u32::from_le_bytes(bytes))
}

/// How many bytes an ELF file has: the end of its last table or section.
fn elf_size(image: Ptr<c_void>) -> Answer<usize> {
    let base = image.address();
    let half = |offset: usize| at::<u16>(base + offset).get("image").map(u64::from);
    let long = |offset: usize| at::<u64>(base + offset).get("image");
    if at::<u8>(base + 4).get("image")? != 2 {
        fail!(CUDA_ERROR_INVALID_IMAGE, "an ELF file of 32 bits");
    }
    let (programs, sections) = (long(0x20)?, long(0x28)?);
    let (program_count, section_size, section_count) = (half(0x38)?, half(0x3A)?, half(0x3C)?);
    let mut end = (programs + 56 * program_count).max(sections + section_size * section_count);
    if sections > IMAGE_BYTES || programs > IMAGE_BYTES || section_size < 64 {
        fail!(CUDA_ERROR_INVALID_IMAGE, "the ELF file has its sections at {sections:#x}");
    }
    for index in 0..section_count {
        let header = (sections + index * section_size) as usize;
        let kind = at::<u32>(base + header + 4).get("image")?;
        // A section of the type NOBITS has no bytes in the file.
        if kind != 8 {
            end = end.max(long(header + 0x18)?.saturating_add(long(header + 0x20)?));
        }
    }
    if end > IMAGE_BYTES {
        fail!(CUDA_ERROR_INVALID_IMAGE, "the ELF file says that it has {end:#x} bytes");
    }
    Ok(end as usize)
}

fn fatbin_size(address: usize) -> Answer<usize> {
    if at::<u32>(address).get("the fat binary")? != FATBIN {
        fail!(CUDA_ERROR_INVALID_IMAGE, "the fat binary does not begin with its magic number");
    }
    let header: u16 = at::<u16>(address + 6).get("the fat binary")?;
    let size: u64 = at::<u64>(address + 8).get("the fat binary")?;
    if size > IMAGE_BYTES {
        fail!(CUDA_ERROR_INVALID_IMAGE, "the fat binary says that it has {size:#x} bytes");
    }
    Ok(usize::from(header) + size as usize)
}

/// Machine code for this GPU, or an error that says for which it is.
fn cubin(bytes: Vec<u8>, arch: u32) -> Answer<Code> {
    match cubin_arch(&bytes) {
        Some(own) if own != arch => {
            fail!(
                CUDA_ERROR_NO_BINARY_FOR_GPU,
                "the machine code is for sm_{own}, and the GPU is sm_{arch}: compile for sm_{arch}, or give PTX"
            )
        }
        _ => Ok(Code::Cubin(bytes)),
    }
}

/// The architecture of a cubin. CUDA 13 moved it within the flags of the ELF header.
fn cubin_arch(bytes: &[u8]) -> Option<u32> {
    let flags = u32::from_le_bytes(*bytes.get(0x30..0x34)?.first_chunk()?);
    let newer = bytes.get(8)? >= &8;
    Some(if newer { flags >> 8 & 0xFF } else { flags & 0xFF })
}

/// The entry of a fat binary that this GPU takes: machine code for it, or the PTX of the newest architecture that is not newer.
fn choose(bytes: &[u8], arch: u32) -> Answer<Code> {
    let mut position = usize::from(u16::from_le_bytes([bytes[6], bytes[7]]));
    let (mut ptx, mut machine, mut others) = (None::<(u32, usize, Entry)>, None, Vec::new());
    while let Some(entry) = entry_at(bytes, position) {
        let next = position.checked_add(entry.header as usize).and_then(|at| at.checked_add(entry.size as usize));
        match entry.kind {
            KIND_ELF if entry.arch == arch => machine = Some((position, entry)),
            KIND_PTX if entry.arch <= arch && ptx.is_none_or(|(best, ..)| best < entry.arch) => {
                ptx = Some((entry.arch, position, entry))
            }
            _ => others.push(format!("{}_{}", if entry.kind == KIND_PTX { "compute" } else { "sm" }, entry.arch)),
        }
        match next {
            Some(next) if next > position && next <= bytes.len() => position = next,
            _ => fail!(CUDA_ERROR_INVALID_IMAGE, "an entry of {:#x} bytes ends behind the fat binary", entry.size),
        }
    }
    if let Some((position, entry)) = machine {
        return cubin(unpack(bytes, position, &entry)?, arch);
    }
    if let Some((_, position, entry)) = ptx {
        let mut text = unpack(bytes, position, &entry)?;
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        text.truncate(end);
        return Ok(Code::Ptx(text));
    }
    fail!(
        CUDA_ERROR_NO_BINARY_FOR_GPU,
        "the fat binary has neither sm_{arch} nor PTX for it, only: {}",
        others.join(", ")
    )
}

fn entry_at(bytes: &[u8], position: usize) -> Option<Entry> {
    let header = bytes.get(position..position + size_of::<Entry>())?;
    let entry = at::<Entry>(header.as_ptr() as usize).get("the entry").ok()?;
    ((entry.header as usize) >= size_of::<Entry>() && matches!(entry.kind, 1..=64)).then_some(entry)
}

/// The bytes of an entry, without compression.
fn unpack(bytes: &[u8], position: usize, entry: &Entry) -> Answer<Vec<u8>> {
    let start = position + entry.header as usize;
    let packed = entry.flags & (FLAG_LZ4 | FLAG_ZSTD) != 0;
    let size = if packed { u64::from(entry.compressed) } else { entry.size };
    let Some(data) = bytes.get(start..start.saturating_add(size as usize)) else {
        fail!(CUDA_ERROR_INVALID_IMAGE, "an entry of {size} bytes ends behind the fat binary")
    };
    if entry.whole > IMAGE_BYTES {
        fail!(CUDA_ERROR_INVALID_IMAGE, "an entry says that it has {:#x} bytes", entry.whole);
    }
    if entry.flags & FLAG_ZSTD != 0 {
        let mut whole = Vec::new();
        let stream = ruzstd::decoding::StreamingDecoder::new(data);
        let read = stream
            .map_err(|e| e.to_string())
            .and_then(|mut stream| stream.read_to_end(&mut whole).map_err(|e| e.to_string()));
        return match read {
            Ok(_) => Ok(whole),
            Err(why) => fail!(CUDA_ERROR_INVALID_IMAGE, "an entry that is compressed with zstd: {why}"),
        };
    }
    if entry.flags & FLAG_LZ4 != 0 {
        return match lz4_flex::block::decompress(data, entry.whole as usize) {
            Ok(whole) => Ok(whole),
            Err(why) => fail!(CUDA_ERROR_INVALID_IMAGE, "an entry that is compressed with LZ4: {why}"),
        };
    }
    Ok(data.to_vec())
}

/// The names of the kernels of a cubin, in the order of its symbols.
pub fn kernels(cubin: &[u8]) -> Vec<String> {
    // A function (2) that is an entry: the bit 0x10 of the symbol's `st_other`.
    symbols(cubin, |info, other| info & 0xF == 2 && other & 0x10 != 0)
}

/// The names of the `__managed__` variables of a cubin.
pub fn managed(cubin: &[u8]) -> Vec<String> {
    // An object (1) with the bit 4 of `st_other`, above those of ELF's visibility.
    symbols(cubin, |info, other| info & 0xF == 1 && other & 4 != 0)
}

/// The names of the symbols with such an `st_info` and `st_other` that a section has.
fn symbols(cubin: &[u8], wanted: impl Fn(u8, u8) -> bool) -> Vec<String> {
    let word = |offset: usize| Some(u32::from_le_bytes(*cubin.get(offset..)?.first_chunk()?));
    let long = |offset: usize| Some(u64::from_le_bytes(*cubin.get(offset..)?.first_chunk()?) as usize);
    let half = |offset: usize| Some(usize::from(u16::from_le_bytes(*cubin.get(offset..)?.first_chunk()?)));
    let read = || -> Option<Vec<String>> {
        let (sections, size, count) = (long(0x28)?, half(0x3A)?, half(0x3C)?);
        let table = (0..count).map(|index| sections + index * size).find(|header| word(header + 4) == Some(2))?;
        let strings = long(sections + word(table + 0x28)? as usize * size + 0x18)?;
        let (first, bytes) = (long(table + 0x18)?, long(table + 0x20)?);
        let mut names = Vec::new();
        for symbol in (first..first.checked_add(bytes)?).step_by(24) {
            let (info, other) = (*cubin.get(symbol + 4)?, *cubin.get(symbol + 5)?);
            if wanted(info, other) && half(symbol + 6)? != 0 {
                let text = cubin.get(strings + word(symbol)? as usize..)?;
                let end = text.iter().position(|byte| *byte == 0)?;
                names.push(String::from_utf8_lossy(&text[..end]).into_owned());
            }
        }
        Some(names)
    };
    read().unwrap_or_default()
}
