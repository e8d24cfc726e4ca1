//! Pools of numbers, which hand numbers out in nvgpu's order.

use std::collections::BTreeSet;
use tegrarm_lock::Mutex;

/// A pool for channel ids. It hands out the highest number first, and the number that was freed last is handed out
/// next.
#[derive(Debug)]
pub(super) struct Stack {
    free: Mutex<Vec<u32>>,
    total: u32,
}

impl Stack {
    /// Makes a pool of the numbers `0..total`.
    pub(super) fn new(total: u32) -> Stack {
        Stack { free: Mutex::new((0..total).collect()), total }
    }

    pub(super) fn take(&self) -> Option<u32> {
        self.free.lock().pop()
    }

    pub(super) fn give_back(&self, id: u32) {
        self.free.lock().push(id);
    }

    pub(super) fn used(&self) -> usize {
        self.total as usize - self.free.lock().len()
    }
}

/// A pool for TSG ids and syncpoints. It hands out the lowest free number first.
#[derive(Debug)]
pub(super) struct Lowest {
    used: Mutex<BTreeSet<u32>>,
    total: u32,
}

impl Lowest {
    /// Makes a pool of the numbers `0..total`.
    pub(super) fn new(total: u32) -> Lowest {
        Lowest { used: Mutex::default(), total }
    }

    pub(super) fn take(&self) -> Option<u32> {
        let mut used = self.used.lock();
        let id =
            (0..self.total).zip(used.iter()).find(|(id, taken)| id != *taken).map_or(used.len() as u32, |(id, _)| id);
        (id < self.total && used.insert(id)).then_some(id)
    }

    pub(super) fn give_back(&self, id: u32) {
        self.used.lock().remove(&id);
    }

    pub(super) fn used(&self) -> usize {
        self.used.lock().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channel_ids_count_down_and_come_back_last_first() {
        let ids = Stack::new(512);
        assert_eq!([ids.take(), ids.take(), ids.take()], [Some(511), Some(510), Some(509)]);
        ids.give_back(511);
        ids.give_back(509);
        assert_eq!([ids.take(), ids.take(), ids.take()], [Some(509), Some(511), Some(508)]);
    }

    #[test]
    fn tsg_ids_are_the_lowest_free() {
        let ids = Lowest::new(3);
        assert_eq!([ids.take(), ids.take(), ids.take(), ids.take()], [Some(0), Some(1), Some(2), None]);
        ids.give_back(1);
        assert_eq!(ids.take(), Some(1));
    }
}
