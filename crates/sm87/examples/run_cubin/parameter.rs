//! Parameters, as the command line gives them.

use super::machine::Buffer;
use std::str::FromStr;

/// The types of numbers.
#[derive(Clone, Copy)]
enum Type {
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

impl Type {
    const ALL: [(&str, Type); 6] = [
        ("i32", Type::I32),
        ("u32", Type::U32),
        ("i64", Type::I64),
        ("u64", Type::U64),
        ("f32", Type::F32),
        ("f64", Type::F64),
    ];

    fn size(self) -> usize {
        match self {
            Type::I32 | Type::U32 | Type::F32 => 4,
            Type::I64 | Type::U64 | Type::F64 => 8,
        }
    }

    fn parse(self, text: &str) -> Result<Vec<u8>, String> {
        fn bytes<T: FromStr, const N: usize>(text: &str, of: fn(T) -> [u8; N]) -> Option<Vec<u8>> {
            text.parse().ok().map(|x| of(x).to_vec())
        }
        let found = match self {
            Type::I32 => bytes(text, i32::to_le_bytes),
            Type::U32 => bytes(text, u32::to_le_bytes),
            Type::I64 => bytes(text, i64::to_le_bytes),
            Type::U64 => bytes(text, u64::to_le_bytes),
            Type::F32 => bytes(text, f32::to_le_bytes),
            Type::F64 => bytes(text, f64::to_le_bytes),
        };
        found.ok_or(format!("{text:?} does not fit its type"))
    }

    fn show(self, bytes: &[u8]) -> String {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let (low, all) = (u64::from_le_bytes(wide) as u32, u64::from_le_bytes(wide));
        match self {
            Type::I32 => (low as i32).to_string(),
            Type::U32 => low.to_string(),
            Type::I64 => (all as i64).to_string(),
            Type::U64 => all.to_string(),
            Type::F32 => f32::from_bits(low).to_string(),
            Type::F64 => f64::from_bits(all).to_string(),
        }
    }
}

/// A kernel parameter.
pub struct Parameter {
    ty: Type,
    /// The number, or the value of a buffer's items. If it is not given, the items count from 0.
    value: Option<Vec<u8>>,
    /// The number of items of the buffer, if the parameter is a buffer.
    items: Option<usize>,
}

impl FromStr for Parameter {
    type Err = String;

    fn from_str(text: &str) -> Result<Parameter, String> {
        let unknown = || format!("{text:?} is neither a number like i32=7 nor a buffer like f32x256");
        let (what, value) = text.split_once('=').map_or((text, None), |(what, value)| (what, Some(value)));
        let (name, items) = what.split_once('x').map_or((what, None), |(name, items)| (name, Some(items)));
        let (_, ty) = Type::ALL.into_iter().find(|(known, _)| *known == name).ok_or_else(unknown)?;
        let value = value.map(|value| ty.parse(value)).transpose()?;
        let items = items.map(str::parse).transpose().map_err(|_| unknown())?;
        if value.is_none() && items.is_none() { Err(unknown()) } else { Ok(Parameter { ty, value, items }) }
    }
}

impl Parameter {
    /// The first contents of its buffer, if the parameter is a buffer.
    pub fn contents(&self) -> Option<Vec<u8>> {
        let item = |i: usize| match &self.value {
            Some(value) => value.clone(),
            None => self.ty.parse(&i.to_string()).expect("every type has small numbers"),
        };
        self.items.map(|items| (0..items).flat_map(item).collect())
    }

    /// Its bytes in the parameter bank.
    pub fn value(&self, buffer: Option<&Buffer>) -> Vec<u8> {
        match buffer {
            Some(buffer) => buffer.address().to_le_bytes().to_vec(),
            None => self.value.clone().unwrap_or_default(),
        }
    }

    /// The first numbers of a buffer, and `...` if there are more.
    pub fn show(&self, bytes: &[u8], most: usize) -> Vec<String> {
        let items = bytes.chunks_exact(self.ty.size());
        let more = items.len() > most;
        items.take(most).map(|item| self.ty.show(item)).chain(more.then(|| "...".to_owned())).collect()
    }
}
