//! The driver as a whole: cuInit, versions, names of errors.

use crate::api;
use crate::context::begin_anew;
use crate::machine;
use crate::numbers::*;
use crate::result::{Answer, Error, fail};

/// The version that cuDriverGetVersion gives: that of the newest header that the table was made of.
pub const VERSION: i32 = 13050;

pub mod rows {
    //! The functions of the driver as a whole.

    use super::*;
    use crate::pointers::Ptr;
    use crate::result::{meaning, name};
    use std::ffi::c_char;

    pub fn cuInit(flags: u32) -> Answer {
        if flags != 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "the flags {flags:#x} of cuInit");
        }
        if let Err(why) = api::api() {
            // This is said without being asked for, because everything else fails after it.
            crate::log::say(crate::log::Level::Notice, why);
            return Err(Error::plain(CUDA_ERROR_SYSTEM_NOT_READY));
        }
        match machine::count() {
            Ok(0) => fail!(CUDA_ERROR_NO_DEVICE, "there is no GPU"),
            Ok(_) => {
                if api::start() {
                    // NVIDIA's driver stays unusable in a child. Here cuInit begins anew, without what the parent had.
                    begin_anew();
                }
                api::started();
            }
            Err(error) => {
                crate::log::say(crate::log::Level::Notice, error.text.as_deref().unwrap_or("the GPU cannot be opened"));
                return Err(error);
            }
        }
        Ok(())
    }

    pub fn cuDriverGetVersion(version: Ptr<i32>) -> Answer {
        version.set(VERSION, "driverVersion")
    }

    pub fn cuGetErrorName(error: u32, text: Ptr<usize>) -> Answer {
        text.set(name(error).map_or(0, |text| text.as_ptr() as usize), "pStr")?;
        if name(error).is_none() {
            fail!(CUDA_ERROR_INVALID_VALUE, "{error} is not a value of CUresult");
        }
        Ok(())
    }

    pub fn cuGetErrorString(error: u32, text: Ptr<usize>) -> Answer {
        text.set(meaning(error).map_or(0, |text| text.as_ptr() as usize), "pStr")?;
        if meaning(error).is_none() {
            fail!(CUDA_ERROR_INVALID_VALUE, "{error} is not a value of CUresult");
        }
        Ok(())
    }

    pub fn cuProfilerStart() -> Answer {
        crate::context::current().map(drop)
    }

    pub fn cuProfilerStop() -> Answer {
        crate::context::current().map(drop)
    }

    /// Since CUDA 12.0, this is what NVIDIA's driver returns as well, whatever the arguments are.
    pub fn cuProfilerInitialize(_config: Ptr<c_char>, _output: Ptr<c_char>, _mode: u32) -> Answer {
        fail!(CUDA_ERROR_NOT_SUPPORTED, "this profiler ended with CUDA 12.0")
    }
}
