//! The class table: every class that a desktop frontend may allocate, and how the library answers.
//!
//! [`table`] has the rows, and [`make`] has their constructors.

mod make;
mod table;

pub use table::CLASSES;

use super::alloc::{AllocCall, is_client_class};
use super::object::{Kind, Tag, Tags};
use crate::status::RmResult;

/// How well the library supports a class, control, escape or UVM call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// The library does what desktop RM does.
    Done,
    /// The library does a part of it. The row says which part is missing.
    Partial,
    /// Accepted and ignored. The row says why that is right.
    Accepted,
    /// Refused with this status. The row says why.
    Refused(u32),
}

/// The objects that may be the parent.
#[derive(Clone, Copy)]
pub enum Parents {
    /// No object: the class makes a client, which has no parent.
    Nothing,
    /// An object of one of these kinds.
    Of(Tags),
    /// Any object.
    Any,
}

/// The allocation parameters of a class: their sizes over the driver generations. The size in this driver comes first;
/// where only later drivers made the parameters longer, the smallest size comes first.
#[derive(Clone, Copy, Debug)]
pub enum Params {
    /// No parameters. The library ignores what a caller passes.
    None,
    /// The parameters may be absent.
    Optional(&'static [usize]),
    /// The parameters must be there.
    Required(&'static [usize]),
}

/// A constructor, which makes the object of a class.
pub type Make = fn(&mut AllocCall) -> RmResult<Kind>;

/// One class.
pub struct ClassRow {
    /// The number of the class.
    pub number: u32,
    /// Upstream's name.
    pub name: &'static str,
    /// The parents below which it may be allocated.
    pub parents: Parents,
    /// The parameters that it takes.
    pub params: Params,
    /// Whether class lists contain it. Frontends use the newest class that they find in a list.
    pub listed: bool,
    /// Its constructor.
    pub make: Make,
    /// How far it is supported.
    pub state: Support,
    /// The reason, for every state but `Done`.
    pub why: &'static str,
}

impl ClassRow {
    /// Whether the class makes a client.
    pub fn is_client(&self) -> bool {
        is_client_class(self.number)
    }
}

impl Parents {
    /// Whether an object of this kind may be the parent.
    pub fn allow(&self, tag: Tag) -> bool {
        match self {
            Parents::Nothing => false,
            Parents::Of(tags) => tags.have(tag),
            Parents::Any => true,
        }
    }

    /// The parents in words, for sentences and tables.
    pub fn words(&self) -> String {
        match self {
            Parents::Nothing => "nothing".to_owned(),
            Parents::Of(tags) => tags.words(),
            Parents::Any => "any object".to_owned(),
        }
    }
}

/// The row of a class number.
pub fn find(class: u32) -> Option<&'static ClassRow> {
    CLASSES.binary_search_by_key(&class, |row| row.number).ok().map(|at| &CLASSES[at])
}

/// The classes that class lists contain, in order.
pub fn listed() -> impl Iterator<Item = u32> {
    CLASSES.iter().filter(|row| row.listed).map(|row| row.number)
}
