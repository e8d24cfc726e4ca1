//! The directory in which the kernel offers the clocks of the GPU, and beside it the GPU's device.

use crate::Kmd;

/// The names of the GPU's devfreq directory on r36, on r35 with Orin, and on r35 with Xavier.
const NAMES: &[&str] =
    &["/sys/class/devfreq/17000000.gpu", "/sys/class/devfreq/17000000.ga10b", "/sys/class/devfreq/17000000.gv11b"];

/// The GPU's devfreq directory, if there is one.
pub fn directory(kmd: &(impl Kmd + ?Sized)) -> Option<&'static str> {
    found(kmd).map(|(directory, _)| directory)
}

/// The GPU's devfreq directory and the text of its highest clock, if there is one.
pub fn found(kmd: &(impl Kmd + ?Sized)) -> Option<(&'static str, String)> {
    NAMES.iter().find_map(|directory| Some((*directory, kmd.read_text(&format!("{directory}/max_freq")).ok()?)))
}
