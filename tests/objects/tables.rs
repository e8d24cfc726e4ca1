//! The class and control tables are well formed. A person who adds a row learns here what the row lacks.

use std::collections::BTreeSet;
use tegrarm::files::escapes::{self, ESCAPES};
use tegrarm::files::uvm::{self, CALLS};
use tegrarm::rm::classes::{self, CLASSES, Params, Parents, Support};
use tegrarm::rm::controls::{self, CONTROLS};
use tegrarm_abi::registry;
use tegrarm_abi::rm::status::NV_ERR_INVALID_CLASS;

#[test]
fn rows_are_sorted_and_unique_so_that_search_finds_them() {
    assert!(CLASSES.windows(2).all(|w| w[0].number < w[1].number));
    assert!(CONTROLS.windows(2).all(|w| w[0].cmd < w[1].cmd));
    assert!(CLASSES.iter().all(|row| classes::find(row.number).is_some_and(|r| r.name == row.name)));
    assert!(CONTROLS.iter().all(|row| controls::find(row.cmd).is_some_and(|r| r.name == row.name)));
}

#[test]
fn every_row_says_what_it_amounts_to() {
    for row in CLASSES {
        let needs_reason = row.state != Support::Done;
        // A row that is not done must give its reason. One class is done and still has a remark about its allocation.
        assert!(!needs_reason || !row.why.is_empty(), "{}: why?", row.name);
        let unreachable = matches!(row.parents, Parents::Nothing);
        assert_eq!(unreachable, row.is_client() || row.state == Support::Refused(NV_ERR_INVALID_CLASS), "{}", row.name);
        if let Params::Optional(sizes) | Params::Required(sizes) = row.params {
            assert!(!sizes.is_empty() && sizes.iter().all(|s| *s > 0 && *s >= sizes[0]), "{}: {sizes:?}", row.name);
        }
        assert!(!row.listed || !matches!(row.state, Support::Refused(_)), "{} is listed but refused", row.name);
    }
    for row in CONTROLS {
        assert_eq!(row.state == Support::Done, row.why.is_empty(), "{}: a reason for anything but Done", row.name);
        let refused = matches!(row.state, Support::Refused(_));
        assert!(refused || !row.objects.is_empty(), "{}: only a refused one may belong to no object", row.name);
        assert_eq!(refused, row.sizes.is_empty(), "{}: sizes", row.name);
    }
}

/// The numbers are those of upstream: a row's name is a constant of the ABI that has the row's number.
#[test]
fn names_and_numbers_agree_with_the_abi() {
    let known: BTreeSet<(&str, i128)> =
        registry::CONSTS.iter().flat_map(|list| list.iter()).map(|c| (c.name, c.value)).collect();
    for (name, number) in CLASSES.iter().map(|r| (r.name, r.number)).chain(CONTROLS.iter().map(|r| (r.name, r.cmd))) {
        assert!(known.contains(&(name, i128::from(number))), "{name} = {number:#x}");
    }
}

/// Every class and control number that the ABI names has a row.
#[test]
fn no_number_of_the_abi_is_without_a_row() {
    for c in tegrarm_abi::rm::classes::CLASS_CONSTS {
        assert!(classes::find(c.value as u32).is_some(), "class {}", c.name);
    }
    let commands = registry::CONSTS.iter().flat_map(|list| list.iter()).filter(|c| {
        c.name.contains("_CTRL_CMD_") && !c.name.contains("_FLAGS_") && c.value > 0x100 && c.name.starts_with("NV")
    });
    for c in commands {
        assert!(controls::find(c.value as u32).is_some(), "control {} ({:#x})", c.name, c.value);
    }
}

#[test]
fn every_escape_has_a_row_that_is_found_and_says_what_it_amounts_to() {
    for c in tegrarm_abi::rm::escapes::ESCAPE_CONSTS.iter().filter(|c| c.name.starts_with("NV_ESC_")) {
        // The escape that wraps others is unwrapped and has no row, and the base of the numbers is not an escape.
        let no_escape = ["NV_ESC_IOCTL_XFER_CMD", "NV_ESC_IOCTL_BASE"].contains(&c.name);
        let row = escapes::find(c.value as u32).filter(|row| row.name == c.name);
        assert_eq!(row.is_none(), no_escape, "{}", c.name);
    }
    assert!(ESCAPES.windows(2).all(|w| w[0].nr < w[1].nr), "sorted by number");
    for row in ESCAPES {
        let known = tegrarm_abi::rm::escapes::ESCAPE_CONSTS.iter().find(|c| c.name == row.name);
        assert_eq!(known.map(|c| c.value), Some(i128::from(row.nr)), "{}", row.name);
        if let escapes::Args::Sizes(sizes) = row.args {
            assert!(sizes.iter().all(|(size, status)| status.is_none_or(|at| at + 4 <= *size)), "{}", row.name);
        }
        assert!(escapes::find(row.nr).is_some_and(|r| r.name == row.name), "{}", row.name);
        assert_eq!(row.state == Support::Done, row.why.is_empty(), "{}: a reason for anything but Done", row.name);
        let unanswered = matches!(row.answer, escapes::Answer::Einval | escapes::Answer::Unsupported);
        assert_eq!(unanswered, matches!(row.state, Support::Refused(_)), "{}", row.name);
    }
}

#[test]
fn every_uvm_call_has_a_row_that_is_found_and_says_what_it_amounts_to() {
    for row in CALLS {
        assert!(uvm::find(row.nr).is_some_and(|r| r.name == row.name), "{}", row.name);
        assert_eq!(row.state == Support::Done, row.why.is_empty(), "{}: a reason for anything but Done", row.name);
        let unanswered = matches!(row.answer, uvm::Answer::Einval | uvm::Answer::Unsupported);
        assert_eq!(unanswered, matches!(row.state, Support::Refused(_)), "{}", row.name);
        let known = tegrarm_abi::rm::uvm::UVM_CONSTS.iter().find(|c| c.name == row.name);
        assert_eq!(known.map(|c| c.value), Some(i128::from(row.nr)), "{}", row.name);
    }
    // Each structure of parameters belongs to a call that has a row.
    for s in registry::STRUCTS.iter().flat_map(|list| list.iter()).filter(|s| s.name.starts_with("UVM_")) {
        let Some(call) = s.name.strip_suffix("_PARAMS") else { continue };
        assert!(CALLS.iter().any(|row| call.starts_with(row.name)), "{}", s.name);
    }
}
