//! Share tokens: how another ctrl open gets at a group (nvgpu-rules §4.8, §6).

use super::{Tsg, TsgFile};
use crate::kernel::dispatch::{Call, Reply};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use tegrarm_abi::nvgpu::tsg::*;
use tegrarm_kmd::Errno;

/// Tokens a group can have out.
const MAX_TOKENS: usize = 64;

/// A token's terms.
#[derive(Debug)]
struct Grant {
    tsg: Weak<Tsg>,
    source: u64,
    target: u64,
}

/// Every token out.
#[derive(Debug, Default)]
pub(in crate::kernel) struct ShareTokens {
    grants: Mutex<(u64, BTreeMap<u64, Grant>)>,
}

impl ShareTokens {
    /// The group a token opens for a ctrl open; the token is spent.
    pub(in crate::kernel) fn redeem(&self, token: u64, source: u64, target: u64) -> Option<Arc<Tsg>> {
        let mut grants = self.grants.lock();
        let valid = grants.1.get(&token).is_some_and(|g| g.source == source && g.target == target);
        if valid { grants.1.remove(&token)?.tsg.upgrade() } else { None }
    }
}

pub(super) fn get_token(call: &Call<'_>, file: &Arc<TsgFile>, args: &mut nvgpu_tsg_get_share_token_args) -> Reply {
    let (source, target) = (args.source_device_instance_id, args.target_device_instance_id);
    if source == 0 || target == 0 || !file.tsg.state.lock().instances.contains(&source) {
        return Err(Errno::EINVAL.into());
    }
    let mut grants = call.kernel.tokens.grants.lock();
    grants.1.retain(|_, grant| grant.tsg.strong_count() > 0);
    let mine = grants.1.values().filter(|g| Weak::as_ptr(&g.tsg) == Arc::as_ptr(&file.tsg)).count();
    if mine >= MAX_TOKENS {
        return Err(Errno::ENOSPC.into());
    }
    grants.0 += 1;
    let token = grants.0;
    grants.1.insert(token, Grant { tsg: Arc::downgrade(&file.tsg), source, target });
    args.share_token = token;
    Ok(())
}

pub(super) fn revoke_token(
    call: &Call<'_>,
    file: &Arc<TsgFile>,
    args: &mut nvgpu_tsg_revoke_share_token_args,
) -> Reply {
    let (source, target) = (args.source_device_instance_id, args.target_device_instance_id);
    if source == 0 || target == 0 || args.share_token == 0 {
        return Err(Errno::EINVAL.into());
    }
    let mut grants = call.kernel.tokens.grants.lock();
    let matches =
        |g: &Grant| g.source == source && g.target == target && Weak::as_ptr(&g.tsg) == Arc::as_ptr(&file.tsg);
    if !grants.1.get(&args.share_token).is_some_and(matches) {
        return Err(Errno::EINVAL.into());
    }
    grants.1.remove(&args.share_token);
    Ok(())
}
