//! Where the instructions of an image are: its stretches of code, wherever these lie in memory.
//!
//! A kernel and a function that it calls may be gigabytes apart. An image has only the code that is reached, so that the distance
//! makes no difference. All places are relative to the entry point, in instructions.

use std::collections::BTreeSet;
use std::ops::Range;

/// So many instructions between others belong to the image, too, although nothing is known to lead there: they may be the targets of
/// a jump table.
const GAP: i64 = 1 << 12;

/// The index of a place outside of the image.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Instructions that follow each other in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    /// Where the first one is.
    first: i64,
    /// The index of the first one.
    start: u32,
    /// The number of instructions.
    len: u32,
}

impl Stretch {
    /// The place behind the last instruction.
    fn end(&self) -> i64 {
        self.first + i64::from(self.len)
    }

    /// The index of a place that is inside, or at the end.
    fn index(&self, place: i64) -> Option<u32> {
        let within = place.wrapping_sub(self.first) as u64;
        (within <= self.len.into()).then(|| self.start + within as u32)
    }
}

/// The stretches of an image, in the order of their addresses. Indices count the instructions of one after another, and behind each
/// stretch its end. A warp that comes to an end has left the code that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places(Vec<Stretch>);

impl Places {
    /// The stretches that have all of these places. If there is room for `most` instructions, the gaps between those of the `own` ones that are close
    /// to each other are filled. Other code may lie between a kernel and a function that it calls by its address.
    pub(super) fn of(all: &BTreeSet<i64>, own: &BTreeSet<i64>, most: usize) -> Places {
        let mut room = most.saturating_sub(all.len()) as i64;
        let mut stretches: Vec<Stretch> = Vec::new();
        for &at in all {
            let fills = |end: i64| at == end || own.contains(&at) && own.contains(&(end - 1));
            let start = match stretches.last_mut() {
                Some(last) if at - last.end() <= GAP.min(room) && fills(last.end()) => {
                    room -= at - last.end();
                    last.len = (at - last.first) as u32 + 1;
                    continue;
                }
                Some(last) => last.start + last.len + 1,
                None => 0,
            };
            stretches.push(Stretch { first: at, start, len: 1 });
        }
        Places(stretches)
    }

    /// The number of indices.
    pub(super) fn count(&self) -> u32 {
        self.0.last().map_or(0, |last| last.start + last.len + 1)
    }

    /// The index of the instruction at a place, if it is in the image.
    #[inline]
    pub(super) fn index(&self, place: i64) -> Option<u32> {
        self.0.iter().find(|stretch| place < stretch.end()).and_then(|stretch| stretch.index(place))
    }

    /// The index of a place of another image that has no code that this one lacks. It may be an end.
    pub(super) fn moved(&self, from: &Places, at: u32) -> u32 {
        let place = from.place(at);
        let at_end = || self.0.iter().find_map(|stretch| stretch.index(place));
        self.index(place).or_else(at_end).unwrap_or(self.count().saturating_sub(1))
    }

    /// The place with an index. Ends have one, too.
    #[inline]
    pub(super) fn place(&self, at: u32) -> i64 {
        let stretch = self.0.iter().rfind(|stretch| stretch.start <= at);
        stretch.map_or(0, |stretch| stretch.first + i64::from(at - stretch.start))
    }

    /// For each index the place of its instruction, or `None` for an end.
    pub(super) fn all(&self) -> impl Iterator<Item = Option<i64>> {
        self.0.iter().flat_map(|stretch| (stretch.first..stretch.end()).map(Some).chain([None]))
    }

    /// The places of each stretch, and the index of the first one. The stretch with the entry point comes last.
    pub(super) fn stretches(&self) -> impl Iterator<Item = (Range<i64>, u32)> {
        let has_entry = |stretch: &&Stretch| (stretch.first..stretch.end()).contains(&0);
        let others = self.0.iter().filter(move |stretch| !has_entry(stretch));
        let all = others.chain(self.0.iter().filter(has_entry));
        all.map(|stretch| (stretch.first..stretch.end(), stretch.start))
    }

    /// Whether all instructions of another image are in this one.
    pub(super) fn cover(&self, other: &Places) -> bool {
        let within = |inner: &Stretch| self.0.iter().any(|s| s.first <= inner.first && inner.end() <= s.end());
        other.0.iter().all(within)
    }
}

#[cfg(test)]
mod tests {
    //! Indices of places, and places of indices.

    use super::*;

    fn places(all: impl IntoIterator<Item = i64>) -> Places {
        let all = all.into_iter().collect();
        Places::of(&all, &all, 1 << 16)
    }

    const FAR: i64 = 1 << 40;

    #[test]
    fn every_place_has_an_index_and_every_index_a_place() {
        let of = places([-FAR, -FAR + 1, -3, 0, 1, 5, FAR]);
        let indices: Vec<_> = of.all().collect();
        let near = (-3..=5).map(Some);
        let want: Vec<_> =
            [Some(-FAR), Some(-FAR + 1), None].into_iter().chain(near).chain([None, Some(FAR), None]).collect();
        assert_eq!((indices.as_slice(), of.count() as usize), (want.as_slice(), want.len()));
        for (at, place) in (0..).zip(indices) {
            match place {
                Some(place) => assert_eq!((of.place(at), of.index(place)), (place, Some(at))),
                None => assert_eq!(of.index(of.place(at)), None, "the end of a stretch"),
            }
        }
        for outside in [i64::MIN, -FAR - 1, -FAR + 2, -4, 6, FAR - 1, FAR + 1, i64::MAX] {
            assert_eq!(of.index(outside), None, "{outside}");
        }
        let stretches: Vec<_> = of.stretches().collect();
        assert_eq!(
            stretches,
            [(-FAR..-FAR + 2, 0), (FAR..FAR + 1, 13), (-3..6, 3)],
            "the one with the entry point is last"
        );
    }

    #[test]
    fn gaps_are_filled_if_they_are_short_and_there_is_room() {
        assert_eq!(places([0, GAP + 1]).count(), GAP as u32 + 3);
        assert_eq!(places([0, GAP + 2]).count(), 4);
        let all = (0..100).map(|i| 2 * i).collect();
        assert_eq!(Places::of(&all, &all, 150).count(), 100 + 50 + 50, "50 more instructions, 50 ends");
        assert_eq!(Places::of(&all, &all, 50).count(), 200);
        let own = (0..50).map(|i| 2 * i).collect();
        assert_eq!(Places::of(&all, &own, 1 << 16).count(), 100 + 49 + 51, "gaps of others are not filled");
    }

    #[test]
    fn indices_move_when_there_is_more_code() {
        let small = places([-FAR, 0, 1, 2]);
        let large = places([-FAR - 5, -FAR, -2 * GAP, 0, 1, 2, 3, 4, FAR]);
        assert!(large.cover(&small) && !small.cover(&large) && small.cover(&Places::default()));
        for at in 0..small.count() {
            assert_eq!(large.place(large.moved(&small, at)), small.place(at), "{at}");
            assert_eq!(small.moved(&small, at), at);
        }
        assert_eq!(small.moved(&large, large.count() - 1), small.count() - 1, "what is not there is the last end");
    }
}
