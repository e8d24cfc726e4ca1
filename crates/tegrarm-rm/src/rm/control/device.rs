//! Controls of a device: classes, channels, VA capabilities.

use super::row::ControlCall;
use crate::rm::object::Kind;
use crate::rm::params::{edit, get, put, set_word};
use crate::rm::{classes, user};
use crate::status::{RmResult, fail};
use crate::tegra::PAGE;
use tegrarm_abi::rm::ctrl_0080::*;
use tegrarm_abi::rm::status::*;

/// The length of the longest table of capability bytes.
const MAX_CAPS: usize = 256;

pub fn class_list(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS = get(params);
    let mut list = Vec::with_capacity(classes::CLASSES.len());
    list.extend(classes::listed());
    if p.classList != 0 {
        if (p.numClasses as usize) < list.len() {
            fail!(NV_ERR_INVALID_PARAM_STRUCT, "numClasses {}: there are {}", p.numClasses, list.len());
        }
        user::write_list(p.classList, &list)?;
    }
    p.numClasses = list.len() as u32;
    put(params, &p);
    Ok(())
}

pub fn class_list_v2(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    params.fill(0);
    let list: Vec<u32> = classes::listed().collect();
    set_word(params, 0, list.len() as u32);
    for (i, class) in list.iter().enumerate() {
        set_word(params, 4 + 4 * i, *class);
    }
    Ok(())
}

pub fn num_subdevices(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    put(params, &NV0080_CTRL_GPU_GET_NUM_SUBDEVICES_PARAMS { numSubDevices: 1 });
    Ok(())
}

/// Answers `{capsTblSize, capsTbl}`, which all capability controls of the first generation share. No bit is set.
pub fn no_caps(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NV0080_CTRL_GR_GET_CAPS_PARAMS = get(params);
    let size = p.capsTblSize as usize;
    if size > MAX_CAPS {
        fail!(NV_ERR_INVALID_ARGUMENT, "capsTblSize {size}: at most {MAX_CAPS}");
    }
    if p.capsTbl == 0 {
        fail!(NV_ERR_INVALID_POINTER, "capsTbl is NULL");
    }
    user::write(p.capsTbl, &[0u8; MAX_CAPS][..size])
}

/// Translates channel handles to channel numbers.
pub fn channel_list(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NV0080_CTRL_FIFO_GET_CHANNELLIST_PARAMS = get(params);
    if p.numChannels == 0 || p.numChannels > 4096 {
        fail!(NV_ERR_INVALID_ARGUMENT, "{} channels", p.numChannels);
    }
    let handles: Vec<u32> = user::read_list(p.pChannelHandleList, p.numChannels as usize)?;
    let numbers = handles.iter().map(|handle| {
        let object = call.client.object(*handle)?;
        match &object.kind {
            Kind::Channel(channel) => Ok(channel.id()),
            _ => fail!(NV_ERR_INVALID_CHANNEL, "{object} is no channel"),
        }
    });
    user::write_list(p.pChannelList, &numbers.collect::<RmResult<Vec<u32>>>()?)
}

pub fn va_caps(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let c = call.client.gpu.characteristics();
    // nvgpu says 0 where big pages are switched off. RM's clients want to know the size of a big page in that case too.
    let big = if c.big_page_size == 0 { 64 << 10 } else { c.big_page_size };
    let sizes = PAGE | u64::from(c.available_big_page_sizes);
    edit(params, |p: &mut NV0080_CTRL_DMA_ADV_SCHED_GET_VA_CAPS_PARAMS| {
        let space = p.hVASpace;
        *p = get(&[]);
        p.hVASpace = space;
        p.vaBitCount = u32::from(c.gpu_va_bit_count);
        // A page directory entry of the last level covers 2 MiB.
        p.pdeCoverageBitCount = 21;
        (p.bigPageSize, p.compressionPageSize) = (big, c.compression_page_size);
        (p.dualPageTableSupported, p.idealVRAMPageSize) = (1, PAGE as u32);
        (p.vaRangeLo, p.supportedPageSizeMask) = (crate::tegra::USER_VA_START, sizes);
    });
    Ok(())
}
