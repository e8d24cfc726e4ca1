//! Handles: what a program holds in place of a pointer. A number that was never given out, or whose object has ended, is recognised.

use crate::result::{Answer, fail};
use std::sync::Arc;
use tegrarm_lock::RwLock;

/// Handles of one kind. A handle is the kind, how often its place was used, and the place: it looks like a pointer that nobody maps.
pub struct Handles<T> {
    kind: u64,
    what: &'static str,
    code: u32,
    places: RwLock<Places<T>>,
}

struct Places<T> {
    list: Vec<(u32, Option<Arc<T>>)>,
    free: Vec<u32>,
}

const PLACE_BITS: u32 = 22;
const TURN_BITS: u32 = 14;

impl<T> Handles<T> {
    /// An empty table. `code` is what a wrong handle is answered with.
    pub const fn new(kind: u64, what: &'static str, code: u32) -> Handles<T> {
        Handles { kind, what, code, places: RwLock::new(Places { list: Vec::new(), free: Vec::new() }) }
    }

    fn handle(&self, place: u32, turn: u32) -> usize {
        ((0x100 | self.kind) << (PLACE_BITS + TURN_BITS + 1)
            | u64::from(turn) << (PLACE_BITS + 1)
            | u64::from(place) << 1) as usize
    }

    /// The place and the turn of a handle of this kind.
    fn split(&self, handle: usize) -> Option<(usize, u32)> {
        let handle = handle as u64;
        let place = (handle >> 1) & ((1 << PLACE_BITS) - 1);
        let turn = (handle >> (PLACE_BITS + 1)) & ((1 << TURN_BITS) - 1);
        (self.handle(place as u32, turn as u32) as u64 == handle).then_some((place as usize, turn as u32))
    }

    /// Gives an object a handle.
    pub fn add(&self, object: Arc<T>) -> Answer<usize> {
        let mut places = self.places.write();
        if let Some(place) = places.free.pop() {
            let at = &mut places.list[place as usize];
            *at = ((at.0 + 1) & ((1 << TURN_BITS) - 1), Some(object));
            return Ok(self.handle(place, at.0));
        }
        let place = places.list.len() as u32;
        if place >> PLACE_BITS != 0 {
            fail!(crate::numbers::CUDA_ERROR_OUT_OF_MEMORY, "{place} handles of the kind {} are in use", self.what);
        }
        places.list.push((0, Some(object)));
        Ok(self.handle(place, 0))
    }

    /// Gives an object a handle that the object itself knows.
    pub fn add_with(&self, make: impl FnOnce(usize) -> T) -> Answer<(usize, Arc<T>)> {
        // The place is taken with nothing in it first, so that no other thread finds an unfinished object.
        let handle = {
            let mut places = self.places.write();
            match places.free.pop() {
                Some(place) => {
                    let at = &mut places.list[place as usize];
                    *at = ((at.0 + 1) & ((1 << TURN_BITS) - 1), None);
                    self.handle(place, at.0)
                }
                None => {
                    places.list.push((0, None));
                    self.handle(places.list.len() as u32 - 1, 0)
                }
            }
        };
        let object = Arc::new(make(handle));
        if let Some((place, _)) = self.split(handle) {
            self.places.write().list[place].1 = Some(object.clone());
        }
        Ok((handle, object))
    }

    /// Finds the object of a handle.
    pub fn get(&self, handle: usize) -> Answer<Arc<T>> {
        match self.find(handle) {
            Some(object) => Ok(object),
            None => fail!(self.code, "{handle:#x} is not a handle of the kind {}, or it has ended", self.what),
        }
    }

    /// Finds the object of a handle, or nothing.
    pub fn find(&self, handle: usize) -> Option<Arc<T>> {
        let (place, turn) = self.split(handle)?;
        let places = self.places.read();
        let at = places.list.get(place)?;
        if at.0 == turn { at.1.clone() } else { None }
    }

    /// Ends a handle.
    pub fn remove(&self, handle: usize) -> Answer<Arc<T>> {
        let found = self.split(handle).and_then(|(place, turn)| {
            let mut places = self.places.write();
            let at = places.list.get_mut(place)?;
            let object = if at.0 == turn { at.1.take() } else { None }?;
            places.free.push(place as u32);
            Some(object)
        });
        match found {
            Some(object) => Ok(object),
            None => fail!(self.code, "{handle:#x} is not a handle of the kind {}, or it has ended", self.what),
        }
    }

    /// All objects that have a handle.
    pub fn all(&self) -> Vec<Arc<T>> {
        self.places.read().list.iter().filter_map(|(_, object)| object.clone()).collect()
    }

    /// Ends all handles whose objects the caller does not want to keep, and gives the objects.
    pub fn remove_all(&self, ends: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let mut places = self.places.write();
        let mut ended = Vec::new();
        for place in 0..places.list.len() {
            if places.list[place].1.as_deref().is_some_and(&ends)
                && let Some(object) = places.list[place].1.take()
            {
                ended.push(object);
                places.free.push(place as u32);
            }
        }
        ended
    }
}
