//! A map from handles to values. It is fast for the handles that the library chose, because these are consecutive.

use super::client::OBJECT_HANDLES;
use std::collections::BTreeMap;

/// Values, found by handle.
pub struct HandleMap<T> {
    /// The values of the handles in [`OBJECT_HANDLES`], indexed by the distance from the first of them.
    chosen: Vec<Option<Box<T>>>,
    /// The values of all other handles: those that clients choose, and the client's own.
    others: BTreeMap<u32, T>,
    len: usize,
}

impl<T> Default for HandleMap<T> {
    fn default() -> HandleMap<T> {
        HandleMap { chosen: Vec::new(), others: BTreeMap::new(), len: 0 }
    }
}

/// The index of a handle among the handles that the library chose. For any other handle the index is out of range.
fn index(handle: u32) -> usize {
    handle.wrapping_sub(OBJECT_HANDLES.start) as usize
}

impl<T> HandleMap<T> {
    /// The value of a handle.
    pub fn get(&self, handle: u32) -> Option<&T> {
        match self.chosen.get(index(handle)) {
            Some(slot) => slot.as_deref(),
            None => self.others.get(&handle),
        }
    }

    /// The value of a handle, for changing it.
    pub fn get_mut(&mut self, handle: u32) -> Option<&mut T> {
        match self.chosen.get_mut(index(handle)) {
            Some(slot) => slot.as_deref_mut(),
            None => self.others.get_mut(&handle),
        }
    }

    /// Whether a handle has a value.
    pub fn contains(&self, handle: u32) -> bool {
        self.get(handle).is_some()
    }

    /// Gives a value to a handle that has none.
    pub fn insert(&mut self, handle: u32, value: T) {
        self.len += 1;
        if !OBJECT_HANDLES.contains(&handle) {
            self.others.insert(handle, value);
            return;
        }
        let at = index(handle);
        if at >= self.chosen.len() {
            // A client may choose a handle far up in this range. Every handle below it then costs eight bytes.
            self.chosen.resize_with(at + 1, || None);
        }
        self.chosen[at] = Some(Box::new(value));
    }

    /// Takes a handle's value away.
    pub fn remove(&mut self, handle: u32) -> Option<T> {
        let value = match self.chosen.get_mut(index(handle)) {
            Some(slot) => slot.take().map(|boxed| *boxed),
            None => self.others.remove(&handle),
        };
        self.len -= usize::from(value.is_some());
        value
    }

    /// All handles with their values, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let chosen = self.chosen.iter().zip(OBJECT_HANDLES).filter_map(|(slot, h)| Some((h, slot.as_deref()?)));
        chosen.chain(self.others.iter().map(|(h, value)| (*h, value)))
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The map behaves like a plain map, for handles inside the range and outside of it.
        #[test]
        fn behaves_like_a_map(steps in proptest::collection::vec((any::<bool>(), 0u32..24, any::<u8>()), 0..200)) {
            let mut model = BTreeMap::new();
            let mut map = HandleMap::default();
            for (insert, pick, value) in steps {
                let handle = [1, OBJECT_HANDLES.start - 4, OBJECT_HANDLES.end - 4][pick as usize % 3] + pick;
                if insert && !map.contains(handle) {
                    map.insert(handle, value);
                    model.insert(handle, value);
                } else {
                    prop_assert_eq!(map.remove(handle), model.remove(&handle));
                }
                prop_assert_eq!(map.len(), model.len());
                prop_assert_eq!(map.get(handle), model.get(&handle));
            }
            let mut all: Vec<(u32, u8)> = map.iter().map(|(h, v)| (h, *v)).collect();
            all.sort_unstable();
            prop_assert_eq!(all, model.into_iter().collect::<Vec<_>>());
        }
    }
}
