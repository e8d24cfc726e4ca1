//! The L4T release of the kernel, and the description of its GPU in one layout.
//!
//! The ioctl's number is the same on every release, and the kernel says how large its structure is. A layout is chosen
//! if its size is exactly that size *and* if the bytes, read in this layout, describe a GPU that exists. A larger
//! structure is not an older one with fields at its end: both r36 and r39 inserted fields in the middle.

use super::{KernelError, call};
use std::mem::offset_of;
use std::ops::Range;
use tegrarm_abi::layout::{AbiStruct, copy_shared_fields};
use tegrarm_abi::nvgpu::ctrl::nvgpu_gpu_get_characteristics;
use tegrarm_abi::nvgpu::ctrl::{NVGPU_GPU_IOCTL_GET_CHARACTERISTICS, nvgpu_gpu_characteristics};
use tegrarm_abi::nvgpu::r35::nvgpu_gpu_characteristics_r35;
use tegrarm_abi::nvgpu::r39::nvgpu_gpu_characteristics_r39;
use tegrarm_kmd::{Errno, File};
use zerocopy::{FromBytes, FromZeros};

/// The description of the GPU. It always has r36's layout, whatever layout the kernel uses.
pub type Characteristics = nvgpu_gpu_characteristics;

/// The generation of the user interface of nvgpu or nvmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// JetPack 5.
    R35,
    /// JetPack 6.
    R36,
    /// JetPack 7.
    R39,
}

/// The layout of `nvgpu_gpu_characteristics` on one or more releases.
struct Layout {
    release: Release,
    /// The names of the releases, for messages.
    name: &'static str,
    size: usize,
    /// Reads exactly `size` bytes and returns the description in r36's layout.
    read: fn(&[u8]) -> Characteristics,
}

/// All known layouts.
const LAYOUTS: [Layout; 4] = [
    Layout { release: Release::R35, name: "r35.1 to r35.3", size: SIZE_R35, read: from_r35 },
    Layout { release: Release::R35, name: "r35.4 and later r35", size: SIZE_R35, read: from_r35_4 },
    Layout { release: Release::R36, name: "r36", size: size_of::<Characteristics>(), read: from_r36 },
    Layout {
        release: Release::R39,
        name: "r39",
        size: size_of::<nvgpu_gpu_characteristics_r39>(),
        read: converted::<nvgpu_gpu_characteristics_r39>,
    },
];
const SIZE_R35: usize = size_of::<nvgpu_gpu_characteristics_r35>();

/// A GPU that exists in a Jetson. These numbers belong together in every description of that GPU.
struct KnownGpu {
    name: &'static str,
    /// The values of `arch` and `impl`.
    chip: (u32, u32),
    /// The classes for 2D, 3D, compute, GPFIFO, inline-to-memory and copy.
    classes: [u32; 6],
}

/// The GPUs of Orin and Xavier.
const KNOWN_GPUS: [KnownGpu; 2] = [
    KnownGpu { name: "ga10b", chip: (0x170, 0xb), classes: [0x902d, 0xc797, 0xc7c0, 0xc76f, 0xa140, 0xc7b5] },
    KnownGpu { name: "gv11b", chip: (0x150, 0xb), classes: [0x902d, 0xc397, 0xc3c0, 0xc36f, 0xa140, 0xc3b5] },
];

/// The room for the answer. It is more than any known release needs, so that the answer of an unknown release can be
/// reported completely.
const ROOM: usize = 1024;

/// The kernel's description of its GPU, in the kernel's own layout.
pub(super) struct Raw {
    bytes: [u8; ROOM],
    /// The size that the kernel gives for its structure.
    pub size: u64,
}

impl Raw {
    /// Asks the kernel for the description.
    pub(super) fn ask(ctrl: &File) -> Result<Raw, KernelError> {
        let mut raw = Raw { bytes: [0; ROOM], size: 0 };
        let mut args = nvgpu_gpu_get_characteristics {
            gpu_characteristics_buf_size: ROOM as u64,
            gpu_characteristics_buf_addr: raw.bytes.as_mut_ptr() as u64,
        };
        call(ctrl, NVGPU_GPU_IOCTL_GET_CHARACTERISTICS, &mut args)?;
        raw.size = args.gpu_characteristics_buf_size;
        Ok(raw)
    }

    /// The bytes of the answer.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..(self.size as usize).min(ROOM)]
    }

    /// The release whose layout the answer has, and the description. The error is `ENOTSUP` if no known layout fits.
    pub(super) fn understand(&self) -> Result<(Release, Characteristics), KernelError> {
        let of_size = || LAYOUTS.iter().filter(|layout| layout.size as u64 == self.size);
        let readings = of_size().map(|layout| (layout, (layout.read)(self.bytes())));
        let mut plausible = readings.filter(|(_, c)| nonsense(c).is_none());
        if let (Some((layout, characteristics)), None) = (plausible.next(), plausible.next()) {
            return Ok((layout.release, characteristics));
        }
        let sizes: Vec<String> = LAYOUTS.iter().map(|layout| format!("{} ({})", layout.size, layout.name)).collect();
        let why = match of_size().next() {
            None => "this is none of them".to_owned(),
            Some(_) => {
                let each = of_size().map(|layout| {
                    let why = nonsense(&(layout.read)(self.bytes())).unwrap_or_else(|| "it fits as well".to_owned());
                    format!("read as {}, {why}", layout.name)
                });
                each.collect::<Vec<_>>().join("; ")
            }
        };
        Err(KernelError::new(
            format!(
                "GET_CHARACTERISTICS reports {} bytes; known are {}: {why}; `python -m tegrarm doctor` prints the \
                 bytes for a report; reading this layout",
                self.size,
                sizes.join(", ")
            ),
            Errno::ENOTSUP,
        ))
    }
}

/// Asks the kernel for the description and finds the release from the answer.
pub(super) fn probe(ctrl: &File) -> Result<(Release, Characteristics), KernelError> {
    Raw::ask(ctrl)?.understand()
}

/// Says why a description fits no GPU that exists. The result is `None` if it fits one.
fn nonsense(c: &Characteristics) -> Option<String> {
    let is = |gpu: &&KnownGpu| c.chipname.strip_prefix(gpu.name.as_bytes()).is_some_and(|end| end == [0; 3]);
    let Some(gpu) = KNOWN_GPUS.iter().find(is) else {
        let known: Vec<_> = KNOWN_GPUS.iter().map(|gpu| gpu.name).collect();
        let name = c.chipname.escape_ascii();
        return Some(format!("the chip name is \"{name}\", and known are {}", known.join(", ")));
    };
    let classes =
        [c.twod_class, c.threed_class, c.compute_class, c.gpfifo_class, c.inline_to_memory_class, c.dma_copy_class];
    if (c.arch, c.impl_) != gpu.chip {
        let (arch, implementation) = gpu.chip;
        Some(format!("{} is {:#x}+{:#x}, not {arch:#x}+{implementation:#x}", gpu.name, c.arch, c.impl_))
    } else if classes != gpu.classes {
        Some(format!("the classes of {} are {classes:#x?}, not {:#x?}", gpu.name, gpu.classes))
    } else if c.num_gpc == 0 || !(32..=64).contains(&c.gpu_va_bit_count) {
        Some(format!("{} has {} GPCs and {} address bits", gpu.name, c.num_gpc, c.gpu_va_bit_count))
    } else {
        None
    }
}

fn from_r36(raw: &[u8]) -> Characteristics {
    Characteristics::read_from_bytes(raw).expect("a layout is read at its own size")
}

/// Converts another release's structure to r36's layout, field by field.
fn converted<Own: AbiStruct>(raw: &[u8]) -> Characteristics {
    let own = Own::read_from_bytes(raw).expect("a layout is read at its own size");
    let mut c = Characteristics::new_zeroed();
    copy_shared_fields(&own, &mut c);
    c
}

/// r35 does not report the NUMA node. The result says that there is none.
fn from_r35(raw: &[u8]) -> Characteristics {
    Characteristics { numa_domain_id: -1, ..converted::<nvgpu_gpu_characteristics_r35>(raw) }
}

/// The fields from `max_ltc_per_fbp` to `chipname`. L4T 35.4.1 moved them up by four bytes to make room for
/// `emc_en_mask`.
const SHIFTED: Range<usize> = offset_of!(nvgpu_gpu_characteristics_r35, max_ltc_per_fbp)
    ..offset_of!(nvgpu_gpu_characteristics_r35, chipname) + CHIPNAME;
/// The size of `chipname` in bytes.
const CHIPNAME: usize = 8;

fn from_r35_4(raw: &[u8]) -> Characteristics {
    let mut raw: [u8; SIZE_R35] = raw.try_into().expect("a layout is read at its own size");
    let mask = raw[SHIFTED.start..SHIFTED.start + 4].try_into().expect("4 bytes");
    raw.copy_within(SHIFTED.start + 4..SHIFTED.end + 4, SHIFTED.start);
    Characteristics { emc_en_mask: u32::from_le_bytes(mask), ..from_r35(&raw) }
}

/// Makes one ioctl whose structure has the layout `Own` on another release. The fields are copied by name, both in and
/// out.
pub(super) fn call_as<Own: AbiStruct, New: AbiStruct>(
    file: &File,
    request: u32,
    args: &mut New,
) -> Result<(), KernelError> {
    let mut own = Own::new_zeroed();
    copy_shared_fields(args, &mut own);
    call(file, request, &mut own)?;
    copy_shared_fields(&own, args);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    fn orin() -> Characteristics {
        let mut c = Characteristics::new_zeroed();
        (c.arch, c.impl_, c.num_gpc, c.gpu_va_bit_count) = (0x170, 0xb, 2, 40);
        (c.twod_class, c.threed_class, c.compute_class) = (0x902d, 0xc797, 0xc7c0);
        (c.gpfifo_class, c.inline_to_memory_class, c.dma_copy_class) = (0xc76f, 0xa140, 0xc7b5);
        (c.max_fbps_count, c.fbp_en_mask, c.max_gpc_count) = (2, 3, 2);
        (c.num_ltc, c.max_gpfifo_entries, c.numa_domain_id) = (2, 1 << 28, -1);
        c.chipname = *b"ga10b\0\0\0";
        c
    }

    fn laid_out<Own: AbiStruct>(c: &Characteristics) -> Vec<u8> {
        let mut own = Own::new_zeroed();
        copy_shared_fields(c, &mut own);
        own.as_bytes().to_vec()
    }

    fn r35_4(c: &Characteristics) -> Vec<u8> {
        let mut raw = laid_out::<nvgpu_gpu_characteristics_r35>(c);
        raw.copy_within(SHIFTED, SHIFTED.start + 4);
        raw[SHIFTED.start..SHIFTED.start + 4].copy_from_slice(&c.emc_en_mask.to_le_bytes());
        raw
    }

    fn understand(bytes: &[u8]) -> Result<(Release, Characteristics), KernelError> {
        let mut raw = Raw { bytes: [0; ROOM], size: bytes.len() as u64 };
        raw.bytes[..bytes.len()].copy_from_slice(bytes);
        raw.understand()
    }

    fn refused(bytes: &[u8]) -> KernelError {
        understand(bytes).err().expect("a refusal")
    }

    #[test]
    fn every_release_is_read_to_the_same_description() {
        let c = Characteristics { emc_en_mask: 0xf, device_instance_id: 0, ..orin() };
        for (bytes, release, mask) in [
            (laid_out::<nvgpu_gpu_characteristics_r35>(&c), Release::R35, 0),
            (r35_4(&c), Release::R35, 0xf),
            (c.as_bytes().to_vec(), Release::R36, 0xf),
            (laid_out::<nvgpu_gpu_characteristics_r39>(&c), Release::R39, 0xf),
        ] {
            let (found, read) = understand(&bytes).unwrap_or_else(|e| panic!("{release:?}: {e}"));
            assert_eq!(found, release);
            assert_eq!(read.as_bytes(), Characteristics { emc_en_mask: mask, ..c }.as_bytes(), "{release:?}");
        }
    }

    #[test]
    fn another_size_is_refused_with_all_that_are_known() {
        let mut bytes = orin().as_bytes().to_vec();
        bytes.resize(344, 0);
        let error = refused(&bytes);
        assert_eq!(error.errno, Errno::ENOTSUP);
        for part in ["344 bytes", "312 (r35", "328 (r36)", "336 (r39)", "tegrarm doctor"] {
            assert!(error.call.contains(part), "{part:?} is missing in {:?}", error.call);
        }
    }

    #[test]
    fn a_size_of_one_release_with_the_content_of_another_is_refused() {
        let mut bytes = orin().as_bytes().to_vec();
        bytes.resize(336, 0);
        let error = refused(&bytes);
        assert!(error.call.contains("read as r39, the chip name is"), "{error}");
        let stranger = Characteristics { compute_class: 0xc6c0, ..orin() };
        assert!(refused(stranger.as_bytes()).call.contains("the classes of ga10b"));
        let stranger = Characteristics { arch: 0x1a0, ..orin() };
        assert!(refused(stranger.as_bytes()).call.contains("ga10b is 0x1a0+0xb"));
    }
}
