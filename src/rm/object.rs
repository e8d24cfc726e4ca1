//! RM objects: what a handle stands for.

use super::channel::ChannelObject;
use super::classes::ClassRow;
use super::debugger::DebuggerObject;
use super::group::{ContextShare, Group};
use super::memory::Memory;
use super::profiler::ProfilerObject;
use super::usermode::Usermode;
use super::vaspace::{VaSpace, VirtualRange};
use crate::status::{RmError, RmResult};
use std::sync::{Arc, Weak};
use tegrarm_abi::rm::status::*;

/// One object of a client's tree. Dropping the last reference gives back everything it holds.
pub struct Object {
    /// Its handle, unique within the client.
    pub handle: u32,
    /// Its parent's handle; a client is its own parent.
    pub parent: u32,
    /// Its class.
    pub class: &'static ClassRow,
    /// What it is.
    pub kind: Kind,
}

/// What an object is, with its state.
pub enum Kind {
    /// The root of a client's tree.
    Client,
    /// The GPU.
    Device(Device),
    /// The GPU again: RM's subdevices exist for boards with several.
    Subdevice,
    /// A buffer.
    Memory(Arc<Memory>),
    /// Another name of a buffer.
    ContextDma(Arc<Memory>),
    /// A range of a VA space into which buffers can be mapped.
    Virtual(Arc<VirtualRange>),
    /// A VA space.
    VaSpace(Arc<VaSpace>),
    /// A channel group.
    Group(Arc<Group>),
    /// A subcontext of a channel group.
    ContextShare(Arc<ContextShare>),
    /// A channel.
    Channel(Arc<ChannelObject>),
    /// An engine class on a channel.
    Engine(Weak<ChannelObject>),
    /// The doorbell page.
    Usermode(Usermode),
    /// A debugger of one channel.
    Debugger(DebuggerObject),
    /// A profiler of the GPU.
    Profiler(Arc<ProfilerObject>),
    /// A notification that never fires.
    Event,
}

/// State of a device object.
pub struct Device {
    /// The VA space that is meant where a client names none. Costs nothing until a channel uses it.
    pub default_space: Arc<VaSpace>,
}

/// [`Kind`] without its state: what tables name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Tag {
    Client,
    Device,
    Subdevice,
    Memory,
    ContextDma,
    Virtual,
    VaSpace,
    Group,
    ContextShare,
    Channel,
    Engine,
    Usermode,
    Debugger,
    Profiler,
    Event,
}

impl Tag {
    /// The word for it in sentences and tables.
    pub fn word(self) -> &'static str {
        match self {
            Tag::Client => "client",
            Tag::Device => "device",
            Tag::Subdevice => "subdevice",
            Tag::Memory => "memory",
            Tag::ContextDma => "context DMA",
            Tag::Virtual => "virtual memory",
            Tag::VaSpace => "VA space",
            Tag::Group => "channel group",
            Tag::ContextShare => "context share",
            Tag::Channel => "channel",
            Tag::Engine => "engine object",
            Tag::Usermode => "usermode region",
            Tag::Debugger => "debugger",
            Tag::Profiler => "profiler",
            Tag::Event => "event",
        }
    }
}

/// A set of kinds, as tables write it.
#[derive(Clone, Copy)]
pub struct Tags {
    list: &'static [Tag],
    bits: u32,
}

impl Tags {
    /// The set of what is listed.
    pub const fn of(list: &'static [Tag]) -> Tags {
        let (mut bits, mut at) = (0, 0);
        while at < list.len() {
            bits |= 1 << list[at] as u32;
            at += 1;
        }
        Tags { list, bits }
    }

    /// Whether a kind is in it.
    #[inline]
    pub fn have(self, tag: Tag) -> bool {
        self.bits >> tag as u32 & 1 != 0
    }

    /// The words for its kinds, in sentences and tables.
    pub fn words(self) -> String {
        if self.is_empty() {
            return "no object".to_owned();
        }
        let words: Vec<_> = self.list.iter().map(|tag| tag.word()).collect();
        words.join(", ")
    }

    /// Whether no kind is in it.
    pub fn is_empty(self) -> bool {
        self.bits == 0
    }
}

impl Kind {
    /// Which kind it is.
    pub fn tag(&self) -> Tag {
        match self {
            Kind::Client => Tag::Client,
            Kind::Device(_) => Tag::Device,
            Kind::Subdevice => Tag::Subdevice,
            Kind::Memory(_) => Tag::Memory,
            Kind::ContextDma(_) => Tag::ContextDma,
            Kind::Virtual(_) => Tag::Virtual,
            Kind::VaSpace(_) => Tag::VaSpace,
            Kind::Group(_) => Tag::Group,
            Kind::ContextShare(_) => Tag::ContextShare,
            Kind::Channel(_) => Tag::Channel,
            Kind::Engine(_) => Tag::Engine,
            Kind::Usermode(_) => Tag::Usermode,
            Kind::Debugger(_) => Tag::Debugger,
            Kind::Profiler(_) => Tag::Profiler,
            Kind::Event => Tag::Event,
        }
    }
}

/// Typed access: `Err(status)` names what the handle is and what was expected.
macro_rules! typed {
    ($(#[$doc:meta])* $name:ident, $($kind:ident)|+ => $t:ty, $word:literal) => {
        $(#[$doc])*
        ///
        /// # Errors
        /// `status`, with a sentence.
        pub fn $name(&self, status: u32) -> RmResult<&$t> {
            match &self.kind {
                $(Kind::$kind(it))|+ => Ok(it),
                _ => Err(self.is_no($word, status)),
            }
        }
    };
}

impl Object {
    typed!(/** The buffer behind a memory object or context DMA. */ memory, Memory | ContextDma => Arc<Memory>, "memory");
    typed!(/** The VA space. */ vaspace, VaSpace => Arc<VaSpace>, "a VA space");
    typed!(/** The virtual range. */ virtual_range, Virtual => Arc<VirtualRange>, "a mapper (class 0x70 or 0x50a0)");
    typed!(/** The channel group. */ group, Group => Arc<Group>, "a channel group");
    typed!(/** The context share. */ context_share, ContextShare => Arc<ContextShare>, "a context share");
    typed!(/** The channel. */ channel, Channel => Arc<ChannelObject>, "a channel");
    typed!(/** The profiler. */ profiler, Profiler => Arc<ProfilerObject>, "a profiler");

    #[cold]
    fn is_no(&self, wanted: &str, status: u32) -> RmError {
        RmError::new(status, format!("{self} is no {}", wanted.trim_start_matches("a ")))
    }

    /// The channel, if it is one.
    pub fn as_channel(&self) -> Option<&Arc<ChannelObject>> {
        match &self.kind {
            Kind::Channel(channel) => Some(channel),
            _ => None,
        }
    }

    /// The channel an engine object or debugger belongs to, while it lives.
    pub fn owning_channel(&self) -> Option<Arc<ChannelObject>> {
        match &self.kind {
            Kind::Channel(channel) => Some(channel.clone()),
            Kind::Engine(channel) => channel.upgrade(),
            Kind::Debugger(debugger) => debugger.channel.upgrade(),
            _ => None,
        }
    }
}

impl std::fmt::Display for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "object {:#x} ({})", self.handle, self.class.name)
    }
}

/// A handle that names nothing.
#[cold]
pub fn unknown_object(client: u32, handle: u32) -> RmError {
    RmError::new(NV_ERR_OBJECT_NOT_FOUND, format!("client {client:#x} has no object {handle:#x}"))
}
