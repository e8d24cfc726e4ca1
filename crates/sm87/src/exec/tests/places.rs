//! Indices of places, and places of indices.

use super::*;

fn places(all: impl IntoIterator<Item = i64>) -> Places {
    Places::of(&all.into_iter().collect(), 1 << 16)
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
    assert_eq!(
        Places::of(&(0..100).map(|i| 2 * i).collect(), 150).count(),
        100 + 50 + 50,
        "50 more instructions, 50 ends"
    );
    assert_eq!(Places::of(&(0..100).map(|i| 2 * i).collect(), 50).count(), 200);
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
