//! Compares every structure, number, constant and bit range of the crate with tables that were read off a C compiler.
//!
//! The library and the simulator share these definitions, so neither of them can notice a wrong one. This test does.
//! `tables` reads `tests/data/abi/*.json`, `compare` makes the comparison, and `source` scans the crate's own text, so
//! that nothing can be declared without being compared.

#[path = "layout/compare.rs"]
mod compare;
#[path = "layout/source.rs"]
mod source;
#[path = "layout/tables.rs"]
mod tables;

use std::collections::BTreeSet;
use tables::Tables;
use tegrarm_abi::layout::{Abi, Node};
use tegrarm_abi::registry::{BITS, CONSTS, IOCTLS, STRUCTS};

/// Fails with all complaints at once, because a wrong row of a table is easier to see beside its neighbours.
fn expect_none(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn structures() {
    let tables = Tables::load();
    let all: Vec<_> = STRUCTS.iter().flat_map(|list| list.iter()).collect();
    assert!(all.len() > 300, "only {} structures", all.len());
    expect_none(all.iter().flat_map(|s| compare::structure(&tables, s)).collect());
}

#[test]
fn ioctls() {
    let tables = Tables::load();
    let all: Vec<_> = IOCTLS.iter().flat_map(|list| list.iter()).collect();
    assert!(all.len() > 150, "only {} ioctls", all.len());
    expect_none(all.iter().flat_map(|i| compare::ioctl(&tables, i)).collect());
}

#[test]
fn every_ioctl_of_our_nodes_has_a_row() {
    let tables = Tables::load();
    let ours: BTreeSet<&str> =
        IOCTLS.iter().flat_map(|l| l.iter()).filter(|i| i.abi == Abi::R36).map(|i| i.name).collect();
    let nvgpu = [Node::Ctrl, Node::As, Node::Tsg, Node::Channel, Node::Debugger, Node::Profiler];
    let magics = nvgpu
        .into_iter()
        .chain([Node::Nvmap, Node::Sched, Node::Nvsched, Node::Ctxsw, Node::CtrlFifo])
        .map(|n| compare::magic(n).expect("these nodes take ioctls"))
        .collect::<Vec<_>>();
    let wanted = tables.r36.ioctls.iter().filter(|(_, row)| magics.contains(&row.magic));
    let missing = wanted.filter(|(name, _)| !ours.contains(name.as_str()));
    expect_none(missing.map(|(name, _)| format!("{name}: in the table, not in the crate")).collect());
    for (abi, table) in [(Abi::R35, &tables.r35), (Abi::R39, &tables.r39)] {
        let theirs: Vec<_> = IOCTLS.iter().flat_map(|l| l.iter()).filter(|i| i.abi == abi).map(|i| i.number).collect();
        let own = table.ioctls.iter().filter(|(_, row)| magics.contains(&row.magic));
        let own = own.filter(|(name, row)| tables.r36.ioctls.get(*name).is_none_or(|r36| r36.number != row.number));
        let missing = own.filter(|(_, row)| !theirs.contains(&row.number));
        expect_none(missing.map(|(name, _)| format!("{name}: in the {abi:?} table, not in the crate")).collect());
    }
}

/// A structure or number that another release has in the same form as r36 has only r36's row here. The test checks that
/// the forms are the same.
#[test]
fn what_another_release_does_not_override_is_that_of_r36() {
    let tables = Tables::load();
    for (abi, table) in [(Abi::R35, &tables.r35), (Abi::R39, &tables.r39)] {
        expect_none(compare::shared(&tables, abi, table));
    }
}

#[test]
fn constants() {
    let tables = Tables::load();
    let all: Vec<_> = CONSTS.iter().flat_map(|list| list.iter()).collect();
    assert!(all.len() > 1500, "only {} constants", all.len());
    expect_none(all.iter().flat_map(|c| compare::constant(&tables, c)).collect());
}

#[test]
fn bit_ranges() {
    let tables = Tables::load();
    let all: Vec<_> = BITS.iter().flat_map(|list| list.iter()).collect();
    assert!(all.len() > 400, "only {} bit ranges", all.len());
    expect_none(all.iter().flat_map(|b| compare::bits(&tables, b)).collect());
}

#[test]
fn extra_rows_name_their_source() {
    let tables = Tables::load();
    expect_none(
        tables
            .extra_sources
            .iter()
            .filter(|(_, source)| source.len() < 4)
            .map(|(n, _)| format!("{n}: no source"))
            .collect(),
    );
}

#[test]
fn nothing_escapes_the_registries() {
    let declared = source::scan();
    expect_none(declared.complaints);
    let registered = |names: Vec<&'static str>| names.into_iter().map(String::from).collect::<BTreeSet<_>>();
    assert_eq!(declared.structs, registered(STRUCTS.iter().flat_map(|l| l.iter()).map(|s| s.name).collect()));
    assert_eq!(declared.ioctls, registered(IOCTLS.iter().flat_map(|l| l.iter()).map(|i| i.name).collect()));
    assert_eq!(declared.consts, registered(CONSTS.iter().flat_map(|l| l.iter()).map(|c| c.name).collect()));
    assert_eq!(declared.bits, registered(BITS.iter().flat_map(|l| l.iter()).map(|b| b.name).collect()));
}

#[test]
fn no_two_ioctls_of_a_node_share_a_number() {
    let mut seen = std::collections::BTreeMap::new();
    for i in IOCTLS.iter().flat_map(|l| l.iter()) {
        if let Some(other) = seen.insert((i.node, i.number), i.name) {
            panic!("{} and {other} are both {:#010x} of {:?}", i.name, i.number, i.node);
        }
    }
}
