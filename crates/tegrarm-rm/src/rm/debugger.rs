//! Debuggers of channels. A debugger opens a session of nvgpu's debugger when a call needs one.

use super::channel::ChannelObject;
use crate::status::{During, RmResult};
use crate::tegra::DebugSession;
use once_cell::sync::OnceCell;
use std::sync::{Arc, Weak};
use tegrarm_kmd::Kmd;

/// A debugger. It keeps neither its channel nor a descriptor until a call needs them.
pub struct DebuggerObject {
    /// The channel, for as long as it exists.
    pub channel: Weak<ChannelObject>,
    /// The handle of the channel in its client.
    pub channel_handle: u32,
    session: OnceCell<DebugSession>,
}

impl DebuggerObject {
    /// Makes a debugger of a channel.
    pub fn new(channel: &Arc<ChannelObject>, channel_handle: u32) -> DebuggerObject {
        DebuggerObject { channel: Arc::downgrade(channel), channel_handle, session: OnceCell::new() }
    }

    /// Whether this is a debugger of `channel`.
    pub fn is_of(&self, channel: &Arc<ChannelObject>) -> bool {
        std::ptr::eq(self.channel.as_ptr(), Arc::as_ptr(channel))
    }

    /// The debugger's session on its channel. The first call that needs it opens it.
    ///
    /// # Errors
    /// Those of [`open_session`].
    pub fn session(&self, kmd: &Arc<dyn Kmd>, channel: &Arc<ChannelObject>) -> RmResult<&DebugSession> {
        self.session.get_or_try_init(|| open_session(kmd, channel))
    }
}

/// Opens a session on a channel.
///
/// # Errors
/// `NV_ERR_CARD_NOT_PRESENT` if the node is missing, and `NV_ERR_INSUFFICIENT_PERMISSIONS` if it may not be opened.
pub fn open_session(kmd: &Arc<dyn Kmd>, channel: &ChannelObject) -> RmResult<DebugSession> {
    let session = DebugSession::open(kmd).during(|| "opening nvgpu's debugger")?;
    session.bind(channel.channel()).during(|| "binding the debugger to its channel")?;
    Ok(session)
}
