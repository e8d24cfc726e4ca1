//! Devices: there is one, device 0.

use crate::machine::{self, Profile};
use crate::numbers::*;
use crate::result::{Answer, fail};
use once_cell::race::OnceBox;

/// Fails if there is no device with this number.
pub fn check_device(device: i32) -> Answer {
    if device != 0 {
        fail!(CUDA_ERROR_INVALID_DEVICE, "there is no device {device}: a Tegra has device 0 alone");
    }
    Ok(())
}

/// The figures of the GPU.
pub fn profile() -> Answer<&'static Profile> {
    static PROFILE: OnceBox<Profile> = OnceBox::new();
    if let Some(profile) = PROFILE.get() {
        return Ok(profile);
    }
    let profile = machine::profile(0)?;
    Ok(PROFILE.get_or_init(|| Box::new(profile)))
}

/// The architecture of the GPU, as the names of compilers have it: 87.
pub fn arch() -> Answer<u32> {
    let version = profile()?.sm_version;
    Ok((version >> 8) * 10 + (version & 0xFF))
}

/// The identifier that an integrated GPU has in place of one on a PCI bus, as NVIDIA's driver on a Jetson writes it.
const BUS_ID: &str = "0000:00:00.0";

pub mod rows {
    //! The functions of devices.

    use super::*;
    use crate::attributes;
    use crate::pointers::Ptr;
    use crate::structures::DeviceProperties;
    use std::ffi::{c_char, c_void};

    pub fn cuDeviceGet(device: Ptr<i32>, ordinal: i32) -> Answer {
        device.present("device")?;
        check_device(ordinal)?;
        device.set(ordinal, "device")
    }

    pub fn cuDeviceGetCount(count: Ptr<i32>) -> Answer {
        count.set(machine::count()? as i32, "count")
    }

    pub fn cuDeviceGetName(name: Ptr<c_char>, len: i32, device: i32) -> Answer {
        check_device(device)?;
        name.present("name")?;
        if len <= 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "{len} bytes for the name");
        }
        // NVIDIA's driver gives the name without the chip: "Orin".
        let full = machine::text(&profile()?.name);
        name.set_text(full.split(" (").next().unwrap_or(&full), len as usize);
        Ok(())
    }

    pub fn cuDeviceGetUuid(uuid: Ptr<c_void>, device: i32) -> Answer {
        check_device(device)?;
        uuid.cast::<[u8; 16]>().set(profile()?.uuid, "uuid")
    }

    pub fn cuDeviceTotalMem_v2(bytes: Ptr<usize>, device: i32) -> Answer {
        check_device(device)?;
        bytes.set(profile()?.memory_size as usize, "bytes")
    }

    pub fn cuDeviceGetAttribute(value: Ptr<i32>, attribute: u32, device: i32) -> Answer {
        check_device(device)?;
        value.set(attributes::value(attribute, profile()?)?, "pi")
    }

    pub fn cuDeviceComputeCapability(major: Ptr<i32>, minor: Ptr<i32>, device: i32) -> Answer {
        cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device)?;
        cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device)
    }

    pub fn cuDeviceGetProperties(properties: Ptr<c_void>, device: i32) -> Answer {
        check_device(device)?;
        let of = |attribute| attributes::value(attribute, profile()?);
        let wanted = DeviceProperties {
            max_threads_per_block: of(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            max_threads_dim: [1024, 1024, 64],
            max_grid_size: [i32::MAX, 65535, 65535],
            shared_mem_per_block: of(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
            total_constant_memory: of(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY)?,
            simd_width: of(CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
            mem_pitch: of(CU_DEVICE_ATTRIBUTE_MAX_PITCH)?,
            regs_per_block: of(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK)?,
            clock_rate: of(CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
            texture_align: of(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)?,
        };
        properties.cast::<DeviceProperties>().set(wanted, "prop")
    }

    pub fn cuDeviceGetPCIBusId(id: Ptr<c_char>, len: i32, device: i32) -> Answer {
        check_device(device)?;
        id.present("pciBusId")?;
        if len <= BUS_ID.len() as i32 {
            fail!(CUDA_ERROR_INVALID_VALUE, "{len} bytes for the PCI bus id, which needs {}", BUS_ID.len() + 1);
        }
        id.set_text(BUS_ID, len as usize);
        Ok(())
    }

    pub fn cuDeviceGetByPCIBusId(device: Ptr<i32>, id: Ptr<c_char>) -> Answer {
        device.present("dev")?;
        let id = id.text("pciBusId")?;
        // NVML writes the domain with eight digits, and it may be left out.
        let short = id.strip_prefix("0000").filter(|rest| rest.starts_with("0000:")).unwrap_or(&id);
        if !BUS_ID.ends_with(short) || short.len() < "00:00.0".len() {
            fail!(CUDA_ERROR_INVALID_DEVICE, "there is no device {id}: the only one is {BUS_ID}");
        }
        device.set(0, "dev")
    }

    pub fn cuDeviceCanAccessPeer(can: Ptr<i32>, device: i32, peer: i32) -> Answer {
        check_device(device)?;
        check_device(peer)?;
        can.set(0, "canAccessPeer")
    }

    pub fn cuDeviceGetP2PAttribute(value: Ptr<i32>, attribute: u32, from: i32, to: i32) -> Answer {
        value.present("value")?;
        let known =
            CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK..=CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED;
        if !known.contains(&attribute) {
            fail!(CUDA_ERROR_INVALID_VALUE, "the attribute {attribute} between two devices");
        }
        check_device(from)?;
        check_device(to)?;
        fail!(CUDA_ERROR_INVALID_DEVICE, "the attribute {attribute} between a device and itself: there is only one")
    }

    pub fn cuDeviceGetExecAffinitySupport(supported: Ptr<i32>, kind: u32, device: i32) -> Answer {
        check_device(device)?;
        if kind != CU_EXEC_AFFINITY_TYPE_SM_COUNT {
            fail!(CUDA_ERROR_INVALID_VALUE, "the type {kind} of affinity");
        }
        supported.set(0, "pi")
    }
}
