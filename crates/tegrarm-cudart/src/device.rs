//! The device: its properties, versions, and its reset.

use crate::calls::*;
use crate::numbers::{PROPERTIES, SIZES};

/// A property of `cudaDeviceProp`.
pub struct Property {
    /// Its name.
    pub name: &'static str,
    /// Where it is in CUDA 12 and in CUDA 13.
    pub places: [Option<usize>; 2],
    /// How large it is.
    pub bytes: usize,
    /// The driver's attribute with the same value.
    pub attribute: Option<u32>,
}

/// Fails for any other device than the first: there is no other.
pub fn only(device: usize) -> Answer {
    if device as u32 == 0 { Ok(()) } else { Err(INVALID_DEVICE) }
}

/// What no attribute says.
fn described(property: &Property, room: &mut [u8]) -> Answer {
    match property.name {
        "name" => cu!("cuDeviceGetName", room.as_mut_ptr(), room.len(), 0),
        "uuid" => cu!("cuDeviceGetUuid_v2", room.as_mut_ptr(), 0),
        "totalGlobalMem" => cu!("cuDeviceTotalMem_v2", room.as_mut_ptr(), 0),
        // 0: what NVIDIA's headers call reserved, and what is of Windows.
        _ => Ok(()),
    }
}

pub mod rows {
    //! The functions of the device.

    use super::*;

    pub fn cudaGetDeviceCount([to]: [usize; 1]) -> Answer {
        initialize()?;
        cu!("cuDeviceGetCount", to)
    }

    pub fn cudaGetDevice([to]: [usize; 1]) -> Answer {
        set(to, 0i32)
    }

    pub fn cudaSetDevice([device]: [usize; 1]) -> Answer {
        only(device)
    }

    pub fn cudaInitDevice([device, flags, which]: [usize; 3]) -> Answer {
        only(device)?;
        // cudaInitDeviceFlagsAreValid
        if which as u32 & 1 != 0 { cudaSetDeviceFlags([flags]) } else { Ok(()) }
    }

    pub fn cudaSetValidDevices([list, count]: [usize; 2]) -> Answer {
        (0..count as u32 as usize).try_for_each(|at| only(get::<u32>(list + 4 * at)? as usize))
    }

    pub fn cudaChooseDevice([to, properties]: [usize; 2]) -> Answer {
        if properties == 0 {
            return Err(INVALID_VALUE);
        }
        set(to, 0i32)
    }

    pub fn cudaSetDeviceFlags([flags]: [usize; 1]) -> Answer {
        initialize()?;
        cu!("cuDevicePrimaryCtxSetFlags_v2", 0, flags)
    }

    pub fn cudaGetDeviceFlags([to]: [usize; 1]) -> Answer {
        cu!("cuCtxGetFlags", to)
    }

    pub fn cudaDeviceReset([]: [usize; 0]) -> Answer {
        reset()
    }

    pub fn cudaThreadExit([]: [usize; 0]) -> Answer {
        reset()
    }

    pub fn cudaDeviceEnablePeerAccess([_device, _flags]: [usize; 2]) -> Answer {
        Err(INVALID_DEVICE)
    }

    pub fn cudaDeviceDisablePeerAccess([_device]: [usize; 1]) -> Answer {
        Err(INVALID_DEVICE)
    }

    pub fn cudaDriverGetVersion([to]: [usize; 1]) -> Answer {
        cu!("cuDriverGetVersion", to)
    }

    /// The version of the header from which the rows are.
    pub fn cudaRuntimeGetVersion([to]: [usize; 1]) -> Answer {
        set(to, crate::numbers::VERSIONS[usize::from(major() == 13)])
    }

    pub fn cudaGetDriverEntryPoint([name, to, flags, status]: [usize; 4]) -> Answer {
        let version = crate::numbers::VERSIONS[usize::from(major() == 13)] as usize;
        cudaGetDriverEntryPointByVersion([name, to, version, flags, status])
    }

    pub fn cudaGetDriverEntryPointByVersion([name, to, version, flags, status]: [usize; 5]) -> Answer {
        // cudaEnableDefault means the default stream with which the program was compiled: cudaEnablePerThreadDefaultStream is 2.
        let flags = if flags == 0 && per_thread() { 2 } else { flags };
        cu!("cuGetProcAddress_v2", name, to, version, flags, status)
    }

    pub fn cudaGetExportTable([to, _id]: [usize; 2]) -> Answer {
        set(to, 0usize)?;
        say("the tables of cudaGetExportTable are private interfaces of NVIDIA's software, which are not imitated");
        Err(NOT_SUPPORTED)
    }

    pub fn cudaGetDeviceProperties([to, device]: [usize; 2]) -> Answer {
        if major() == 12 {
            say("cudaGetDeviceProperties of a program of CUDA 11 is refused: its structure is another one");
            return Err(NOT_SUPPORTED);
        }
        cudaGetDeviceProperties_v2([to, device])
    }

    pub fn cudaGetDeviceProperties_v2([to, device]: [usize; 2]) -> Answer {
        only(device)?;
        initialize()?;
        let which = usize::from(major() == 13);
        let mut made = vec![0u8; SIZES[which]];
        for property in PROPERTIES {
            let Some(place) = property.places[which] else { continue };
            let room = &mut made[place..place + property.bytes];
            let Some(attribute) = property.attribute else {
                described(property, room)?;
                continue;
            };
            let mut value = 0i32;
            // An attribute that the driver does not have is 0, as in a structure of which it is not a part.
            if cu!("cuDeviceGetAttribute", &raw mut value, attribute, 0).is_ok() {
                room.copy_from_slice(&i64::from(value).to_le_bytes()[..property.bytes]);
            }
        }
        if to == 0 {
            return Err(INVALID_VALUE);
        }
        put(to, &made);
        Ok(())
    }
}
