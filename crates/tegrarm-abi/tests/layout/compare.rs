//! Compares one registry entry with its row in the table. An empty answer means that the two agree.

use crate::tables::{Field, Struct, Table, Tables};
use tegrarm_abi::layout::{Abi, Const, FieldLayout, Ioctl, NamedBits, Node, StructLayout};
use tegrarm_abi::registry::{CONSTS, IOCTLS, STRUCTS};

fn table(tables: &Tables, abi: Abi) -> Option<&Table> {
    match abi {
        Abi::R36 => Some(&tables.r36),
        Abi::R35 => Some(&tables.r35),
        Abi::R39 => Some(&tables.r39),
        Abi::Rm570 => Some(&tables.rm),
        Abi::Extra | Abi::Linux => Some(&tables.extra),
        Abi::NvStatus | Abi::Methods | Abi::Qmd => None,
    }
}

/// The upstream name of an entry. Variants of r35 and r39 have a suffix, so that all variants can exist in one crate.
pub fn upstream(name: &str, abi: Abi) -> &str {
    match abi {
        Abi::R35 => name.strip_suffix("_r35").or_else(|| name.strip_suffix("_R35")).unwrap_or(name),
        Abi::R39 => name.strip_suffix("_r39").or_else(|| name.strip_suffix("_R39")).unwrap_or(name),
        _ => name,
    }
}

fn field_name(f: &FieldLayout) -> &str {
    f.name.strip_suffix('_').unwrap_or(f.name)
}

pub fn structure(tables: &Tables, ours: &StructLayout) -> Vec<String> {
    let name = upstream(ours.name, ours.abi);
    let row =
        table(tables, ours.abi).and_then(|t| t.structs.get(name).or_else(|| t.structs.get(&format!("struct_{name}"))));
    let Some(row) = row else { return vec![format!("{}: no such structure in the {:?} table", ours.name, ours.abi)] };
    let mut out = Vec::new();
    if row.size != ours.size {
        out.push(format!("{}: {} bytes, the table says {}", ours.name, ours.size, row.size));
    }
    out.extend(ours.fields.iter().filter(|f| !f.name.starts_with('_')).filter_map(|f| field(ours, f, row)));
    out.extend(row.fields.iter().filter(|f| !covered(ours, f)).map(|f| format!("{}: lacks {}", ours.name, f.name)));
    out
}

fn field(ours: &StructLayout, f: &FieldLayout, row: &Struct) -> Option<String> {
    let at = format!("{}.{}", ours.name, f.name);
    let Some(theirs) = row.fields.iter().find(|t| t.name == field_name(f)) else {
        return Some(format!("{at}: no such field in the table"));
    };
    if (theirs.offset, theirs.size) != (f.offset, f.size) {
        return Some(format!(
            "{at}: {} bytes at {}, the table says {} at {}",
            f.size, f.offset, theirs.size, theirs.offset
        ));
    }
    let ty = &theirs.ty;
    match (signed(ty), f.ty.starts_with('i')) {
        (Some(theirs), ours) if theirs != ours => Some(format!("{at}: {}, the table says {}", f.ty, ty)),
        _ => None,
    }
}

/// Whether a C scalar type is signed. The result is `None` for structures, arrays and enumerations.
fn signed(ty: &str) -> Option<bool> {
    match ty.trim_start_matches("__") {
        "s8" | "s16" | "s32" | "s64" | "int" => Some(true),
        "u8" | "u16" | "u32" | "u64" | "ptr" => Some(false),
        _ => None,
    }
}

/// Whether a field of the table is in the structure, or has the same place as a field that is, as members of a union
/// have.
fn covered(ours: &StructLayout, theirs: &Field) -> bool {
    ours.fields.iter().any(|f| {
        let padding = f.name.starts_with("_pad") && f.name != theirs.name;
        !padding && f.offset < theirs.offset + theirs.size && theirs.offset < f.offset + f.size
    })
}

/// The ioctl magic of a node.
pub fn magic(node: Node) -> Option<u8> {
    match node {
        Node::Nvmap => Some(b'N'),
        Node::Ctrl => Some(b'G'),
        Node::As => Some(b'A'),
        Node::Tsg => Some(b'T'),
        Node::Channel => Some(b'H'),
        Node::Debugger => Some(b'D'),
        Node::Profiler => Some(b'P'),
        Node::Sched => Some(b'S'),
        Node::Nvsched => Some(b'N'),
        Node::Ctxsw => Some(b'C'),
        Node::CtrlFifo => Some(b'F'),
        Node::SyncFile => Some(b'>'),
        Node::Host1x => Some(b'X'),
        Node::Dmabuf => None,
    }
}

pub fn ioctl(tables: &Tables, ours: &Ioctl) -> Vec<String> {
    let row = table(tables, ours.abi).and_then(|t| t.ioctls.get(upstream(ours.name, ours.abi)));
    let Some(row) = row else { return vec![format!("{}: no such ioctl in the {:?} table", ours.name, ours.abi)] };
    let mut out = Vec::new();
    let mut complain = |wrong: bool, text: String| {
        if wrong {
            out.push(format!("{}: {text}", ours.name));
        }
    };
    complain(row.number != ours.number, format!("{:#010x}, the table says {:#010x}", ours.number, row.number));
    complain(
        magic(ours.node) != Some(row.magic),
        format!("{:?} does not use magic {:?}", ours.node, row.magic as char),
    );
    let encoded = (ours.number >> 16 & 0x3fff) as usize;
    complain(encoded != row.size, format!("encodes {encoded} bytes, the table says {}", row.size));
    match row.arg.strip_prefix("struct ") {
        Some(name) => {
            complain(
                name != upstream(ours.arg.name, ours.abi),
                format!("argument {}, the table says {name}", ours.arg.name),
            );
            complain(
                encoded != ours.arg.size,
                format!("encodes {encoded} bytes for a {}-byte structure", ours.arg.size),
            );
        }
        None => {
            complain(!ours.arg.name.is_empty(), format!("argument {}, the table says {:?}", ours.arg.name, row.arg))
        }
    }
    out
}

pub fn constant(tables: &Tables, ours: &Const) -> Vec<String> {
    let name = upstream(ours.name, ours.abi);
    let row = match ours.abi {
        Abi::NvStatus => tables.status.get(name),
        Abi::Methods => tables.methods.get(name),
        Abi::Qmd => tables.qmd_values.get(name),
        abi => table(tables, abi).and_then(|t| t.consts.get(name)),
    };
    match row {
        None => vec![format!("{}: no such constant in the {:?} table", ours.name, ours.abi)],
        Some(v) if *v != ours.value => vec![format!("{}: {:#x}, the table says {v:#x}", ours.name, ours.value)],
        Some(_) => Vec::new(),
    }
}

pub fn bits(tables: &Tables, ours: &NamedBits) -> Vec<String> {
    let Some(row) = tables.bits.get(ours.name) else { return vec![format!("{}: no such bit range", ours.name)] };
    let mine: Vec<(u16, u16)> = (0..ours.bits.count).map(|i| ours.bits.at(i)).map(|b| (b.msb, b.lsb)).collect();
    match *row == mine {
        true => Vec::new(),
        false => vec![format!("{}: {mine:?}, the table says {row:?}", ours.name)],
    }
}

/// Compares the entries of r36 that release `abi` does not override with `table`, the table of that release. An entry
/// that the release does not have at all is not compared, because the library refuses such a call on that release.
pub fn shared(tables: &Tables, abi: Abi, table: &Table) -> Vec<String> {
    let other = Tables { r36: table.clone(), ..tables.clone() };
    let mut out = Vec::new();
    let of = |own: &Abi| *own == abi;
    let ours: Vec<&StructLayout> = STRUCTS.iter().flat_map(|l| l.iter().copied()).collect();
    let overridden = |name: &str| ours.iter().any(|s| of(&s.abi) && upstream(s.name, abi) == name);
    for s in ours.iter().filter(|s| s.abi == Abi::R36 && table.structs.contains_key(s.name) && !overridden(s.name)) {
        out.extend(structure(&other, s));
    }
    let ours: Vec<&Ioctl> = IOCTLS.iter().flat_map(|l| l.iter()).collect();
    let overridden = |name: &str| ours.iter().any(|i| of(&i.abi) && upstream(i.name, abi) == name);
    for i in ours.iter().filter(|i| i.abi == Abi::R36 && table.ioctls.contains_key(i.name) && !overridden(i.name)) {
        out.extend(ioctl(&other, i));
    }
    let ours: Vec<&Const> = CONSTS.iter().flat_map(|l| l.iter()).collect();
    let overridden = |name: &str| ours.iter().any(|c| of(&c.abi) && upstream(c.name, abi) == name);
    for c in ours.iter().filter(|c| c.abi == Abi::R36 && table.consts.contains_key(c.name) && !overridden(c.name)) {
        out.extend(constant(&other, c));
    }
    out
}

/// The comparison must notice every kind of difference for which it exists.
mod tests {
    use super::*;
    use tegrarm_abi::layout::{AbiStruct, Bits};
    use tegrarm_abi::nvgpu::address_space::{NVGPU_AS_IOCTL_MAP_BUFFER_EX, nvgpu_as_map_buffer_ex_args};

    fn corrupted(change: impl Fn(&mut FieldLayout)) -> StructLayout {
        let good = nvgpu_as_map_buffer_ex_args::LAYOUT;
        let mut fields = good.fields.to_vec();
        change(&mut fields[6]);
        StructLayout { fields: fields.leak(), ..*good }
    }

    #[test]
    fn a_wrong_structure_is_noticed() {
        let tables = Tables::load();
        assert!(structure(&tables, nvgpu_as_map_buffer_ex_args::LAYOUT).is_empty());
        for (what, bad) in [
            ("offset", corrupted(|f| f.offset += 4)),
            ("size", corrupted(|f| f.size = 4)),
            ("name", corrupted(|f| f.name = "length")),
            ("sign", corrupted(|f| f.ty = "i64")),
            ("left out", corrupted(|f| f.name = "_pad0")),
            ("total", StructLayout { size: 48, ..*nvgpu_as_map_buffer_ex_args::LAYOUT }),
            ("structure", StructLayout { name: "nvgpu_as_map_buffer_args", ..*nvgpu_as_map_buffer_ex_args::LAYOUT }),
        ] {
            assert!(!structure(&tables, &bad).is_empty(), "a wrong {what} went unnoticed");
        }
    }

    #[test]
    fn a_wrong_ioctl_is_noticed() {
        let tables = Tables::load();
        let good = Ioctl {
            name: "NVGPU_AS_IOCTL_MAP_BUFFER_EX",
            number: NVGPU_AS_IOCTL_MAP_BUFFER_EX,
            node: Node::As,
            abi: Abi::R36,
            arg: nvgpu_as_map_buffer_ex_args::LAYOUT,
        };
        assert!(ioctl(&tables, &good).is_empty());
        let other = tegrarm_abi::nvgpu::tsg::nvgpu_timeslice_args::LAYOUT;
        for bad in [
            Ioctl { number: good.number ^ 1, ..good },
            Ioctl { number: good.number ^ 1 << 31, ..good },
            Ioctl { node: Node::Ctrl, ..good },
            Ioctl { arg: other, ..good },
            Ioctl { name: "NVGPU_AS_IOCTL_MAP_BUFFER", ..good },
        ] {
            assert!(!ioctl(&tables, &bad).is_empty(), "{bad:?} went unnoticed");
        }
    }

    #[test]
    fn a_wrong_number_is_noticed() {
        let tables = Tables::load();
        for abi in [Abi::R36, Abi::R39, Abi::Rm570, Abi::NvStatus, Abi::Methods, Abi::Qmd] {
            let all = tegrarm_abi::registry::CONSTS.iter().flat_map(|l| l.iter());
            let good = *all.clone().find(|c| c.abi == abi).expect("a constant of each table");
            assert!(constant(&tables, &good).is_empty());
            assert!(!constant(&tables, &Const { value: good.value + 1, ..good }).is_empty(), "{}", good.name);
            assert!(!constant(&tables, &Const { name: "NO_SUCH", ..good }).is_empty());
        }
        let good = NamedBits { name: "CONSTANT_BUFFER_VALID", bits: Bits { msb: 640, lsb: 640, stride: 1, count: 8 } };
        assert!(bits(&tables, &good).is_empty());
        for b in [Bits { msb: 641, ..good.bits }, Bits { stride: 2, ..good.bits }, Bits { count: 7, ..good.bits }] {
            assert!(!bits(&tables, &NamedBits { bits: b, ..good }).is_empty(), "{b:?} went unnoticed");
        }
    }
}
