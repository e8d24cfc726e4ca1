//! The UVM calls that say where pages should be. A Tegra has only one memory, so there is nothing to choose.

use super::Space;
use super::ranges::{check_pages, check_reach};
use crate::files::call::{Call, Fail};
use tegrarm_abi::rm::status::*;
use tegrarm_abi::rm::uvm::*;
use tegrarm_rm::rm::params::{edit, get};
use tegrarm_rm::rm::user;
use tegrarm_rm::status::{RmResult, fail};
use tegrarm_rm::tegra::PAGE;

pub fn create_range_group(_call: &Call, space: &mut Space, arg: &mut [u8]) -> Result<(), Fail> {
    let id = space.next_group;
    space.next_group += 1;
    space.groups.insert(id);
    edit(arg, |p: &mut UVM_CREATE_RANGE_GROUP_PARAMS| p.rangeGroupId = id);
    Ok(())
}

fn check_group(space: &Space, id: u64) -> RmResult<()> {
    if !space.groups.contains(&id) {
        fail!(NV_ERR_OBJECT_NOT_FOUND, "there is no range group {id}");
    }
    Ok(())
}

pub fn destroy_range_group(_call: &Call, space: &mut Space, arg: &mut [u8]) -> Result<(), Fail> {
    let p: UVM_DESTROY_RANGE_GROUP_PARAMS = get(arg);
    check_group(space, p.rangeGroupId)?;
    space.groups.remove(&p.rangeGroupId);
    Ok(())
}

/// Puts addresses into a range group. Group 0 means no group.
pub fn set_range_group(_call: &Call, space: &mut Space, arg: &mut [u8]) -> Result<(), Fail> {
    let p: UVM_SET_RANGE_GROUP_PARAMS = get(arg);
    if p.rangeGroupId != 0 {
        check_group(space, p.rangeGroupId)?;
    }
    Ok(())
}

/// Answers that the GPU cannot use pageable memory: nobody can supply a missing page after the GPU has faulted on it.
pub fn pageable_access(_call: &Call, _space: &mut Space, arg: &mut [u8]) -> Result<(), Fail> {
    edit(arg, |p: &mut UVM_PAGEABLE_MEM_ACCESS_PARAMS| p.pageableMemAccess = 0);
    Ok(())
}

pub fn pageable_access_on_gpu(_call: &Call, space: &mut Space, arg: &mut [u8]) -> Result<(), Fail> {
    let p: UVM_PAGEABLE_MEM_ACCESS_ON_GPU_PARAMS = get(arg);
    space.check_gpu(&p.gpu_uuid)?;
    edit(arg, |p: &mut UVM_PAGEABLE_MEM_ACCESS_ON_GPU_PARAMS| p.pageableMemAccess = 0);
    Ok(())
}

/// Touches every page, so that the kernel supplies it.
pub fn populate_pageable(_call: &Call, _space: &mut Space, arg: &mut [u8]) -> Result<(), Fail> {
    let p: UVM_POPULATE_PAGEABLE_PARAMS = get(arg);
    check_pages(p.base, p.length)?;
    for page in (p.base..p.base + p.length).step_by(PAGE as usize) {
        user::read(page, &mut [0]).map_err(|e| e.with_status(NV_ERR_INVALID_ADDRESS))?;
    }
    Ok(())
}

pub fn validate_va_range(_call: &Call, _space: &mut Space, arg: &mut [u8]) -> Result<(), Fail> {
    let p: UVM_VALIDATE_VA_RANGE_PARAMS = get(arg);
    check_pages(p.base, p.length)?;
    Ok(check_reach(p.base, p.length)?)
}

/// Answers a migration: the pages are already where they should be. A semaphore that announces the end is released at
/// once.
pub fn migrate(_call: &Call, _space: &mut Space, arg: &mut [u8]) -> Result<(), Fail> {
    let p: UVM_MIGRATE_PARAMS = get(arg);
    if p.flags & UVM_MIGRATE_FLAG_ASYNC != 0 && p.semaphoreAddress != 0 {
        user::write(p.semaphoreAddress, &p.semaphorePayload.to_le_bytes())?;
    }
    Ok(())
}
