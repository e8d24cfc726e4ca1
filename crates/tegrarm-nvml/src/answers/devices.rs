//! Which GPUs there are, and what does not change of them.

use super::Device;
use crate::abi::*;
use crate::pointers::{array, give, list, present, string, take, text, version};
use crate::result::{Answer, known};
use crate::session::{self, board, device, handle};
use std::ffi::{c_char, c_int, c_ulong};

/// The stand-in for an address on PCI, and the bus that the Resource Manager's stand-in has.
const ADDRESS: &str = "00000000:00:00.0";
const LEGACY_ADDRESS: &str = "0000:00:00.0";
const BUSES: [u32; 2] = [0, 1];
/// The number of NVIDIA on PCI, in the low half. The GPU has no device number, which would be the high half.
const PCI_DEVICE: u32 = 0x10de;
/// Class and subclass of a controller for 3D.
const CLASS: (u32, u32) = (3, 2);
/// Cores of an SM: of Ampere as in Orin, and of Volta as in Xavier.
const CORES: [(u32, u32); 2] = [(8, 128), (7, 64)];

pub unsafe fn count(to: *mut u32) -> Answer {
    // SAFETY: see `super`.
    unsafe { give(to, session::count()) }
}

pub unsafe fn no_units(to: *mut u32) -> Answer {
    // SAFETY: see `super`.
    unsafe { give(to, 0) }
}

pub unsafe fn no_excluded(to: *mut u32) -> Answer {
    // SAFETY: see `super`.
    unsafe { give(to, 0) }
}

pub unsafe fn by_index(index: u32, to: *mut Device) -> Answer {
    // SAFETY: see `super`.
    unsafe { give(to, handle(index)?) }
}

pub unsafe fn by_uuid(name: *const c_char, to: *mut Device) -> Answer {
    // SAFETY: see `super`.
    let name = unsafe { string(name) }?;
    found(name.eq_ignore_ascii_case(&session::gpu()?.uuid), to)
}

pub unsafe fn by_uuid_v(asked: *const nvmlUUID_t, to: *mut Device) -> Answer {
    // SAFETY: see `super`.
    let asked = unsafe {
        version(asked, nvmlUUID_v1)?;
        take(asked)
    }?;
    let gpu = session::gpu()?;
    let is_ours = match asked.r#type {
        NVML_UUID_TYPE_ASCII => {
            // SAFETY: the type says that the value is a text, and any bytes are one.
            let name = unsafe { asked.value.str };
            crate::pointers::of_array(&name).eq_ignore_ascii_case(&gpu.uuid)
        }
        // SAFETY: the type says that the value is bytes.
        NVML_UUID_TYPE_BINARY => unsafe { asked.value.bytes == gpu.uuid_bytes },
        _ => return Err(NVML_ERROR_INVALID_ARGUMENT),
    };
    found(is_ours, to)
}

pub unsafe fn by_serial(name: *const c_char, to: *mut Device) -> Answer {
    // SAFETY: see `super`.
    let name = unsafe { string(name) }?;
    found(board(|board| board.serial()).is_some_and(|serial| serial == name), to)
}

pub unsafe fn by_pci_address(name: *const c_char, to: *mut Device) -> Answer {
    // SAFETY: see `super`.
    let name = unsafe { string(name) }?;
    found(address(&name).is_some_and(|(domain, bus, slot)| domain == 0 && slot == 0 && BUSES.contains(&bus)), to)
}

/// Domain, bus and device of an address such as `0000:00:00.0`. The domain and the function may be missing.
fn address(text: &str) -> Option<(u32, u32, u32)> {
    let hex = |part: &str| u32::from_str_radix(part, 16).ok();
    let mut parts = text.rsplit(':');
    let slot = parts.next()?.split('.').next()?;
    let (bus, domain) = (parts.next()?, parts.next().unwrap_or("0"));
    if parts.next().is_some() { None } else { Some((hex(domain)?, hex(bus)?, hex(slot)?)) }
}

fn found(is_ours: bool, to: *mut Device) -> Answer {
    present(to)?;
    if !is_ours {
        return Err(NVML_ERROR_NOT_FOUND);
    }
    // SAFETY: `to` is not NULL, and the callers pass what NVML's caller passed.
    unsafe { give(to, handle(0)?) }
}

pub unsafe fn name(of: Device, to: *mut c_char, size: u32) -> Answer {
    // SAFETY: see `super`.
    unsafe { text(to, size, &device(of)?.name) }
}

pub unsafe fn uuid(of: Device, to: *mut c_char, size: u32) -> Answer {
    // SAFETY: see `super`.
    unsafe { text(to, size, &device(of)?.uuid) }
}

pub unsafe fn serial(of: Device, to: *mut c_char, size: u32) -> Answer {
    device(of)?;
    let serial = known(board(|board| board.serial()))?;
    // SAFETY: see `super`.
    unsafe { text(to, size, &serial) }
}

pub unsafe fn brand(of: Device, to: *mut u32) -> Answer {
    device(of)?;
    // SAFETY: see `super`.
    unsafe { give(to, NVML_BRAND_UNKNOWN) }
}

pub unsafe fn index(of: Device, to: *mut u32) -> Answer {
    // SAFETY: see `super`.
    unsafe { give(to, session::index(of)?) }
}

pub unsafe fn minor_number(of: Device, to: *mut u32) -> Answer {
    // SAFETY: see `super`.
    unsafe { give(to, session::index(of)?) }
}

pub unsafe fn multi_gpu_board(of: Device, to: *mut u32) -> Answer {
    device(of)?;
    // SAFETY: see `super`.
    unsafe { give(to, 0) }
}

pub unsafe fn on_same_board(one: Device, other: Device, to: *mut c_int) -> Answer {
    device(one)?;
    device(other)?;
    // SAFETY: see `super`.
    unsafe { give(to, c_int::from(one == other)) }
}

/// The fields of a PCI device. The older structure ends before the long text.
fn pci() -> nvmlPciInfo_t {
    nvmlPciInfo_t {
        busIdLegacy: array(LEGACY_ADDRESS),
        domain: 0,
        bus: BUSES[0],
        device: 0,
        pciDeviceId: PCI_DEVICE,
        pciSubSystemId: 0,
        busId: array(ADDRESS),
    }
}

pub unsafe fn pci_info(of: Device, to: *mut nvmlPciInfo_t) -> Answer {
    device(of)?;
    // SAFETY: see `super`.
    unsafe { give(to, pci()) }
}

pub unsafe fn pci_info_old(of: Device, to: *mut nvmlPciInfo_t) -> Answer {
    device(of)?;
    present(to)?;
    let (from, size) = (pci(), std::mem::offset_of!(nvmlPciInfo_t, pciSubSystemId));
    // SAFETY: the structure of the oldest version has the fields before this one, so that `to` is valid for them.
    unsafe { to.cast::<u8>().copy_from_nonoverlapping((&raw const from).cast(), size) };
    Ok(())
}

pub unsafe fn pci_info_ext(of: Device, to: *mut nvmlPciInfoExt_t) -> Answer {
    device(of)?;
    // SAFETY: see `super`.
    unsafe { version(to, nvmlPciInfoExt_v1) }?;
    let info = nvmlPciInfoExt_t {
        version: nvmlPciInfoExt_v1,
        domain: 0,
        bus: BUSES[0],
        device: 0,
        pciDeviceId: PCI_DEVICE,
        pciSubSystemId: 0,
        baseClass: CLASS.0,
        subClass: CLASS.1,
        busId: array(ADDRESS),
    };
    // SAFETY: see `super`.
    unsafe { give(to, info) }
}

pub unsafe fn architecture(of: Device, to: *mut u32) -> Answer {
    let found = match device(of)?.capability {
        (8, 0..=8) => NVML_DEVICE_ARCH_AMPERE,
        (7, 0..=4) => NVML_DEVICE_ARCH_VOLTA,
        _ => NVML_DEVICE_ARCH_UNKNOWN,
    };
    // SAFETY: see `super`.
    unsafe { give(to, found) }
}

pub unsafe fn compute_capability(of: Device, major: *mut c_int, minor: *mut c_int) -> Answer {
    let gpu = device(of)?;
    present(minor)?;
    // SAFETY: see `super`.
    unsafe {
        give(major, gpu.capability.0 as c_int)?;
        give(minor, gpu.capability.1 as c_int)
    }
}

pub unsafe fn cores(of: Device, to: *mut u32) -> Answer {
    let gpu = device(of)?;
    let of_sm = CORES.iter().find(|(major, _)| *major == gpu.capability.0).map(|(_, cores)| *cores);
    // SAFETY: see `super`.
    unsafe { give(to, known(of_sm)? * gpu.sms) }
}

pub unsafe fn compute_mode(of: Device, to: *mut u32) -> Answer {
    device(of)?;
    // SAFETY: see `super`.
    unsafe { give(to, NVML_COMPUTEMODE_DEFAULT) }
}

pub unsafe fn virtualization_mode(of: Device, to: *mut u32) -> Answer {
    device(of)?;
    // SAFETY: see `super`.
    unsafe { give(to, NVML_GPU_VIRTUALIZATION_MODE_NONE) }
}

pub unsafe fn is_mig(of: Device, to: *mut u32) -> Answer {
    device(of)?;
    // SAFETY: see `super`.
    unsafe { give(to, 0) }
}

pub unsafe fn no_mig_devices(of: Device, to: *mut u32) -> Answer {
    device(of)?;
    // SAFETY: see `super`.
    unsafe { give(to, 0) }
}

pub unsafe fn capabilities(of: Device, to: *mut nvmlDeviceCapabilities_t) -> Answer {
    device(of)?;
    // SAFETY: see `super`.
    unsafe {
        version(to, nvmlDeviceCapabilities_v1)?;
        give(to, nvmlDeviceCapabilities_t { version: nvmlDeviceCapabilities_v1, capMask: 0 })
    }
}

pub unsafe fn gpm_support(of: Device, to: *mut nvmlGpmSupport_t) -> Answer {
    device(of)?;
    // SAFETY: see `super`.
    unsafe {
        version(to, NVML_GPM_SUPPORT_VERSION)?;
        give(to, nvmlGpmSupport_t { version: NVML_GPM_SUPPORT_VERSION, isSupportedDevice: 0 })
    }
}

/// Writes a set of bits into words of the caller.
///
/// # Safety
/// `to` is NULL or valid for writes of `words` words.
unsafe fn bits(to: *mut c_ulong, words: u32, set: impl Iterator<Item = usize>) -> Answer {
    present(to)?;
    let size = c_ulong::BITS as usize;
    // SAFETY: `to` is valid for `words` words, as this function asks of its caller.
    unsafe {
        (0..words as usize).for_each(|word| to.add(word).write_unaligned(0));
        for bit in set.filter(|bit| *bit < words as usize * size) {
            let word = to.add(bit / size);
            word.write_unaligned(word.read_unaligned() | 1 << (bit % size));
        }
    }
    Ok(())
}

pub unsafe fn cpu_affinity(of: Device, words: u32, to: *mut c_ulong) -> Answer {
    device(of)?;
    // SAFETY: the call only asks the system for a number.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) }.max(1) as usize;
    // SAFETY: see `super`.
    unsafe { bits(to, words, 0..cpus) }
}

pub unsafe fn cpu_affinity_within(of: Device, words: u32, to: *mut c_ulong, _scope: u32) -> Answer {
    // SAFETY: see `super`.
    unsafe { cpu_affinity(of, words, to) }
}

pub unsafe fn memory_affinity(of: Device, words: u32, to: *mut c_ulong, _scope: u32) -> Answer {
    device(of)?;
    // SAFETY: see `super`.
    unsafe { bits(to, words, std::iter::once(0)) }
}

pub unsafe fn gpus_near_a_cpu(_cpu: u32, count: *mut u32, to: *mut Device) -> Answer {
    // SAFETY: see `super`.
    unsafe { list(count, to, vec![handle(0)?]) }
}

pub unsafe fn nearest_gpus(of: Device, _level: u32, count: *mut u32, to: *mut Device) -> Answer {
    device(of)?;
    // SAFETY: see `super`.
    unsafe { list(count, to, vec![]) }
}

pub unsafe fn common_ancestor(one: Device, other: Device, to: *mut u32) -> Answer {
    device(one)?;
    device(other)?;
    // SAFETY: see `super`.
    unsafe { give(to, NVML_TOPOLOGY_INTERNAL) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_each_form() {
        for text in ["0000:00:00.0", "00000000:00:00.0", "00:00.0", "0:0", "0000:00:00"] {
            assert_eq!(address(text), Some((0, 0, 0)), "{text}");
        }
        assert_eq!(address("0001:0a:1f.7"), Some((1, 10, 31)));
        for text in ["", "0", "x:0", "1:2:3:4"] {
            assert_eq!(address(text), None, "{text}");
        }
    }
}
