//! Profilers: who has which counters, where their records go, which power features they hold.

use super::gpu::Gpu;
use super::group::Group;
use crate::status::{During, RmResult};
use crate::tegra::{DebugSession, KernelError, Profiler};
use parking_lot::Mutex;
use std::sync::Arc;
use tegrarm_abi::rm::ctrl_b0cc::*;

/// Fields of a power mask: ELCG, BLCG, SLCG, ELPG, idle slowdown, VAT.
pub const FEATURES: usize = 6;
/// nvgpu has one switch for the first four of them, and none for the others.
const SWITCHED: usize = 4;
/// Bits of a field.
const FIELD: usize = 2;

/// What a profiler wants of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// That it saves no power.
    Off,
    /// That it does.
    On,
}

/// A profiler: nvgpu's, and what it asked of power. Fields drop in this order: the switch of power goes last.
pub struct ProfilerObject {
    /// nvgpu's.
    pub profiler: Profiler,
    /// The group it looks at.
    _group: Option<Arc<Group>>,
    power: Mutex<Power>,
    gpu: Arc<Gpu>,
}

/// What a profiler asked for.
#[derive(Default)]
struct Power {
    wishes: [Option<Wish>; SWITCHED],
    /// Keeps the power on while it is open.
    switch: Option<DebugSession>,
}

/// How many profilers of the process want each feature off, and on.
#[derive(Default)]
pub struct PowerLedger(Mutex<[(u32, u32); SWITCHED]>);

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerAnswer {
    /// Why nothing was set.
    pub refusal: Option<Refusal>,
    /// `NVB0CC_CTRL_POWER_FEATURE_REQUEST_*` of each field.
    pub mask: u32,
}

/// Why a request was not granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The profiler itself wants the contrary.
    Contradiction,
    /// Another profiler wants the contrary.
    InUse,
    /// The kernel said no.
    Kernel(KernelError),
}

/// The field of a feature in a power mask.
pub fn field(mask: u32, feature: usize) -> u32 {
    mask >> (FIELD * feature) & ((1 << FIELD) - 1)
}

fn with_field(mask: &mut u32, feature: usize, value: u32) {
    *mask |= value << (FIELD * feature);
}

impl ProfilerObject {
    /// Opens a profiler of the device, or of a group's context.
    ///
    /// # Errors
    /// 0x56 when the kernel has none, 0x63 for a group that another profiler looks at.
    pub fn new(gpu: &Arc<Gpu>, group: Option<Arc<Group>>) -> RmResult<ProfilerObject> {
        let profiler = Profiler::open(gpu.kmd(), gpu.ctrl.release()).during(|| "opening nvgpu's profiler")?;
        profiler.bind_context(group.as_ref().map(|group| &group.tsg)).map_err(super::control::profiler::choosing)?;
        Ok(ProfilerObject { profiler, _group: group, power: Mutex::default(), gpu: gpu.clone() })
    }

    /// Holds features on or off: all that are asked for, or none.
    pub fn request(&self, wishes: &[Option<Wish>; FEATURES]) -> PowerAnswer {
        let mut power = self.power.lock();
        let mut ledger = self.gpu.power.0.lock();
        let mut answer = PowerAnswer { refusal: None, mask: 0 };
        for (feature, wish) in wishes.iter().enumerate().filter_map(|(at, wish)| Some((at, (*wish)?))) {
            if feature >= SWITCHED {
                with_field(&mut answer.mask, feature, NVB0CC_CTRL_POWER_FEATURE_REQUEST_NOT_SUPPORTED);
                continue;
            }
            let (off, on) = ledger[feature];
            let rivals = if wish == Wish::Off { on } else { off };
            let refusal = match power.wishes[feature] {
                Some(own) if own != wish => Refusal::Contradiction,
                None if rivals > 0 => Refusal::InUse,
                _ => continue,
            };
            with_field(&mut answer.mask, feature, NVB0CC_CTRL_POWER_FEATURE_REQUEST_REJECTED);
            answer.refusal.get_or_insert(refusal);
        }
        if answer.refusal.is_none()
            && wishes[..SWITCHED].contains(&Some(Wish::Off))
            && power.switch.is_none()
            && let Err(e) = self.switch_on(&mut power)
        {
            for feature in (0..SWITCHED).filter(|at| wishes[*at] == Some(Wish::Off)) {
                with_field(&mut answer.mask, feature, NVB0CC_CTRL_POWER_FEATURE_REQUEST_FAILED);
            }
            answer.refusal = Some(Refusal::Kernel(e));
        }
        if answer.refusal.is_none() {
            for (feature, wish) in wishes[..SWITCHED].iter().enumerate() {
                if let (Some(wish), None) = (wish, power.wishes[feature]) {
                    power.wishes[feature] = Some(*wish);
                    *count(&mut ledger[feature], *wish) += 1;
                }
            }
        }
        answer
    }

    fn switch_on(&self, power: &mut Power) -> Result<(), KernelError> {
        let session = DebugSession::open(self.gpu.kmd())?;
        session.keep_power()?;
        power.switch = Some(session);
        Ok(())
    }

    /// Lets features go; those that it does not hold are passed over.
    pub fn release(&self, features: impl Iterator<Item = usize>) {
        let mut power = self.power.lock();
        let mut ledger = self.gpu.power.0.lock();
        for feature in features.filter(|at| *at < SWITCHED) {
            if let Some(wish) = power.wishes[feature].take() {
                *count(&mut ledger[feature], wish) -= 1;
            }
        }
        if !power.wishes.contains(&Some(Wish::Off)) {
            power.switch = None;
        }
    }
}

fn count(counts: &mut (u32, u32), wish: Wish) -> &mut u32 {
    match wish {
        Wish::Off => &mut counts.0,
        Wish::On => &mut counts.1,
    }
}

impl Drop for ProfilerObject {
    fn drop(&mut self) {
        self.release(0..SWITCHED);
    }
}
