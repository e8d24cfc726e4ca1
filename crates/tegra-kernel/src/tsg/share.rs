//! Share tokens, by which another ctrl node can open a group (docs/hardware/nvgpu-ctrl.md#open-tsg,
//! docs/hardware/nvgpu-tsg.md#share-tokens).

use super::{Tsg, TsgFile};
use crate::ctrl::Ctrl;
use crate::dispatch::{Call, Reply};
use parking_lot::Mutex;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use tegrarm_abi::nvgpu::r39::*;
use tegrarm_abi::nvgpu::tsg::*;
use tegrarm_kmd::Errno;

/// The largest number of unused tokens of a group: one less than its number of subcontexts.
const MAX_TOKENS: usize = super::MAX_VEIDS as usize - 1;

/// The size of an r39 token in bytes.
const TOKEN: usize = NVGPU_TSG_SHARE_TOKEN_SIZE as usize;

/// The group, source and target of a token.
#[derive(Debug)]
struct Grant {
    token: u64,
    tsg: Weak<Tsg>,
    source: u64,
    target: u64,
}

impl Grant {
    fn is_of(&self, tsg: &Arc<Tsg>) -> bool {
        Weak::as_ptr(&self.tsg) == Arc::as_ptr(tsg)
    }
}

/// Every unused token, and the ctrl nodes between which it is valid.
#[derive(Debug, Default)]
pub(crate) struct ShareTokens {
    grants: Mutex<Vec<Grant>>,
    opens: Mutex<Vec<Weak<Ctrl>>>,
}

impl ShareTokens {
    /// Enters a ctrl node, for which tokens can be made from now on.
    pub(crate) fn opened(&self, ctrl: &Arc<Ctrl>) {
        let mut opens = self.opens.lock();
        opens.retain(|open| open.strong_count() > 0);
        opens.push(Arc::downgrade(ctrl));
    }

    fn open(&self, instance: u64) -> Result<Arc<Ctrl>, Errno> {
        let live: Vec<_> = self.opens.lock().iter().filter_map(Weak::upgrade).collect();
        live.into_iter().find(|ctrl| ctrl.instance == instance).ok_or(Errno::EINVAL)
    }

    /// The group that a token opens for a ctrl node. The token cannot be used again.
    pub(crate) fn redeem(&self, token: u64, source: u64, target: u64) -> Option<Arc<Tsg>> {
        let grant = self.take(|g| (g.token, g.source, g.target) == (token, source, target))?;
        grant.tsg.upgrade()
    }

    fn take(&self, wanted: impl Fn(&Grant) -> bool) -> Option<Grant> {
        let mut grants = self.grants.lock();
        let at = grants.iter().position(wanted)?;
        Some(grants.remove(at))
    }

    /// Removes the tokens between a group and a ctrl node, after a file of the group that was opened through this node
    /// was closed.
    pub(super) fn closed(&self, tsg: &Arc<Tsg>, source: u64) {
        self.grants.lock().retain(|grant| grant.source != source || !grant.is_of(tsg));
    }
}

/// Checks the source and the target of a token. Neither may be 0, and the group must have been opened through the
/// source.
fn authorised(tsg: &Tsg, source: u64, target: u64) -> Result<(), Errno> {
    let known = source != 0 && target != 0 && tsg.state.lock().instances.contains(&source);
    if known { Ok(()) } else { Err(Errno::EINVAL) }
}

pub(super) fn get_token(call: &Call<'_>, file: &Arc<TsgFile>, args: &mut nvgpu_tsg_get_share_token_args) -> Reply {
    let (source, target) = (args.source_device_instance_id, args.target_device_instance_id);
    authorised(&file.tsg, source, target)?;
    let tokens = &call.kernel.tokens;
    let mut grants = tokens.grants.lock();
    if grants.iter().filter(|grant| grant.is_of(&file.tsg)).count() >= MAX_TOKENS {
        return Err(Errno::ENOSPC.into());
    }
    tokens.open(target)?;
    // Every ctrl node has its own sequence of tokens.
    let token = tokens.open(source)?.tokens.fetch_add(1, Ordering::Relaxed) + 1;
    grants.push(Grant { token, tsg: Arc::downgrade(&file.tsg), source, target });
    args.share_token = token;
    Ok(())
}

/// The two numbers of an r39 token: the instance from which it was made, and the count of that instance.
pub(crate) fn token_parts(token: &[u8; TOKEN]) -> (u64, u64) {
    let number = |at: usize| u64::from_le_bytes(token[at..at + 8].try_into().expect("eight bytes"));
    (number(0), number(8))
}

/// GET_SHARE_TOKEN of r39, which has no source field. The source is the ctrl node through which the group's file was
/// opened.
pub(super) fn get_token_r39(
    call: &Call<'_>,
    file: &Arc<TsgFile>,
    args: &mut nvgpu_tsg_get_share_token_args_r39,
) -> Reply {
    let source_device_instance_id = file.ctrl.as_ref().map_or(0, |ctrl| ctrl.instance);
    let target_device_instance_id = args.target_device_instance_id;
    let mut old =
        nvgpu_tsg_get_share_token_args { source_device_instance_id, target_device_instance_id, share_token: 0 };
    get_token(call, file, &mut old)?;
    args.share_token[..8].copy_from_slice(&source_device_instance_id.to_le_bytes());
    args.share_token[8..].copy_from_slice(&old.share_token.to_le_bytes());
    Ok(())
}

pub(super) fn revoke_token_r39(
    call: &Call<'_>,
    file: &Arc<TsgFile>,
    args: &mut nvgpu_tsg_revoke_share_token_args_r39,
) -> Reply {
    let (source_device_instance_id, share_token) = token_parts(&args.share_token);
    let target_device_instance_id = args.target_device_instance_id;
    let mut old =
        nvgpu_tsg_revoke_share_token_args { source_device_instance_id, target_device_instance_id, share_token };
    revoke_token(call, file, &mut old)
}

pub(super) fn revoke_token(
    call: &Call<'_>,
    file: &Arc<TsgFile>,
    args: &mut nvgpu_tsg_revoke_share_token_args,
) -> Reply {
    let (source, target) = (args.source_device_instance_id, args.target_device_instance_id);
    authorised(&file.tsg, source, target)?;
    let terms = (args.share_token, source, target);
    let revoked = call.kernel.tokens.take(|g| (g.token, g.source, g.target) == terms && g.is_of(&file.tsg));
    revoked.map(|_| ()).ok_or(Errno::EINVAL.into())
}
