//! Controls that list the engines.

use super::row::ControlCall;
use crate::rm::params::{edit, get, put};
use crate::rm::user;
use crate::status::{RmResult, fail};
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::ctrl_2080::*;
use tegrarm_abi::rm::status::*;

/// RM's engine types, from nvgpu's engine list. Copy engines are numbered in the order in which nvgpu lists them.
fn engine_types(call: &ControlCall) -> RmResult<Vec<u32>> {
    let mut types = Vec::new();
    let mut copies = 0;
    for engine in call.client.gpu.engines()? {
        match engine.engine_id {
            NVGPU_GPU_ENGINE_ID_GR => types.push(NV2080_ENGINE_TYPE_GR0 + engine.engine_instance),
            NVGPU_GPU_ENGINE_ID_GR_COPY | NVGPU_GPU_ENGINE_ID_ASYNC_COPY if copies < 10 => {
                types.push(NV2080_ENGINE_TYPE_COPY0 + copies);
                copies += 1;
            }
            _ => {}
        }
    }
    types.sort_unstable();
    Ok(types)
}

fn copy_engines(call: &ControlCall) -> RmResult<Vec<u32>> {
    let copies = NV2080_ENGINE_TYPE_COPY0..=NV2080_ENGINE_TYPE_COPY9;
    Ok(engine_types(call)?.into_iter().filter(|t| copies.contains(t)).collect())
}

pub fn list(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NV2080_CTRL_GPU_GET_ENGINES_PARAMS = get(params);
    let types = engine_types(call)?;
    if p.engineList != 0 {
        if (p.engineCount as usize) < types.len() {
            fail!(NV_ERR_BUFFER_TOO_SMALL, "engineCount {}: there are {}", p.engineCount, types.len());
        }
        user::write_list(p.engineList, &types)?;
    }
    p.engineCount = types.len() as u32;
    put(params, &p);
    Ok(())
}

pub fn list_v2(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let types = engine_types(call)?;
    edit(params, |p: &mut NV2080_CTRL_GPU_GET_ENGINES_V2_PARAMS| {
        p.engineList.fill(0);
        for (to, from) in p.engineList.iter_mut().zip(&types) {
            *to = *from;
        }
        p.engineCount = types.len() as u32;
    });
    Ok(())
}

pub fn pce_mask(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NV2080_CTRL_CE_GET_CE_PCE_MASK_PARAMS = get(params);
    let copies = copy_engines(call)?;
    let Some(at) = copies.iter().position(|t| *t == p.ceEngineType) else {
        fail!(NV_ERR_INVALID_ARGUMENT, "engine type {:#x} is none of the copy engines {copies:x?}", p.ceEngineType);
    };
    p.pceMask = 1 << at;
    put(params, &p);
    Ok(())
}

pub fn copy_caps(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let copies = copy_engines(call)?.len() as u64;
    edit(params, |p: &mut NV2080_CTRL_CE_GET_ALL_CAPS_PARAMS| {
        p.capsTbl = [[0; 64]; 2];
        p.present = (1 << copies) - 1;
    });
    Ok(())
}
