//! The class table: every class a desktop frontend may allocate, and what becomes of it.
//!
//! [`table`] has the rows, [`make`] their constructors.

mod make;
mod table;

pub use table::CLASSES;

use super::alloc::{AllocCall, is_client_class};
use super::object::{Kind, Tag, Tags};
use crate::status::RmResult;

/// How far the library does what a class, control, escape or UVM call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// Does what desktop RM does.
    Done,
    /// Does part of it; the row says which part is missing.
    Partial,
    /// Accepted and ignored; the row says why that is right.
    Accepted,
    /// Answered with this status; the row says why.
    Refused(u32),
}

/// Which objects may be the parent.
#[derive(Clone, Copy)]
pub enum Parents {
    /// None: clients.
    Nothing,
    /// One of these.
    Of(Tags),
    /// Any object.
    Any,
}

/// Allocation parameters: their sizes over driver generations, this driver's own (or, where only later ones grew,
/// the smallest) first.
#[derive(Clone, Copy, Debug)]
pub enum Params {
    /// None; anything passed is ignored.
    None,
    /// May be absent.
    Optional(&'static [usize]),
    /// Must be there.
    Required(&'static [usize]),
}

/// Makes the object of a class.
pub type Make = fn(&mut AllocCall) -> RmResult<Kind>;

/// One class.
pub struct ClassRow {
    /// Its number.
    pub number: u32,
    /// Upstream's name.
    pub name: &'static str,
    /// Where it may be allocated.
    pub parents: Parents,
    /// What it takes.
    pub params: Params,
    /// Whether class lists advertise it. Frontends pick the newest class they find listed.
    pub listed: bool,
    /// Its constructor.
    pub make: Make,
    /// How far it is supported.
    pub state: Support,
    /// The reason, for every state but `Done`.
    pub why: &'static str,
}

impl ClassRow {
    /// Whether it makes a client.
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

    /// For sentences and tables.
    pub fn words(&self) -> String {
        match self {
            Parents::Nothing => "nothing".to_owned(),
            Parents::Of(tags) => tags.words(),
            Parents::Any => "any object".to_owned(),
        }
    }
}

/// The row of a class.
pub fn find(class: u32) -> Option<&'static ClassRow> {
    CLASSES.binary_search_by_key(&class, |row| row.number).ok().map(|at| &CLASSES[at])
}

/// The classes that class lists advertise, in order.
pub fn listed() -> impl Iterator<Item = u32> {
    CLASSES.iter().filter(|row| row.listed).map(|row| row.number)
}
