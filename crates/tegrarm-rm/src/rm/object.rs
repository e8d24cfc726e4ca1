//! RM objects. Every handle stands for one.

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

/// One object of a client's tree. When the last reference is dropped, everything that the object holds is given back.
pub struct Object {
    /// The object's handle, which is unique within the client.
    pub handle: u32,
    /// The handle of its parent. A client is its own parent.
    pub parent: u32,
    /// Its class.
    pub class: &'static ClassRow,
    /// Its kind, with the state of that kind.
    pub kind: Kind,
}

/// The kind of an object, with its state.
pub enum Kind {
    /// The root of a client's tree.
    Client,
    /// The GPU.
    Device(Device),
    /// The GPU again. RM has subdevices because a board can have several GPUs.
    Subdevice,
    /// A buffer.
    Memory(Arc<Memory>),
    /// Another handle of a buffer.
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
    /// An object of an engine class, on a channel.
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

/// The state of a device object.
pub struct Device {
    /// The VA space that is used where a client names none. It uses no kernel resources before a channel needs it.
    pub default_space: Arc<VaSpace>,
}

/// The kinds of [`Kind`] without their state, for use in tables.
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
    /// The word for the kind in sentences and tables.
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
    /// The set of the kinds in a list.
    pub const fn of(list: &'static [Tag]) -> Tags {
        let (mut bits, mut at) = (0, 0);
        while at < list.len() {
            bits |= 1 << list[at] as u32;
            at += 1;
        }
        Tags { list, bits }
    }

    /// Whether a kind is in the set.
    #[inline]
    pub fn have(self, tag: Tag) -> bool {
        self.bits >> tag as u32 & 1 != 0
    }

    /// The words for the kinds in the set, for sentences and tables.
    pub fn words(self) -> String {
        if self.is_empty() {
            return "no object".to_owned();
        }
        let words: Vec<_> = self.list.iter().map(|tag| tag.word()).collect();
        words.join(", ")
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.bits == 0
    }
}

impl Kind {
    /// The kind of the object.
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

/// Makes the functions that return the object as one of its kinds. Their error says what the handle is and what was
/// expected.
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

    /// The channel, if the object is one.
    pub fn as_channel(&self) -> Option<&Arc<ChannelObject>> {
        match &self.kind {
            Kind::Channel(channel) => Some(channel),
            _ => None,
        }
    }

    /// The channel to which an engine object or a debugger belongs, while the channel lives.
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

/// The error for a handle that names no object.
#[cold]
pub fn unknown_object(client: u32, handle: u32) -> RmError {
    RmError::new(NV_ERR_OBJECT_NOT_FOUND, format!("client {client:#x} has no object {handle:#x}"))
}
