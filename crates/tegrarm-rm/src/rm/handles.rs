//! A map from handles to values. It is fast for the handles that the library chose, because these are consecutive.

use super::client::OBJECT_HANDLES;
use std::collections::BTreeMap;

/// The number of handles of a page. A page costs eight bytes for each.
const PAGE: usize = 256;
/// The number of handles in all pages that there can be. The last page ends a little behind [`OBJECT_HANDLES`].
const IN_PAGES: usize = ((OBJECT_HANDLES.end - OBJECT_HANDLES.start) as usize).next_multiple_of(PAGE);

/// The values of consecutive handles.
struct Page<T> {
    values: [Option<Box<T>>; PAGE],
    used: usize,
}

impl<T> Page<T> {
    fn new() -> Box<Page<T>> {
        Box::new(Page { values: [const { None }; PAGE], used: 0 })
    }
}

/// Values, found by handle.
pub struct HandleMap<T> {
    /// The values of the handles in [`OBJECT_HANDLES`], by the distance from the first of them. A page is there while one
    /// of its handles has a value. So a client that makes and frees many objects has a few pages, although each object
    /// has a handle of its own.
    chosen: Vec<Option<Box<Page<T>>>>,
    /// A page without values, for the next handle that needs one.
    spare: Option<Box<Page<T>>>,
    /// The values of all other handles: those that clients choose, and the client's own.
    others: BTreeMap<u32, T>,
    len: usize,
}

impl<T> Default for HandleMap<T> {
    fn default() -> HandleMap<T> {
        HandleMap { chosen: Vec::new(), spare: None, others: BTreeMap::new(), len: 0 }
    }
}

/// The distance of a handle from the first of those that the library chooses. For any other handle it is out of range.
fn distance(handle: u32) -> usize {
    handle.wrapping_sub(OBJECT_HANDLES.start) as usize
}

impl<T> HandleMap<T> {
    /// The value of a handle.
    pub fn get(&self, handle: u32) -> Option<&T> {
        let at = distance(handle);
        match self.chosen.get(at / PAGE) {
            Some(page) => page.as_ref()?.values[at % PAGE].as_deref(),
            None => self.others.get(&handle),
        }
    }

    /// The value of a handle, for changing it.
    pub fn get_mut(&mut self, handle: u32) -> Option<&mut T> {
        let at = distance(handle);
        match self.chosen.get_mut(at / PAGE) {
            Some(page) => page.as_mut()?.values[at % PAGE].as_deref_mut(),
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
        let at = distance(handle);
        if at >= IN_PAGES {
            self.others.insert(handle, value);
            return;
        }
        if at / PAGE >= self.chosen.len() {
            self.chosen.resize_with(at / PAGE + 1, || None);
        }
        let page = self.chosen[at / PAGE].get_or_insert_with(|| self.spare.take().unwrap_or_else(Page::new));
        page.used += 1;
        page.values[at % PAGE] = Some(Box::new(value));
    }

    /// Takes a handle's value away.
    pub fn remove(&mut self, handle: u32) -> Option<T> {
        let at = distance(handle);
        let value = match self.chosen.get_mut(at / PAGE) {
            Some(place) => {
                let page = place.as_mut()?;
                let value = page.values[at % PAGE].take().map(|boxed| *boxed);
                page.used -= usize::from(value.is_some());
                if page.used == 0 {
                    self.spare = place.take();
                }
                value
            }
            None => self.others.remove(&handle),
        };
        self.len -= usize::from(value.is_some());
        value
    }

    /// All handles with their values, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let pages = self.chosen.iter().zip((OBJECT_HANDLES.start..).step_by(PAGE));
        let chosen = pages.filter_map(|(page, first)| Some((page.as_ref()?, first))).flat_map(|(page, first)| {
            page.values.iter().zip(first..).filter_map(|(value, handle)| Some((handle, value.as_deref()?)))
        });
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

    #[test]
    fn pages_end_with_their_values() {
        let mut map = HandleMap::default();
        let pages = |map: &HandleMap<usize>| map.chosen.iter().flatten().count();
        map.insert(OBJECT_HANDLES.start, 0);
        for (number, handle) in OBJECT_HANDLES.enumerate().skip(1) {
            map.insert(handle, number);
            if number > 64 {
                assert_eq!(map.remove(handle - 64), Some(number - 64));
            }
            if number % (8 * PAGE) == 0 {
                assert!(pages(&map) <= 3, "{} pages after {number} handles", pages(&map));
            }
        }
        assert!(pages(&map) <= 3);
        assert_eq!((map.len(), map.get(OBJECT_HANDLES.start)), (65, Some(&0)));
        assert_eq!(map.chosen.len(), IN_PAGES / PAGE);
    }
}
