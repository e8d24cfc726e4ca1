//! The names of methods, of the fields of their data and of the values of these fields, from the registries.

use std::fmt;
use tegrarm_abi::layout::{Const, NamedBits};
use tegrarm_abi::methods::compute::{COMPUTE_BITS, COMPUTE_CONSTS};
use tegrarm_abi::methods::copy::{COPY_BITS, COPY_CONSTS};
use tegrarm_abi::methods::host::{HOST_BITS, HOST_CONSTS};

/// A class whose methods have names.
pub(super) struct Class {
    /// The text that every name begins with.
    prefix: &'static str,
    consts: &'static [Const],
    bits: &'static [NamedBits],
}

pub(super) static HOST: Class = Class { prefix: "NVC56F_", consts: HOST_CONSTS, bits: HOST_BITS };
pub(super) static COPY: Class = Class { prefix: "NVC6B5_", consts: COPY_CONSTS, bits: COPY_BITS };
pub(super) static COMPUTE: Class = Class { prefix: "NVC6C0_", consts: COMPUTE_CONSTS, bits: COMPUTE_BITS };

/// One field of a data word.
pub(super) struct Field {
    name: &'static str,
    value: u32,
    meaning: Option<&'static str>,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Field { name, value, meaning } = self;
        match meaning {
            Some(meaning) => write!(f, "{name}={meaning}"),
            None if *value < 10 => write!(f, "{name}={value}"),
            None => write!(f, "{name}={value:#x}"),
        }
    }
}

/// `name` without `prefix` and the underscore after it.
fn below<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    name.strip_prefix(prefix)?.strip_prefix('_')
}

impl Class {
    /// The method at a byte offset. The registries also hold names of values, which are no methods.
    pub(super) fn method(&self, offset: u32) -> Option<&'static str> {
        let named = self.consts.iter().filter(|c| c.value == i128::from(offset)).map(|c| c.name);
        named.filter(|name| self.is_method(name)).find_map(|name| name.strip_prefix(self.prefix))
    }

    /// Whether a name is a method's. The data of a method has fields, and the name of a method is not part of a field's
    /// name.
    fn is_method(&self, name: &str) -> bool {
        self.bits.iter().any(|b| below(b.name, name).is_some())
            && self.bits.iter().all(|b| below(name, b.name).is_none())
    }

    /// The fields of a method's data, with their values in `word`.
    pub(super) fn fields(&self, method: &str, word: u32) -> Vec<Field> {
        let full = format!("{}{method}", self.prefix);
        let mine =
            self.bits.iter().filter(|b| below(b.name, &full).is_some() && !self.belongs_to_longer(b.name, &full));
        mine.map(|b| {
            let value = b.bits.of(word);
            let name = below(b.name, &full).unwrap_or(b.name);
            Field { name, value, meaning: self.meaning(b.name, value) }
        })
        .collect()
    }

    /// Whether a field belongs to a method with a longer name: `PM_TRIGGER_WFI_V` is a field of `PM_TRIGGER_WFI` and
    /// not of `PM_TRIGGER`.
    fn belongs_to_longer(&self, field: &str, method: &str) -> bool {
        let longer = |c: &&Const| c.name.len() > method.len() && below(field, c.name).is_some();
        self.consts.iter().filter(longer).any(|c| self.is_method(c.name))
    }

    fn meaning(&self, field: &str, value: u32) -> Option<&'static str> {
        let values = self.consts.iter().filter(|c| c.value == i128::from(value));
        values.filter_map(|c| below(c.name, field)).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_told_from_values_and_sizes() {
        assert_eq!(HOST.method(8), Some("NOP"));
        assert_eq!(HOST.method(0x6c), Some("SEM_EXECUTE"));
        assert_eq!(HOST.method(0x78), Some("WFI"));
        assert_eq!(COMPUTE.method(0), Some("SET_OBJECT"));
        assert_eq!(COMPUTE.method(0x2b4), Some("SEND_PCAS_A"));
        assert_eq!(COPY.method(0x300), Some("LAUNCH_DMA"));
        assert_eq!(COPY.method(1), None);
    }

    #[test]
    fn fields_have_names_and_values_meanings() {
        let text: Vec<String> = HOST.fields("SEM_EXECUTE", 1).iter().map(Field::to_string).collect();
        assert!(text.contains(&"OPERATION=RELEASE".to_owned()), "{text:?}");
        assert!(COMPUTE.fields("PM_TRIGGER", 7).iter().all(|f| f.to_string() == "V=7"));
    }
}
