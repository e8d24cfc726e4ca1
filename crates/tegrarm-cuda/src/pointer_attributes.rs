//! What a pointer is.

use crate::allocations::{Allocation, Kind, find, find_pointer};
use crate::context::current;
use crate::numbers::*;
use crate::result::{Answer, fail};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The value of an attribute, as wide as CUDA writes it.
enum Value {
    /// 32 bits.
    Word(u32),
    /// 64 bits.
    Long(u64),
}

fn found(address: u64) -> Option<(Arc<Allocation>, u64)> {
    find(address).or_else(|| find_pointer(address as usize))
}

/// The value for a pointer into memory.
fn value(memory: &Allocation, offset: u64, attribute: u32) -> Answer<Value> {
    let host = memory.kind.is_host();
    let managed = memory.kind.is_managed();
    let (start, size, id) = memory.piece(offset);
    let mapping = memory.mappings.as_ref().and_then(|mappings| mappings.find(offset)).map(|(_, mapping)| mapping);
    Ok(match attribute {
        CU_POINTER_ATTRIBUTE_CONTEXT => Value::Long(memory.context as u64),
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE => Value::Word(if host { CU_MEMORYTYPE_HOST } else { CU_MEMORYTYPE_DEVICE }),
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER => Value::Long(memory.address + offset),
        CU_POINTER_ATTRIBUTE_HOST_POINTER if host || managed => Value::Long(memory.pointer as u64 + offset),
        CU_POINTER_ATTRIBUTE_HOST_POINTER => {
            fail!(CUDA_ERROR_INVALID_VALUE, "memory of the device has no host pointer")
        }
        CU_POINTER_ATTRIBUTE_SYNC_MEMOPS => Value::Word(memory.sync_memops.load(Ordering::Relaxed).into()),
        CU_POINTER_ATTRIBUTE_BUFFER_ID => Value::Long(id),
        CU_POINTER_ATTRIBUTE_IS_MANAGED => Value::Word(managed.into()),
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => Value::Word(0),
        CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE => Value::Word(0),
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR => Value::Long(start),
        CU_POINTER_ATTRIBUTE_RANGE_SIZE => Value::Long(size),
        CU_POINTER_ATTRIBUTE_MAPPED => Value::Word(1),
        CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES => {
            Value::Long(mapping.map_or(0, |mapping| mapping.memory.properties.handle_types.into()))
        }
        CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE => Value::Word(0),
        // The numbers of `CUmemAccess_flags` are the same.
        CU_POINTER_ATTRIBUTE_ACCESS_FLAGS => {
            Value::Word(mapping.map_or(CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE, |mapping| mapping.access))
        }
        CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE => {
            Value::Long(if let Kind::Pool(pool) = memory.kind { pool as u64 } else { 0 })
        }
        CU_POINTER_ATTRIBUTE_MAPPING_SIZE => Value::Long(size),
        CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR => Value::Long(start),
        CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID => Value::Long(id),
        CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE => Value::Word(0),
        CU_POINTER_ATTRIBUTE_P2P_TOKENS => fail!(CUDA_ERROR_NOT_SUPPORTED, "CU_POINTER_ATTRIBUTE_P2P_TOKENS"),
        other => fail!(CUDA_ERROR_INVALID_VALUE, "the attribute {other} of a pointer"),
    })
}

pub mod rows {
    //! The functions of pointers.

    use super::*;
    use crate::pointers::{Ptr, at};
    use std::ffi::c_void;

    fn write(data: Ptr<c_void>, value: Value) -> Answer {
        match value {
            Value::Word(number) => data.cast::<u32>().set(number, "data"),
            Value::Long(number) => data.cast::<u64>().set(number, "data"),
        }
    }

    pub fn cuPointerGetAttribute(data: Ptr<c_void>, attribute: u32, address: u64) -> Answer {
        data.present("data")?;
        let Some((memory, offset)) = found(address) else {
            fail!(CUDA_ERROR_INVALID_VALUE, "{address:#x} is not in memory that was allocated or registered")
        };
        write(data, value(&memory, offset, attribute)?)
    }

    /// For a pointer that is not known, every attribute that can be asked for is 0, as CUDA defines it.
    pub fn cuPointerGetAttributes(count: u32, attributes: Ptr<u32>, data: Ptr<usize>, address: u64) -> Answer {
        current()?;
        let attributes = attributes.list(count as usize, "attributes")?;
        let data = data.list(count as usize, "data")?;
        for (attribute, to) in attributes.into_iter().zip(data) {
            let to: Ptr<c_void> = at(to);
            let wide = matches!(
                attribute,
                CU_POINTER_ATTRIBUTE_CONTEXT
                    | CU_POINTER_ATTRIBUTE_DEVICE_POINTER
                    | CU_POINTER_ATTRIBUTE_HOST_POINTER
                    | CU_POINTER_ATTRIBUTE_BUFFER_ID
                    | CU_POINTER_ATTRIBUTE_RANGE_START_ADDR
                    | CU_POINTER_ATTRIBUTE_RANGE_SIZE
                    | CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES
                    | CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE
                    | CU_POINTER_ATTRIBUTE_MAPPING_SIZE
                    | CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR
                    | CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID
            );
            let nothing = match attribute {
                CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => Value::Word(-2i32 as u32),
                _ if wide => Value::Long(0),
                _ => Value::Word(0),
            };
            match found(address) {
                Some((memory, offset)) => write(to, value(&memory, offset, attribute).unwrap_or(nothing))?,
                None => write(to, nothing)?,
            }
        }
        Ok(())
    }

    pub fn cuPointerSetAttribute(value: Ptr<c_void>, attribute: u32, address: u64) -> Answer {
        if attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS {
            fail!(CUDA_ERROR_INVALID_VALUE, "the attribute {attribute} cannot be set");
        }
        let wanted = value.cast::<u32>().get("value")?;
        crate::allocations::get(address)?.0.sync_memops.store(wanted != 0, Ordering::Relaxed);
        Ok(())
    }
}
