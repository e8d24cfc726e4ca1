//! Parameter structures as bytes, and how handlers read and write them.

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Reads the structure at the start of `bytes`. Fields behind the end of `bytes` are zero.
pub fn get<T: FromBytes + IntoBytes>(bytes: &[u8]) -> T {
    let mut value = T::new_zeroed();
    let len = bytes.len().min(size_of::<T>());
    value.as_mut_bytes()[..len].copy_from_slice(&bytes[..len]);
    value
}

/// Writes the structure back, up to the end of `bytes`.
pub fn put<T: IntoBytes + Immutable>(bytes: &mut [u8], value: &T) {
    let len = bytes.len().min(size_of::<T>());
    bytes[..len].copy_from_slice(&value.as_bytes()[..len]);
}

/// Reads the structure, changes it and writes it back.
pub fn edit<T: FromBytes + IntoBytes + Immutable>(bytes: &mut [u8], change: impl FnOnce(&mut T)) {
    let mut value = get(bytes);
    change(&mut value);
    put(bytes, &value);
}

/// The `u32` at a byte offset. It is 0 beyond the end.
#[inline]
pub fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes(b.try_into().expect("four bytes")))
}

/// The `u64` at a byte offset. It is 0 beyond the end.
#[inline]
pub fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

/// Writes a `u32` at a byte offset, if there is room.
#[inline]
pub fn set_word(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(room) = bytes.get_mut(at..at + 4) {
        room.copy_from_slice(&value.to_le_bytes());
    }
}

/// Writes text and a NUL into a fixed field. Text that is too long is cut.
pub fn set_text(field: &mut [u8], text: &str) {
    field.fill(0);
    let len = text.len().min(field.len().saturating_sub(1));
    field[..len].copy_from_slice(&text.as_bytes()[..len]);
}
