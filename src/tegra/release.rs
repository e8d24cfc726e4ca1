//! Which L4T release the kernel is, and its GPU description in one layout.

use super::{KernelError, call};
use std::mem::offset_of;
use std::ops::Range;
use tegrarm_abi::layout::{AbiStruct, copy_shared_fields};
use tegrarm_abi::nvgpu::ctrl::nvgpu_gpu_get_characteristics;
use tegrarm_abi::nvgpu::ctrl::{NVGPU_GPU_IOCTL_GET_CHARACTERISTICS, nvgpu_gpu_characteristics};
use tegrarm_abi::nvgpu::r35::nvgpu_gpu_characteristics_r35;
use tegrarm_kmd::{Errno, File};
use zerocopy::{FromBytes, FromZeros};

/// What the GPU is: the r36 layout, whatever the kernel's own is.
pub type Characteristics = nvgpu_gpu_characteristics;

/// Generation of the nvgpu and nvmap user interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// JetPack 5.
    R35,
    /// JetPack 6.
    R36,
}

/// Sizes of the two layouts. The ioctl number is the same, so the size the kernel reports is what tells them apart.
const SIZE_R35: usize = size_of::<nvgpu_gpu_characteristics_r35>();
const SIZE_R36: usize = size_of::<nvgpu_gpu_characteristics>();

/// Asks the GPU for its description, and learns the release from the answer's size.
pub(super) fn probe(ctrl: &File) -> Result<(Release, Characteristics), KernelError> {
    let mut raw = [0u8; SIZE_R36];
    let mut args = nvgpu_gpu_get_characteristics {
        gpu_characteristics_buf_size: raw.len() as u64,
        gpu_characteristics_buf_addr: raw.as_mut_ptr() as u64,
    };
    call(ctrl, NVGPU_GPU_IOCTL_GET_CHARACTERISTICS, &mut args)?;
    match usize::try_from(args.gpu_characteristics_buf_size) {
        Ok(size) if size >= SIZE_R36 => {
            Ok((Release::R36, nvgpu_gpu_characteristics::read_from_bytes(&raw).expect("sized")))
        }
        Ok(SIZE_R35) => Ok((Release::R35, from_r35(&raw[..SIZE_R35]))),
        _ => Err(KernelError::new(
            format!(
                "GET_CHARACTERISTICS reports {} bytes; known are {SIZE_R35} (r35) and {SIZE_R36} (r36), so this kernel",
                args.gpu_characteristics_buf_size
            ),
            Errno::ENOTSUP,
        )),
    }
}

/// The fields that L4T 35.4.1 moved up by four to make room for `emc_en_mask`, from `max_ltc_per_fbp` to `chipname`.
const SHIFTED: Range<usize> = offset_of!(nvgpu_gpu_characteristics_r35, max_ltc_per_fbp)
    ..offset_of!(nvgpu_gpu_characteristics_r35, chipname) + CHIPNAME;
/// Bytes of `chipname`.
const CHIPNAME: usize = 8;

/// r35's description in r36's layout. The chip name tells whether this is 35.1–35.3 or 35.4 and later.
fn from_r35(raw: &[u8]) -> Characteristics {
    let mut raw: [u8; SIZE_R35] = raw.try_into().expect("sized by the caller");
    let mut emc_en_mask = 0;
    let name_at = offset_of!(nvgpu_gpu_characteristics_r35, chipname);
    let has_name = |at: usize| raw[at..at + 5].iter().all(u8::is_ascii_alphanumeric);
    if !has_name(name_at) && has_name(name_at + 4) {
        emc_en_mask = u32::from_le_bytes(raw[SHIFTED.start..SHIFTED.start + 4].try_into().expect("4 bytes"));
        raw.copy_within(SHIFTED.start + 4..SHIFTED.end + 4, SHIFTED.start);
    }
    let old = nvgpu_gpu_characteristics_r35::read_from_bytes(&raw).expect("sized");
    let mut new = Characteristics::new_zeroed();
    new.numa_domain_id = -1;
    new.emc_en_mask = emc_en_mask;
    copy_shared_fields(&old, &mut new);
    new
}

/// One ioctl whose structure r35 lays out as `Old`: what goes in and what comes out is copied by field name.
pub(super) fn call_r35<Old: AbiStruct, New: AbiStruct>(
    file: &File,
    request: u32,
    args: &mut New,
) -> Result<(), KernelError> {
    let mut old = Old::new_zeroed();
    copy_shared_fields(args, &mut old);
    call(file, request, &mut old)?;
    copy_shared_fields(&old, args);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    fn old() -> nvgpu_gpu_characteristics_r35 {
        let mut old = nvgpu_gpu_characteristics_r35::new_zeroed();
        (old.arch, old.max_fbps_count, old.fbp_en_mask) = (0x170, 2, 3);
        (old.max_gpc_count, old.num_ltc, old.max_gpfifo_entries) = (2, 2, 1 << 28);
        old.chipname = *b"ga10b\0\0\0";
        old
    }

    #[test]
    fn r35_before_35_4_is_read_as_it_lies() {
        let new = from_r35(old().as_bytes());
        assert_eq!((new.arch, new.max_fbps_count, new.max_gpc_count, new.num_ltc), (0x170, 2, 2, 2));
        assert_eq!((new.emc_en_mask, new.max_gpfifo_entries), (0, 1 << 28));
        assert_eq!(&new.chipname, b"ga10b\0\0\0");
    }

    #[test]
    fn r35_from_35_4_on_is_read_around_the_inserted_mask() {
        let mut raw: [u8; SIZE_R35] = old().as_bytes().try_into().unwrap();
        raw.copy_within(SHIFTED, SHIFTED.start + 4);
        raw[SHIFTED.start..SHIFTED.start + 4].copy_from_slice(&0xfu32.to_le_bytes());
        let new = from_r35(&raw);
        assert_eq!((new.arch, new.max_fbps_count, new.max_gpc_count, new.num_ltc), (0x170, 2, 2, 2));
        assert_eq!((new.emc_en_mask, new.max_gpfifo_entries), (0xf, 1 << 28));
        assert_eq!(&new.chipname, b"ga10b\0\0\0");
    }
}
