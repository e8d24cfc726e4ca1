//! Profilers: the counters that each has reserved, the memory for their records, and the power features that they hold.

use super::gpu::Gpu;
use super::group::Group;
use super::power::{SWITCHED, Wish};
use crate::status::{During, RmError, RmResult};
use crate::tegra::{DebugSession, KernelError, Profiler};
use std::sync::Arc;
use tegrarm_abi::rm::ctrl_b0cc::*;
use tegrarm_abi::rm::status::NV_ERR_STATE_IN_USE;
use tegrarm_kmd::Errno;
use tegrarm_lock::Mutex;

/// The fields of a power mask: ELCG, BLCG, SLCG, ELPG, idle slowdown and VAT.
pub const FEATURES: usize = 6;
/// The number of bits of a field.
const FIELD: usize = 2;

/// A profiler: that of nvgpu, and its requests for power features. Fields are dropped in this order, so that the switch
/// of power is dropped last.
pub struct ProfilerObject {
    /// The profiler of nvgpu.
    pub profiler: Profiler,
    /// The group that the profiler measures.
    _group: Option<Arc<Group>>,
    power: Mutex<Power>,
    gpu: Arc<Gpu>,
}

/// The power features that a profiler has requested.
#[derive(Default)]
struct Power {
    wishes: [Option<Wish>; SWITCHED],
    /// The session that keeps the power on while it is open.
    switch: Option<DebugSession>,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerAnswer {
    /// The reason why nothing was set.
    pub refusal: Option<Refusal>,
    /// The `NVB0CC_CTRL_POWER_FEATURE_REQUEST_*` of each field.
    pub mask: u32,
}

/// The reason why a request was not granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The profiler itself needs the opposite.
    Contradiction,
    /// Another profiler needs the opposite.
    InUse,
    /// The kernel refused.
    Kernel(KernelError),
}

/// The field of a feature in a power mask.
pub fn field(mask: u32, feature: usize) -> u32 {
    mask >> (FIELD * feature) & ((1 << FIELD) - 1)
}

fn with_field(mask: &mut u32, feature: usize, value: u32) {
    *mask |= value << (FIELD * feature);
}

/// Converts nvgpu's `EINVAL` to a status of RM, where it can have only one cause.
pub fn invalid_is(status: u32, reason: &'static str) -> impl FnOnce(KernelError) -> RmError {
    move |e| match e.errno {
        Errno::EINVAL => RmError::new(status, format!("{reason}: {e}")),
        _ => RmError::from(e),
    }
}

/// Explains why nvgpu gives a profiler no context. The descriptor belongs to a group and the profiler is new, so that
/// other causes are excluded.
fn choosing(e: KernelError) -> RmError {
    invalid_is(NV_ERR_STATE_IN_USE, "another profiler looks at the channel group: free it first")(e)
        .during("giving the profiler its context")
}

impl ProfilerObject {
    /// Opens a profiler of the device, or of a group's context.
    ///
    /// # Errors
    /// `NV_ERR_NOT_SUPPORTED` if the kernel has no profiler, and `NV_ERR_STATE_IN_USE` for a group that another
    /// profiler measures.
    pub fn new(gpu: &Arc<Gpu>, group: Option<Arc<Group>>) -> RmResult<ProfilerObject> {
        let profiler = Profiler::open(gpu.kmd(), gpu.ctrl.release()).during(|| "opening nvgpu's profiler")?;
        profiler.bind_context(group.as_ref().map(|group| &group.tsg)).map_err(choosing)?;
        Ok(ProfilerObject { profiler, _group: group, power: Mutex::default(), gpu: gpu.clone() })
    }

    /// Holds features on or off. All of the requested features are set, or none.
    pub fn request(&self, wishes: &[Option<Wish>; FEATURES]) -> PowerAnswer {
        let mut power = self.power.lock();
        let mut ledger = self.gpu.power.lock();
        let mut answer = PowerAnswer { refusal: None, mask: 0 };
        for (feature, wish) in wishes.iter().enumerate().filter_map(|(at, wish)| Some((at, (*wish)?))) {
            if feature >= SWITCHED {
                with_field(&mut answer.mask, feature, NVB0CC_CTRL_POWER_FEATURE_REQUEST_NOT_SUPPORTED);
                continue;
            }
            let rivals = *ledger[feature].of(wish.opposite());
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
                    *ledger[feature].of(*wish) += 1;
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

    /// Releases features. Features that the profiler does not hold are ignored.
    pub fn release(&self, features: impl Iterator<Item = usize>) {
        let mut power = self.power.lock();
        let mut ledger = self.gpu.power.lock();
        for feature in features.filter(|at| *at < SWITCHED) {
            if let Some(wish) = power.wishes[feature].take() {
                *ledger[feature].of(wish) -= 1;
            }
        }
        if !power.wishes.contains(&Some(Wish::Off)) {
            power.switch = None;
        }
    }
}

impl Drop for ProfilerObject {
    fn drop(&mut self) {
        self.release(0..SWITCHED);
    }
}
