//! The object door: the rows of classes and controls, and what calls answer.

#[path = "../common/mod.rs"]
mod common;

mod channels;
mod characteristics;
mod controls;
mod effects;
mod rows;
mod status_table;
mod statuses;
mod tables;
