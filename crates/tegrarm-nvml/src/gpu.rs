//! What libtegrarm's C interface says of the GPU.

use crate::abi::{NVML_ERROR_LIBRARY_NOT_FOUND, NVML_ERROR_NOT_FOUND};
use crate::pointers::of_array;
use crate::result::{Answer, of_status};
use std::mem::MaybeUninit;
use tegrarm_client::header::*;
use tegrarm_client::{Functions, library};

/// `NV01_ROOT_CLIENT`, and the control that says which version of the driver the Resource Manager is.
const ROOT_CLIENT: u32 = 0x41;
const GET_BUILD_VERSION_V2: u32 = 0x13e;

/// `NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_V2_PARAMS`, as include/tegrarm_abi.h has it.
#[repr(C)]
struct BuildVersion {
    texts: [[u8; 256]; 4],
    numbers: [u32; 2],
}

/// What does not change.
pub struct Gpu {
    /// The name.
    pub name: String,
    /// The identifier, in the form of NVML.
    pub uuid: String,
    /// Its 16 bytes.
    pub uuid_bytes: [u8; 16],
    /// Major and minor number of the compute capability.
    pub capability: (u32, u32),
    /// The SMs.
    pub sms: u32,
    /// The highest clock of the GPU in hertz.
    pub highest_clock: u64,
    /// The version of the driver whose Resource Manager the library offers.
    pub driver: String,
}

impl Gpu {
    /// Asks the library. Nothing of the GPU stays open.
    pub fn open() -> Answer<Gpu> {
        let functions = loaded()?;
        let profile = profile(functions)?;
        Ok(Gpu {
            // As NVIDIA's library on an Orin says it, and programs compare it: "Orin (nvgpu)".
            name: format!("{} (nvgpu)", of_array(&profile.name).split(" (").next().unwrap_or_default()),
            uuid: uuid(&profile.uuid),
            uuid_bytes: profile.uuid,
            capability: (profile.sm_version >> 8, profile.sm_version & 0xff),
            sms: profile.compute_units,
            highest_clock: profile.max_clock_hz,
            driver: driver(functions)?,
        })
    }
}

fn loaded() -> Answer<&'static Functions> {
    library().map_err(|why| {
        tegrarm_output::say_as("libnvidia-ml.so.1 of libtegrarm", why);
        NVML_ERROR_LIBRARY_NOT_FOUND
    })
}

fn profile(functions: &Functions) -> Answer<tegrarm_device_profile> {
    // SAFETY: a structure of numbers may be zero.
    let mut profile: tegrarm_device_profile = unsafe { MaybeUninit::zeroed().assume_init() };
    profile.size = size_of_val(&profile);
    // SAFETY: the structure is as large as it says.
    match unsafe { (functions.tegrarm_device_profile)(0, &mut profile) } {
        NV_OK => Ok(profile),
        status => Err(of_status(status)),
    }
}

/// The version, from a client of the Resource Manager that lives for this question.
fn driver(functions: &Functions) -> Answer<String> {
    let mut client = 0;
    // SAFETY: the handle is a variable of ours, and the class needs no parameters.
    let status = unsafe { (functions.rm_alloc)(0, 0, &mut client, ROOT_CLIENT, std::ptr::null_mut(), 0) };
    if status != NV_OK {
        return Err(of_status(status));
    }
    let mut version = BuildVersion { texts: [[0; 256]; 4], numbers: [0; 2] };
    let size = size_of_val(&version) as u32;
    // SAFETY: the parameters are `size` bytes of ours, and the client is the one that was just made.
    let status = unsafe {
        let status = (functions.rm_control)(client, client, GET_BUILD_VERSION_V2, (&raw mut version).cast(), size);
        (functions.rm_free)(client, 0, client);
        status
    };
    let text = version.texts[0].iter().map(|byte| *byte as char).take_while(|byte| *byte != '\0').collect::<String>();
    if status != NV_OK {
        Err(of_status(status))
    } else if text.is_empty() {
        Err(NVML_ERROR_NOT_FOUND)
    } else {
        Ok(text)
    }
}

fn uuid(bytes: &[u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |from: usize, to: usize| &hex[from..to];
    format!("GPU-{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

/// What changes. What the system does not say is `None`.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Hertz: now, and the limits that the system has set.
    pub clock: Option<u64>,
    /// See `clock`.
    pub lowest_clock: Option<u64>,
    /// See `clock`.
    pub highest_clock: Option<u64>,
    /// Bytes that can be allocated, and all bytes.
    pub memory_available: u64,
    /// See `memory_available`.
    pub memory_total: u64,
    /// Thousandths of the time in which the GPU was busy.
    pub load: Option<u32>,
    /// Thousandths of a degree: now, where clocks are lowered, where the system switches off.
    pub temperature: Option<i32>,
    /// See `temperature`.
    pub slowdown: Option<i32>,
    /// See `temperature`.
    pub shutdown: Option<i32>,
    /// Milliwatts.
    pub power: Option<u64>,
}

impl State {
    /// Asks the library, which reads files.
    pub fn read(index: u32) -> Answer<State> {
        let functions = loaded()?;
        // SAFETY: a structure of numbers may be zero.
        let mut now: tegrarm_device_state = unsafe { MaybeUninit::zeroed().assume_init() };
        now.size = size_of_val(&now);
        // SAFETY: the structure is as large as it says.
        match unsafe { (functions.tegrarm_gpu_state)(index, &mut now) } {
            NV_OK => Ok(State::of(&now)),
            status => Err(of_status(status)),
        }
    }

    fn of(now: &tegrarm_device_state) -> State {
        let hertz = |value: u64| (value != 0).then_some(value);
        let degrees = |value: i32| (value != TEGRARM_TEMPERATURE_UNKNOWN).then_some(value);
        State {
            clock: hertz(now.clock_hz),
            lowest_clock: hertz(now.min_clock_hz),
            highest_clock: hertz(now.max_clock_hz),
            memory_available: now.memory_available,
            memory_total: now.memory_total,
            load: (now.load != TEGRARM_LOAD_UNKNOWN).then_some(now.load),
            temperature: degrees(now.temperature),
            slowdown: degrees(now.temperature_slowdown),
            shutdown: degrees(now.temperature_shutdown),
            power: (now.power != TEGRARM_POWER_UNKNOWN).then_some(now.power),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_has_the_form_of_nvml() {
        let bytes = std::array::from_fn(|at| at as u8 * 17);
        assert_eq!(uuid(&bytes), "GPU-00112233-4455-6677-8899-aabbccddeeff");
    }
}
