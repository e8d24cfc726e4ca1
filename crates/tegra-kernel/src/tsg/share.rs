//! Share tokens, by which another ctrl node can open a group (docs/hardware/nvgpu-ctrl.md#open-tsg,
//! docs/hardware/nvgpu-tsg.md#share-tokens).

use super::subcontext::MAX_VEIDS;
use std::fmt::Debug;
use std::sync::{Arc, Weak};
use tegrarm_abi::nvgpu::r39::NVGPU_TSG_SHARE_TOKEN_SIZE;
use tegrarm_kmd::Errno;
use tegrarm_lock::Mutex;

/// The largest number of unused tokens of a group: one less than its number of subcontexts.
const MAX_TOKENS: usize = MAX_VEIDS as usize - 1;

/// The size of an r39 token in bytes.
const TOKEN: usize = NVGPU_TSG_SHARE_TOKEN_SIZE as usize;

/// An open ctrl node, through which groups are opened and between which they are shared.
pub(crate) trait Instance: Debug + Send + Sync {
    /// The number of the node.
    fn id(&self) -> u64;

    /// Counts one more token that is made from it. Every node has its own sequence of tokens.
    fn next_token(&self) -> u64;
}

/// The group, source and target of a token.
#[derive(Debug)]
struct Grant<T> {
    token: u64,
    tsg: Weak<T>,
    source: u64,
    target: u64,
}

impl<T> Grant<T> {
    fn is_of(&self, tsg: &Arc<T>) -> bool {
        Weak::as_ptr(&self.tsg) == Arc::as_ptr(tsg)
    }
}

/// Every unused token of groups, and the ctrl nodes between which it is valid.
#[derive(Debug)]
pub(crate) struct ShareTokens<T> {
    grants: Mutex<Vec<Grant<T>>>,
    opens: Mutex<Vec<Weak<dyn Instance>>>,
}

impl<T> Default for ShareTokens<T> {
    fn default() -> Self {
        ShareTokens { grants: Mutex::default(), opens: Mutex::default() }
    }
}

impl<T> ShareTokens<T> {
    /// Enters a ctrl node, for which tokens can be made from now on.
    pub(crate) fn opened(&self, node: Weak<dyn Instance>) {
        let mut opens = self.opens.lock();
        opens.retain(|open| open.strong_count() > 0);
        opens.push(node);
    }

    fn open(&self, instance: u64) -> Result<Arc<dyn Instance>, Errno> {
        let live: Vec<_> = self.opens.lock().iter().filter_map(Weak::upgrade).collect();
        live.into_iter().find(|node| node.id() == instance).ok_or(Errno::EINVAL)
    }

    /// Makes a token. The error is `ENOSPC` if the group has as many as it can have, and `EINVAL` for a node that is not
    /// open.
    pub(crate) fn grant(&self, tsg: &Arc<T>, source: u64, target: u64) -> Result<u64, Errno> {
        let mut grants = self.grants.lock();
        if grants.iter().filter(|grant| grant.is_of(tsg)).count() >= MAX_TOKENS {
            return Err(Errno::ENOSPC);
        }
        self.open(target)?;
        let token = self.open(source)?.next_token();
        grants.push(Grant { token, tsg: Arc::downgrade(tsg), source, target });
        Ok(token)
    }

    /// The group that a token opens for a ctrl node. The token cannot be used again.
    pub(crate) fn redeem(&self, token: u64, source: u64, target: u64) -> Option<Arc<T>> {
        let grant = self.take(|g| (g.token, g.source, g.target) == (token, source, target))?;
        grant.tsg.upgrade()
    }

    /// Takes an unused token of a group back. The error is `EINVAL` if there is none.
    pub(crate) fn revoke(&self, tsg: &Arc<T>, token: u64, source: u64, target: u64) -> Result<(), Errno> {
        let terms = (token, source, target);
        let revoked = self.take(|g| (g.token, g.source, g.target) == terms && g.is_of(tsg));
        revoked.map(|_| ()).ok_or(Errno::EINVAL)
    }

    fn take(&self, wanted: impl Fn(&Grant<T>) -> bool) -> Option<Grant<T>> {
        let mut grants = self.grants.lock();
        let at = grants.iter().position(wanted)?;
        Some(grants.remove(at))
    }

    /// Removes the tokens between a group and a ctrl node, after a file of the group that was opened through this node
    /// was closed.
    pub(super) fn closed(&self, tsg: &Arc<T>, source: u64) {
        self.grants.lock().retain(|grant| grant.source != source || !grant.is_of(tsg));
    }
}

/// The two numbers of an r39 token: the instance from which it was made, and the count of that instance.
pub(crate) fn token_parts(token: &[u8; TOKEN]) -> (u64, u64) {
    let number = |at: usize| u64::from_le_bytes(token[at..at + 8].try_into().expect("eight bytes"));
    (number(0), number(8))
}
