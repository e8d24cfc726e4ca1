//! Debuggers: of a channel, with a session of nvgpu's when something needs one.

use super::channel::ChannelObject;
use crate::status::{During, RmResult};
use crate::tegra::DebugSession;
use once_cell::sync::OnceCell;
use std::sync::{Arc, Weak};
use tegrarm_kmd::Kmd;

/// A debugger. It keeps neither its channel nor a descriptor until it is asked for something.
pub struct DebuggerObject {
    /// Its channel, while that lives.
    pub channel: Weak<ChannelObject>,
    /// The channel's handle, as its client has it.
    pub channel_handle: u32,
    session: OnceCell<DebugSession>,
}

impl DebuggerObject {
    /// A debugger of a channel.
    pub fn new(channel: &Arc<ChannelObject>, channel_handle: u32) -> DebuggerObject {
        DebuggerObject { channel: Arc::downgrade(channel), channel_handle, session: OnceCell::new() }
    }

    /// Whether it is of this channel.
    pub fn is_of(&self, channel: &Arc<ChannelObject>) -> bool {
        std::ptr::eq(self.channel.as_ptr(), Arc::as_ptr(channel))
    }

    /// Its session on its channel, opened by the first call that needs it.
    ///
    /// # Errors
    /// That of [`open_session`].
    pub fn session(&self, kmd: &Arc<dyn Kmd>, channel: &Arc<ChannelObject>) -> RmResult<&DebugSession> {
        self.session.get_or_try_init(|| open_session(kmd, channel))
    }
}

/// A session on a channel.
///
/// # Errors
/// 0x05 when the node is missing, 0x1B when it may not be opened.
pub fn open_session(kmd: &Arc<dyn Kmd>, channel: &ChannelObject) -> RmResult<DebugSession> {
    let session = DebugSession::open(kmd).during(|| "opening nvgpu's debugger")?;
    session.bind(channel.channel()).during(|| "binding the debugger to its channel")?;
    Ok(session)
}
