//! GPU class methods and the launch descriptor (QMD).

pub mod compute;
pub mod copy;
pub mod host;
pub mod qmd;
