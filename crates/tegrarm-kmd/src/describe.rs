//! Describes the bytes of an ioctl by name and fields, for recordings, traces and messages.
//!
//! The names come from the registries of `tegrarm-abi`. The ioctls of r36 are searched first, and then those whose
//! exact number only r35 or r39 has. A number that is in no registry is described by itself and its raw bytes.

use crate::descriptors;
use crate::{Arg, Errno, Node};
use std::borrow::Cow;
use std::fmt;
use tegrarm_abi::layout::{FieldLayout, Ioctl};

/// The contents of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// An unsigned integer.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// An array or a nested structure, as bytes.
    Bytes(Vec<u8>),
    /// A number in words, for people.
    Text(String),
}

impl fmt::Display for Value {
    /// Small numbers are written in decimal, large ones and bytes in hexadecimal, and a run of zero bytes as `0…`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Unsigned(v) if *v < 1024 => write!(f, "{v}"),
            Value::Unsigned(v) => write!(f, "{v:#x}"),
            Value::Signed(v) => write!(f, "{v}"),
            Value::Bytes(bytes) if bytes.iter().all(|b| *b == 0) => f.write_str("0…"),
            Value::Bytes(bytes) => f.write_str(&hex(bytes)),
            Value::Text(text) => f.write_str(text),
        }
    }
}

/// One field of an argument, with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The upstream name.
    pub name: Cow<'static, str>,
    /// The offset from the start of the argument in bytes.
    pub offset: usize,
    /// The contents.
    pub value: Value,
}

/// The registry entry of a request.
pub fn ioctl(node: Node, request: u32) -> Option<&'static Ioctl> {
    tegrarm_abi::registry::ioctl(node, request)
}

/// The upstream name of a request, or its number in hexadecimal.
pub fn name(node: Node, request: u32) -> Cow<'static, str> {
    match ioctl(node, request) {
        Some(known) => Cow::Borrowed(known.name),
        None => Cow::Owned(format!("{request:#010x}")),
    }
}

/// The fields of an argument without padding. Bytes that no structure describes are one field: `value`, a number, for
/// up to eight bytes, and `bytes` for more.
pub fn fields(node: Node, request: u32, bytes: &[u8]) -> Vec<Field> {
    match ioctl(node, request) {
        Some(known) if !known.arg.name.is_empty() => {
            let named = known.arg.fields.iter().filter(|f| !f.name.starts_with("_pad"));
            named.filter_map(|f| field(request, f, bytes)).collect()
        }
        _ if bytes.is_empty() => Vec::new(),
        _ => vec![whole(bytes)],
    }
}

fn field(request: u32, f: &FieldLayout, bytes: &[u8]) -> Option<Field> {
    let bytes = bytes.get(f.offset..f.offset + f.size)?;
    // If this request uses a union member as a descriptor, the field gets the name of the descriptor.
    let name = descriptors::of(request).find(|d| d.offset == f.offset).map_or(f.name, |d| d.name);
    Some(Field { name: Cow::Borrowed(name), offset: f.offset, value: value(f.ty, bytes) })
}

fn whole(bytes: &[u8]) -> Field {
    match bytes.len() {
        1..=8 => Field { name: "value".into(), offset: 0, value: Value::Unsigned(unsigned(bytes)) },
        _ => Field { name: "bytes".into(), offset: 0, value: Value::Bytes(bytes.to_vec()) },
    }
}

fn value(ty: &str, bytes: &[u8]) -> Value {
    match ty {
        "u8" | "u16" | "u32" | "u64" => Value::Unsigned(unsigned(bytes)),
        "i8" | "i16" | "i32" | "i64" => {
            let unused = 64 - 8 * bytes.len() as u32;
            Value::Signed((unsigned(bytes) << unused) as i64 >> unused)
        }
        _ => Value::Bytes(bytes.to_vec()),
    }
}

/// Reads up to eight little-endian bytes.
pub(crate) fn unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b))
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut out, b| {
        write!(out, "{b:02x}").expect("a string takes everything");
        out
    })
}

/// Converts hexadecimal digits to bytes. It is the opposite of [`hex`].
pub(crate) fn unhex(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || !digits.is_ascii() {
        return None;
    }
    (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).ok()).collect()
}

/// The fields of either kind of argument.
pub fn argument(node: Node, request: u32, arg: &Arg<'_>) -> Vec<Field> {
    match arg {
        Arg::Bytes(bytes) => fields(node, request, bytes),
        Arg::Value(0) => Vec::new(),
        Arg::Value(v) => vec![Field { name: "value".into(), offset: 0, value: Value::Unsigned(*v) }],
    }
}

/// The fields whose bits have names. Each row has the start of the ioctl's name, the field, and the start of the names
/// of its bits. The name of an ioctl of r35 or r39 is the name of r36's, followed by the release.
const FLAGS: &[(&str, &str, &str)] = &[
    ("NVGPU_IOCTL_CHANNEL_SETUP_BIND", "flags", "NVGPU_CHANNEL_SETUP_BIND_FLAGS_"),
    ("NVGPU_IOCTL_CHANNEL_ALLOC_GPFIFO_EX", "flags", "NVGPU_ALLOC_GPFIFO_EX_FLAGS_"),
    ("NVGPU_IOCTL_CHANNEL_ALLOC_OBJ_CTX", "flags", "NVGPU_ALLOC_OBJ_FLAGS_"),
    ("NVGPU_IOCTL_CHANNEL_SUBMIT_GPFIFO", "flags", "NVGPU_SUBMIT_GPFIFO_FLAGS_"),
    ("NVGPU_AS_IOCTL_MAP_BUFFER_EX", "flags", "NVGPU_AS_MAP_BUFFER_FLAGS_"),
    ("NVGPU_AS_IOCTL_ALLOC_SPACE", "flags", "NVGPU_AS_ALLOC_SPACE_FLAGS_"),
    ("NVGPU_GPU_IOCTL_ALLOC_AS", "flags", "NVGPU_GPU_IOCTL_ALLOC_AS_FLAGS_"),
    ("NVGPU_GPU_IOCTL_OPEN_TSG", "flags", "NVGPU_GPU_IOCTL_OPEN_TSG_FLAGS_"),
    ("NVGPU_GPU_IOCTL_REGISTER_BUFFER", "flags", "NVGPU_GPU_REGISTER_BUFFER_FLAGS_"),
    ("NVGPU_GPU_IOCTL_SET_DETERMINISTIC_OPTS", "flags", "NVGPU_GPU_SET_DETERMINISTIC_OPTS_FLAGS_"),
    ("NVMAP_IOC_ALLOC", "heap_mask", "NVMAP_HEAP_"),
    ("NVMAP_IOC_ALLOC", "flags", "NVMAP_HANDLE_"),
    ("NVMAP_IOC_FROM_VA", "flags", "NVMAP_HANDLE_"),
    ("NVMAP_IOC_DUP_HANDLE", "access_flags", "NVMAP_HANDLE_"),
];

/// Pairs of bits whose value is one choice. Each row has the start of the names, the position of the bits, and the
/// names of the values.
const CHOICES: &[(&str, u32, [&str; 4])] = &[
    ("NVGPU_AS_MAP_BUFFER_FLAGS_", 10, ["", "ACCESS_READ_ONLY", "ACCESS_READ_WRITE", ""]),
    ("NVMAP_HANDLE_", 0, ["UNCACHEABLE", "WRITE_COMBINE", "INNER_CACHEABLE", "CACHEABLE"]),
];

/// The names of the bits of a field, separated by `|`, without the start that all names share. Bits without a name
/// follow as a number. The result is `None` if the bits of this field have no names.
pub fn flag_names(node: Node, request: u32, field: &Field) -> Option<String> {
    let (Value::Unsigned(value), Some(known)) = (&field.value, ioctl(node, request)) else { return None };
    let of = |row: &&(&str, &str, &str)| known.name.starts_with(row.0) && field.name == row.1;
    let (_, _, prefix) = FLAGS.iter().find(of)?;
    let (mut rest, mut names) = (*value, Vec::new());
    if let Some((_, at, choice)) = CHOICES.iter().find(|(p, ..)| p == prefix) {
        names.extend(Some(choice[(rest >> at & 3) as usize].to_owned()).filter(|name| !name.is_empty()));
        rest &= !(3 << at);
    }
    let consts = tegrarm_abi::registry::CONSTS.iter().copied().flatten().filter_map(|c| {
        let value = u64::try_from(c.value).ok().filter(|v| v.is_power_of_two())?;
        let name = c.name.strip_prefix(prefix)?;
        // These say where the bits of a choice are.
        (!name.contains("BITMASK")).then_some((name, value))
    });
    for (name, value) in consts {
        if rest & value != 0 {
            names.push(name.to_owned());
            rest &= !value;
        }
    }
    if rest != 0 || names.is_empty() {
        names.push(format!("{rest:#x}"));
    }
    Some(names.join("|"))
}

/// One line for one ioctl, as strace would write it: the arguments, the result, and the fields that the kernel changed.
///
/// `fd` is the name that the caller uses for the file: a number, or the label of a recording.
pub fn line(
    fd: &dyn fmt::Display,
    node: Node,
    request: u32,
    before: &[Field],
    after: &[Field],
    result: Result<i32, Errno>,
) -> String {
    use fmt::Write;
    let mut out = format!("{}({fd}", name(node, request));
    for f in before {
        write!(out, ", {}={}", f.name, f.value).expect("a string takes everything");
    }
    match result {
        Ok(v) => write!(out, ") = {v}"),
        Err(e) => write!(out, ") = -1 {e:?}"),
    }
    .expect("a string takes everything");
    let changed: Vec<_> = after.iter().zip(before).filter(|(a, b)| a != b).map(|(a, _)| a).collect();
    if !changed.is_empty() {
        let list: Vec<String> = changed.iter().map(|f| format!("{}={}", f.name, f.value)).collect();
        write!(out, " {{{}}}", list.join(", ")).expect("a string takes everything");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tegrarm_abi::layout::IntoBytes;
    use tegrarm_abi::nvgpu::address_space::{NVGPU_AS_IOCTL_MAP_BUFFER_EX, nvgpu_as_map_buffer_ex_args};
    use tegrarm_abi::nvgpu::r35::NVGPU_IOCTL_CHANNEL_SETUP_BIND_R35;
    use tegrarm_abi::nvgpu::tsg::NVGPU_TSG_IOCTL_BIND_CHANNEL;
    use tegrarm_abi::nvmap::{NVMAP_IOC_CREATE, NVMAP_IOC_GET_FD};

    fn map() -> nvgpu_as_map_buffer_ex_args {
        nvgpu_as_map_buffer_ex_args {
            flags: 5,
            compr_kind: -1,
            incompr_kind: 0,
            dmabuf_fd: 9,
            page_size: 4096,
            buffer_offset: 0,
            mapping_size: 0,
            offset: 0xff_0000_0000,
        }
    }

    #[test]
    fn a_structure_becomes_named_fields() {
        let fields = fields(Node::As, NVGPU_AS_IOCTL_MAP_BUFFER_EX, map().as_bytes());
        let text: Vec<String> = fields.iter().map(|f| format!("{}={}", f.name, f.value)).collect();
        assert_eq!(
            text,
            [
                "flags=5",
                "compr_kind=-1",
                "incompr_kind=0",
                "dmabuf_fd=9",
                "page_size=0x1000",
                "buffer_offset=0",
                "mapping_size=0",
                "offset=0xff00000000"
            ]
        );
    }

    #[test]
    fn names_r36_then_r35_then_the_number() {
        assert_eq!(name(Node::Channel, NVGPU_IOCTL_CHANNEL_SETUP_BIND_R35), "NVGPU_IOCTL_CHANNEL_SETUP_BIND_R35");
        assert_eq!(name(Node::Nvmap, NVMAP_IOC_CREATE), "NVMAP_IOC_CREATE");
        assert_eq!(name(Node::Ctrl, NVMAP_IOC_CREATE), "0xc0084e00");
        assert_eq!(fields(Node::Ctrl, 0xdead, &[1; 12])[0].name, "bytes");
    }

    #[test]
    fn unions_go_by_the_member_the_request_uses() {
        assert_eq!(fields(Node::Nvmap, NVMAP_IOC_CREATE, &[0; 8])[0].name, "size");
        assert_eq!(fields(Node::Nvmap, NVMAP_IOC_GET_FD, &[0; 8])[0].name, "fd");
    }

    #[test]
    fn bare_integers_are_values() {
        let fields = fields(Node::Tsg, NVGPU_TSG_IOCTL_BIND_CHANNEL, &7i32.to_le_bytes());
        assert_eq!((fields[0].name.as_ref(), &fields[0].value), ("value", &Value::Unsigned(7)));
        assert!(argument(Node::Tsg, 0x5403, &Arg::Value(0)).is_empty());
    }

    #[test]
    fn a_line_shows_only_what_changed_behind_the_result() {
        let before = fields(Node::As, NVGPU_AS_IOCTL_MAP_BUFFER_EX, map().as_bytes());
        let mut args = map();
        args.offset = 0x20_0000;
        let after = fields(Node::As, NVGPU_AS_IOCTL_MAP_BUFFER_EX, args.as_bytes());
        let text = line(&7, Node::As, NVGPU_AS_IOCTL_MAP_BUFFER_EX, &before, &after, Ok(0));
        assert!(text.starts_with("NVGPU_AS_IOCTL_MAP_BUFFER_EX(7, flags=5, "), "{text}");
        assert!(text.ends_with(" = 0 {offset=0x200000}"), "{text}");
        let failed = line(&7, Node::As, NVGPU_AS_IOCTL_MAP_BUFFER_EX, &before, &before, Err(Errno::EINVAL));
        assert!(failed.ends_with(") = -1 EINVAL"), "{failed}");
    }

    #[test]
    fn flags_have_names() {
        use tegrarm_abi::nvgpu::channel::NVGPU_IOCTL_CHANNEL_SETUP_BIND;
        use tegrarm_abi::nvmap::NVMAP_IOC_ALLOC;
        let names = |node, request, name: &'static str, value| {
            flag_names(node, request, &Field { name: name.into(), offset: 0, value: Value::Unsigned(value) })
        };
        let setup = |value| names(Node::Channel, NVGPU_IOCTL_CHANNEL_SETUP_BIND, "flags", value);
        assert_eq!(setup(0xa).as_deref(), Some("DETERMINISTIC|USERMODE_SUPPORT"));
        assert_eq!(setup(0).as_deref(), Some("0x0"));
        assert_eq!(setup(0x8000_0008).as_deref(), Some("USERMODE_SUPPORT|0x80000000"));
        let map = |value| names(Node::As, NVGPU_AS_IOCTL_MAP_BUFFER_EX, "flags", value);
        assert_eq!(map(0x805).as_deref(), Some("ACCESS_READ_WRITE|CACHEABLE|FIXED_OFFSET"));
        let nvmap = |name, value| names(Node::Nvmap, NVMAP_IOC_ALLOC, name, value);
        assert_eq!(nvmap("flags", 0x21).as_deref(), Some("WRITE_COMBINE|ZEROED_PAGES"));
        assert_eq!(nvmap("heap_mask", 0x4000_0000).as_deref(), Some("IOVMM"));
        assert_eq!(nvmap("align", 1), None);
        // A row that names no ioctl and no constant would never be used.
        for (ioctl, field, prefix) in FLAGS {
            let ioctls = tegrarm_abi::registry::IOCTLS.iter().copied().flatten();
            let found =
                ioctls.filter(|i| i.name.starts_with(ioctl)).any(|i| i.arg.fields.iter().any(|f| f.name == *field));
            assert!(found, "{ioctl} has no {field}");
            let mut consts = tegrarm_abi::registry::CONSTS.iter().copied().flatten();
            assert!(consts.any(|c| c.name.starts_with(prefix)), "{prefix}");
        }
    }

    #[test]
    fn hex_goes_both_ways() {
        assert_eq!(unhex(&hex(&[0, 0xab, 0xff])), Some(vec![0, 0xab, 0xff]));
        assert_eq!((unhex("0"), unhex("0x"), unhex("ä")), (None, None, None));
    }
}
