//! Whether lanes can come from one instruction of a program to another.

use sm87::Word;
use sm87::isa::{End, Flow};
use sm87::observe::Image;

/// Whether lanes at one instruction may come to another. Where a jump or a return goes that is not in the word is not known, so that they
/// may come anywhere from there.
pub(super) fn may_reach(image: &Image, from: u32, to: u32) -> bool {
    let (mut seen, mut todo) = (vec![false; image.len() as usize], vec![from]);
    while let Some(at) = todo.pop() {
        let Some(known) = seen.get_mut(at as usize) else { return true };
        if at == to {
            return true;
        }
        if std::mem::replace(known, true) {
            continue;
        }
        let (word, Some(row)) = (Word(image.word(at)), image.row(at)) else { return true };
        match (row.flow, image.jumps_to(at)) {
            (_, Some(target)) => todo.push(target),
            (Flow::Next | Flow::Ends(End::Exit), None) => {}
            _ => return true,
        }
        if !row.flow.ends(word) {
            todo.push(at + 1);
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use sm87::observe::find;

    #[test]
    fn the_ways_from_one_instruction_to_another() {
        // @P0 BRA to the instruction after the next; EXIT; NOP; EXIT.
        let exit = Word::new(0x794d, 0x000f_ea00_0380_0000);
        let nop = Word::new(0x7918, 0x000f_c000_0000_0000);
        let program = [Word::new(0x0000_0010_0000_0947, 0x000f_ea00_0380_0000), exit, nop, exit];
        let image = find(&mut |n| usize::try_from(n).ok().and_then(|n| program.get(n).copied()));
        assert_eq!([0, 1, 2, 3].map(|to| may_reach(&image, 0, to)), [true; 4]);
        assert!(!may_reach(&image, 1, 2) && !may_reach(&image, 2, 1) && may_reach(&image, 2, 3));
    }
}
