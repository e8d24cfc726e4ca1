//! Sequences of the Resource Manager's verbs, and a model of the objects that are alive.
//!
//! The model holds for both doors, which differ in how a verb is called. Whatever the parameters are, these hold:
//! a verb on something that is not there is refused, a new handle is nobody else's, what a free takes with it is gone,
//! and nothing else goes. Command 0 does nothing, so it tells whether an object is there.

use crate::Input;
use crate::program::no_bug;
use tegrarm::rm::classes::{CLASSES, ClassRow, Params};
use tegrarm::rm::controls::CONTROLS;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::status::*;

/// The size of the memory to which pointers in parameters point.
const SCRATCH: usize = 1 << 16;
/// No class has more bytes of parameters.
const MOST_PARAMS: usize = 1 << 14;
/// The most objects that are remembered. A longer input is cut here.
const OBJECTS: usize = 120;

/// The verbs of a door. Each returns a status.
pub trait Verbs {
    /// RM_ALLOC. `size` is what the call is told of the parameters. Also returns the handle.
    fn alloc(&mut self, at: [u32; 3], class: u32, params: Option<&mut [u8]>, size: u32) -> (u32, u32);
    /// RM_CONTROL.
    fn control(&mut self, client: u32, object: u32, cmd: u32, params: &mut [u8]) -> u32;
    /// RM_FREE.
    fn free(&mut self, client: u32, object: u32) -> u32;
    /// RM_DUP_OBJECT, of an object of a client, to a client, a parent and a handle. Also returns the handle.
    fn dup(&mut self, at: [u32; 3], client: u32, object: u32) -> (u32, u32);
    /// RM_MAP_MEMORY_DMA: client, device, mapper and memory; offset, length and GPU address; flags. Also returns the GPU address.
    fn map_dma(&mut self, objects: [u32; 4], range: [u64; 3], flags: u32) -> (u32, u64);
    /// RM_UNMAP_MEMORY_DMA.
    fn unmap_dma(&mut self, objects: [u32; 4], at: u64) -> u32;
    /// RM_MAP_MEMORY: client, device and memory; offset and length. Also returns what unmaps it.
    fn map(&mut self, objects: [u32; 3], offset: u64, length: u64) -> (u32, u64);
    /// RM_UNMAP_MEMORY.
    fn unmap(&mut self, objects: [u32; 3], at: u64) -> u32;
}

#[derive(Clone, Copy)]
struct Object {
    client: u32,
    handle: u32,
    parent: u32,
    class: u32,
    alive: bool,
}

/// A program that makes verbs, and what it knows.
pub struct Objects<V> {
    pub door: V,
    known: Vec<Object>,
    /// Addresses that mappings got.
    addresses: Vec<u64>,
    scratch: Box<[u8]>,
}

impl<V: Verbs> Objects<V> {
    /// Makes a client with a device and a subdevice, without which little can be made.
    pub fn new(door: V) -> Objects<V> {
        let mut objects =
            Objects { door, known: vec![], addresses: vec![], scratch: vec![0; SCRATCH].into_boxed_slice() };
        let client = objects.make([0; 3], NV01_ROOT_CLIENT, false);
        let device = objects.make([client, client, 0], NV01_DEVICE_0, true);
        objects.make([client, device, 0], NV20_SUBDEVICE_0, true);
        objects.make([client, device, 0], FERMI_VASPACE_A, true);
        objects
    }

    /// Makes an object, with zeros for parameters if some are given.
    fn make(&mut self, at: [u32; 3], class: u32, is_given: bool) -> u32 {
        let mut params = vec![0; MOST_PARAMS];
        let (status, handle) = self.door.alloc(at, class, is_given.then_some(&mut params[..]), 0);
        assert_eq!(status, NV_OK, "class {class:#x} can be made of zeros");
        self.came(at, handle, class);
        handle
    }

    fn came(&mut self, [client, parent, wanted]: [u32; 3], handle: u32, class: u32) {
        assert!(handle != 0 && (wanted == 0 || wanted == handle), "the handle is {handle:#x}, wanted {wanted:#x}");
        let client = if client == 0 { handle } else { client };
        let parent = if parent == 0 { client } else { parent };
        assert!(!self.is_alive(client, handle), "the handle {handle:#x} is another's");
        self.known.retain(|o| (o.client, o.handle) != (client, handle));
        self.known.push(Object { client, handle, parent, class, alive: true });
    }

    fn is_alive(&self, client: u32, handle: u32) -> bool {
        self.known.iter().any(|o| o.alive && (o.client, o.handle) == (client, handle))
    }

    fn some(&self, input: &mut Input) -> Object {
        let strange = Object { client: 0xdead, handle: 0xbeef, parent: 0, class: 0, alive: false };
        match input.byte() {
            0..8 => strange,
            n => self.known.get(usize::from(n) % self.known.len().max(1)).copied().unwrap_or(strange),
        }
    }

    /// A known object of a class like this one, or of a client.
    fn some_of(&self, input: &mut Input, client: u32, classes: &[u32]) -> u32 {
        let fits = |o: &&Object| o.client == client && (classes.is_empty() || classes.contains(&o.class));
        let all: Vec<u32> = self.known.iter().filter(fits).map(|o| o.handle).collect();
        if all.is_empty() || input.byte() % 16 == 0 { self.some(input).handle } else { *input.pick(&all) }
    }

    /// A number for a field. A pointer is one to memory that nobody else uses, or one to none.
    fn number(&self, input: &mut Input) -> u64 {
        const NUMBERS: [u64; 16] = [
            0,
            1,
            2,
            3,
            4,
            8,
            0x100,
            0x400,
            0x1000,
            0x1_0000,
            0x20_0000,
            0x8000_0000,
            0xffff_ffff,
            1 << 63,
            u64::MAX,
            5,
        ];
        let inside = self.scratch.as_ptr() as u64 + 8 * u64::from(input.byte());
        match input.byte() % 8 {
            0 | 1 => self.some(input).handle.into(),
            2 => self.some(input).client.into(),
            3 => inside,
            4 => self.addresses.get(usize::from(input.byte()) % self.addresses.len().max(1)).copied().unwrap_or(0),
            5 => u64::from(input.byte()),
            _ => *input.pick(&NUMBERS),
        }
    }

    /// Parameters: zeros, with a few fields that are not.
    pub fn params(&self, input: &mut Input, len: usize) -> Vec<u8> {
        let mut params = vec![0; len];
        for _ in 0..input.byte() % 8 {
            let at = 4 * usize::from(u16::from_le_bytes(input.bytes())) % len.max(1);
            let wide = at % 8 == 0 && input.byte() % 2 == 0;
            let bytes = self.number(input).to_le_bytes();
            let bytes = if wide { &bytes[..] } else { &bytes[..4] };
            params[at..].iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        }
        params
    }

    /// Makes one verb.
    pub fn step(&mut self, input: &mut Input) {
        match input.byte() % 16 {
            0..=4 => self.alloc(input),
            5 | 6 => self.free(input),
            7..=10 => self.control(input),
            11 => self.dup(input),
            12 | 13 => self.map_dma(input),
            14 => self.map(input),
            _ => self.look(false),
        }
    }

    fn alloc(&mut self, input: &mut Input) {
        let row: &ClassRow = *input.pick(&CLASSES.iter().collect::<Vec<_>>());
        let parent = self.some(input);
        let client = if input.byte() % 16 == 0 { self.some(input).client } else { parent.client };
        let wanted = match input.byte() % 8 {
            0 => self.some(input).handle,
            1 => 0x7000_0000 | u32::from(input.byte()),
            _ => 0,
        };
        let at = if row.is_client() { [0, 0, wanted] } else { [client, parent.handle, wanted] };
        let sizes = match row.params {
            Params::None => &[][..],
            Params::Optional(sizes) | Params::Required(sizes) => sizes,
        };
        let len = if sizes.is_empty() { 0 } else { *input.pick(sizes) };
        let told = if input.byte() % 16 == 0 { u32::from(input.byte()) } else { len as u32 };
        let mut params = self.params(input, len);
        // The class that it is told decides how many bytes the call reads.
        params.resize(MOST_PARAMS, 0);
        let class = if input.byte() == 0 { self.number(input) as u32 } else { row.number };
        let given = (len > 0).then_some(&mut params[..]);
        let (status, handle) = self.door.alloc(at, class, given, told);
        if no_bug(status) == NV_OK {
            let is_root = at[0] == 0 && at[1] == 0;
            let parent = if at[1] == 0 { at[0] } else { at[1] };
            assert!(is_root || self.is_alive(at[0], parent), "an object below {parent:#x}, which is not there");
            self.came(at, handle, class);
        }
    }

    fn free(&mut self, input: &mut Input) {
        let object = self.some(input);
        // Clients are freed less often, because everything goes with one.
        if object.client == object.handle && input.byte() % 4 != 0 {
            return;
        }
        let there = self.is_alive(object.client, object.client);
        let status = no_bug(self.door.free(object.client, object.handle));
        assert_eq!(status == NV_OK, there, "freeing {:#x} of {:#x}: {status:#x}", object.handle, object.client);
        if there {
            self.went(object.client, object.handle);
            self.look(true);
        }
    }

    /// Notes that an object has gone, with what is below it.
    fn went(&mut self, client: u32, handle: u32) {
        for at in 0..self.known.len() {
            let o = self.known[at];
            if o.alive && o.client == client && o.handle == handle {
                self.known[at].alive = false;
            }
        }
        let below: Vec<u32> = self
            .known
            .iter()
            .filter(|o| o.alive && (o.client, o.parent) == (client, handle))
            .map(|o| o.handle)
            .collect();
        below.into_iter().for_each(|child| self.went(client, child));
    }

    /// Asks every object whether it is there. After a free, those may have gone that were made of what was freed.
    fn look(&mut self, may_have_gone: bool) {
        for at in 0..self.known.len() {
            let o = self.known[at];
            match self.door.control(o.client, o.handle, 0, &mut []) {
                NV_OK => assert!(o.alive, "{:#x} of {:#x} is gone, and answers", o.handle, o.client),
                _ if !o.alive => {}
                NV_ERR_OBJECT_NOT_FOUND if may_have_gone => self.known[at].alive = false,
                other => panic!("{:#x} of {:#x} (alive: {}) answers {other:#x}", o.handle, o.client, o.alive),
            }
        }
    }

    fn control(&mut self, input: &mut Input) {
        let row = *input.pick(&CONTROLS.iter().collect::<Vec<_>>());
        let fits: Vec<Object> = self.known.iter().filter(|o| o.class != 0 && o.alive).copied().collect();
        let object = if input.byte() % 4 == 0 || fits.is_empty() { self.some(input) } else { *input.pick(&fits) };
        // A control that is refused has no size.
        let odd = row.sizes.is_empty() || input.byte().is_multiple_of(16);
        let len = if odd { usize::from(input.byte()) } else { *input.pick(row.sizes) };
        let mut params = self.params(input, len);
        let before = params.clone();
        let status = no_bug(self.door.control(object.client, object.handle, row.cmd, &mut params));
        assert!(status != NV_OK || self.is_alive(object.client, object.handle), "{} of what is not there", row.name);
        assert!(status == NV_OK || params == before, "{} failed and changed its parameters", row.name);
    }

    fn dup(&mut self, input: &mut Input) {
        let (source, parent) = (self.some(input), self.some(input));
        let at = [parent.client, parent.handle, if input.byte() % 8 == 0 { self.some(input).handle } else { 0 }];
        let (status, handle) = self.door.dup(at, source.client, source.handle);
        if no_bug(status) == NV_OK {
            let both = self.is_alive(source.client, source.handle) && self.is_alive(parent.client, parent.handle);
            assert!(both, "a duplicate of or below what is not there");
            self.came(at, handle, source.class);
        }
    }

    fn map_dma(&mut self, input: &mut Input) {
        let client = self.some(input).client;
        let device = self.some_of(input, client, &[NV01_DEVICE_0, NV20_SUBDEVICE_0]);
        let dma = self.some_of(input, client, &[NV01_MEMORY_VIRTUAL, NV50_MEMORY_VIRTUAL]);
        let memory = self.some_of(input, client, &[NV01_MEMORY_LOCAL_USER, NV01_MEMORY_SYSTEM]);
        let objects = [client, device, dma, memory];
        if input.byte() % 4 == 0 {
            let at = self.number(input);
            no_bug(self.door.unmap_dma(objects, at));
            return;
        }
        let range = [self.number(input), self.number(input), self.number(input)];
        let flags = [0, 0x8000, 0x8110, 1][usize::from(input.byte()) % 4];
        let (status, at) = self.door.map_dma(objects, range, flags);
        if no_bug(status) == NV_OK {
            let all = [device, dma, memory].iter().all(|handle| self.is_alive(client, *handle));
            assert!(all, "a mapping of what is not there");
            self.addresses.push(at);
        }
    }

    fn map(&mut self, input: &mut Input) {
        let client = self.some(input).client;
        let device = self.some_of(input, client, &[NV01_DEVICE_0, NV20_SUBDEVICE_0]);
        let memory = self.some_of(input, client, &[NV01_MEMORY_LOCAL_USER, NV01_MEMORY_SYSTEM, TURING_USERMODE_A]);
        let objects = [client, device, memory];
        if input.byte() % 4 == 0 {
            let at = self.number(input);
            no_bug(self.door.unmap(objects, at));
            return;
        }
        let (status, at) = self.door.map(objects, self.number(input), self.number(input));
        if no_bug(status) == NV_OK {
            assert!(self.is_alive(client, device) && self.is_alive(client, memory), "a mapping of what is not there");
            self.addresses.push(at);
        }
    }

    /// Notes that the clients that satisfy `which` have gone with all they had.
    pub fn clients_went(&mut self, which: impl Fn(u32) -> bool) {
        self.known.iter_mut().filter(|o| which(o.client)).for_each(|o| o.alive = false);
    }

    /// Whether there is room for another step.
    pub fn has_room(&self) -> bool {
        self.known.len() < OBJECTS
    }

    /// Frees every client. Nothing answers any more.
    pub fn end(mut self) -> V {
        self.look(false);
        for client in
            self.known.iter().filter(|o| o.alive && o.client == o.handle).map(|o| o.handle).collect::<Vec<_>>()
        {
            assert_eq!(no_bug(self.door.free(client, client)), NV_OK);
            self.clients_went(|other| other == client);
        }
        self.look(false);
        self.door
    }
}
