//! Who has last written and read each word of memory.
//!
//! There is a cell for each word, so a cell is small: what the lanes of an instruction have in common is an [`Event`], of
//! which cells only know the number.

use super::quick::Quick;
use sm87::isa::memory::Scope;
use tegrarm_lock::ProcessMutex;

/// What accesses have in common that a warp makes with one instruction while its clock stands still.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// The time of the warp and of the CTA. The warp's is 0 if there was no access.
    pub time: u32,
    pub cta_time: u32,
    pub cta: u32,
    /// The address of the instruction.
    pub at: u64,
    /// The number of the execution of the instruction with which it began.
    pub since: u32,
    pub warp: u8,
    /// Whether it is an atomic, or ordered with other threads' ("strong").
    pub strong: bool,
    /// Whether it is an atomic of a kind that programs look at beforehand with a plain load.
    pub looked_at: bool,
    /// For whom it is ordered with other threads' accesses, as far as `race=strict` has to know it.
    pub scope: Option<Scope>,
    /// The group of an asynchronous copy, and one, as far as `race=strict` has to know it.
    pub copy: u32,
}

impl Event {
    /// Whether it says the same of races as another one.
    pub(crate) fn is_like(&self, other: &Event) -> bool {
        let when = |event: &Event| (event.time, event.cta_time, event.cta, event.warp, event.strong);
        when(self) == when(other)
    }
}

/// The most executions of an instruction that are one event: as many as a mark can tell apart.
const TOGETHER: u32 = 1 << 16;
/// Events are looked for in as many places.
const HINTS: usize = 4096;
/// Events that no cell knows are forgotten when there are so many.
const ROOM: usize = 1 << 16;

/// The events that cells know, by their numbers. The first one says that there was no access.
#[derive(Debug)]
pub(crate) struct Events {
    list: Vec<Event>,
    /// The number of the event that an instruction of a warp may belong to.
    hints: Box<[u32]>,
    room: usize,
}

impl Default for Events {
    fn default() -> Events {
        Events { list: vec![Event::default()], hints: vec![0; HINTS].into(), room: ROOM }
    }
}

impl Events {
    /// The event with a number.
    pub(crate) fn get(&self, number: u32) -> &Event {
        &self.list[number as usize]
    }

    /// The number of the event to which an access belongs that is made with the execution `now.since`.
    pub(crate) fn number(&mut self, now: &Event) -> u32 {
        let place = (now.at as u32).wrapping_mul(2).wrapping_add(now.warp.into()).wrapping_mul(0x9e37_79b1) as usize
            >> (32 - HINTS.ilog2());
        let known = self.list[self.hints[place] as usize];
        let is_it = Event { since: now.since, ..known } == *now && now.since.wrapping_sub(known.since) < TOGETHER;
        if !is_it {
            self.hints[place] = self.list.len() as u32;
            self.list.push(*now);
        }
        self.hints[place]
    }

    /// A mark of an event for an access with the execution `now.since`.
    pub(crate) fn mark(&self, number: u32, now: &Event, lane: u32, bytes: u8) -> Mark {
        let execution = now.since.wrapping_sub(self.get(number).since);
        Mark(u64::from(number) << 32 | u64::from(execution) << 16 | u64::from(lane & 31) << 8 | u64::from(bytes))
    }

    /// Whether events should be forgotten before there are more.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= self.room
    }

    /// Forgets all events but those that these cells know.
    pub(crate) fn collect<'c>(&mut self, cells: impl Iterator<Item = &'c mut Cell>) {
        let old = std::mem::replace(&mut self.list, vec![Event::default()]);
        let mut numbers = vec![0; old.len()];
        for mark in cells.flat_map(|cell| cell.reads.iter_mut().chain([&mut cell.write])) {
            let number = mark.event() as usize;
            if number != 0 && numbers[number] == 0 {
                numbers[number] = self.list.len() as u32;
                self.list.push(old[number]);
            }
            mark.0 = u64::from(numbers[number]) << 32 | mark.0 & u64::from(u32::MAX);
        }
        self.hints.fill(0);
        self.room = self.room.max(2 * self.list.len());
    }

    /// Forgets all events.
    pub(crate) fn clear(&mut self) {
        self.list.truncate(1);
        self.hints.fill(0);
    }
}

/// An access to a word: the number of its event, the execution since the event began, the lane, and the bytes of the word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark(u64);

impl Mark {
    /// A bit of a cell's mark of the last store, which belongs to the cell.
    const TELLS: u64 = 1 << 7;

    pub(crate) fn event(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The number of the execution, of which `event` is the event.
    pub(crate) fn execution(self, event: &Event) -> u32 {
        event.since.wrapping_add((self.0 >> 16) as u32 & (TOGETHER - 1))
    }

    pub(crate) fn lane(self) -> u8 {
        (self.0 >> 8) as u8 & 31
    }

    pub(crate) fn bytes(self) -> u8 {
        self.0 as u8 & 15
    }

    /// The same access by another lane.
    pub(crate) fn by(self, lane: u32) -> Mark {
        Mark(self.0 & !(31 << 8) | u64::from(lane & 31) << 8)
    }

    /// The same access, with the bytes of another one too.
    pub(crate) fn with_bytes_of(self, other: Mark) -> Mark {
        Mark(self.0 | u64::from(other.bytes()))
    }

    /// Whether one execution of an instruction made both accesses.
    pub(crate) fn is_at_once(self, other: Mark) -> bool {
        self.0 >> 16 == other.0 >> 16
    }
}

/// The last accesses to a word.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cell {
    write: Mark,
    /// The last read, and one of another warp before it that is not ordered with it.
    pub reads: [Mark; 2],
}

impl Cell {
    /// The last store.
    pub(crate) fn write(&self) -> Mark {
        Mark(self.write.0 & !Mark::TELLS)
    }

    /// The word was stored to: reads before are forgotten.
    pub(crate) fn written(&mut self, mark: Mark) {
        *self = Cell { write: Mark(mark.0 | self.write.0 & Mark::TELLS), reads: [Mark::default(); 2] };
    }

    /// Whether threads tell each other something with the word, so that plain reads of it are meant to be so.
    pub(crate) fn tells(&self) -> bool {
        self.write.0 & Mark::TELLS != 0
    }

    /// Threads may tell each other something with the word.
    pub(crate) fn note_telling(&mut self) {
        self.write.0 |= Mark::TELLS;
    }
}

/// The words of a page.
pub(crate) const WORDS: usize = 1024;
type Page = Box<[Cell; WORDS]>;
/// The pages of which is known at once where they are.
const WAYS: usize = 16;
/// The most pages that are remembered unless all are. More memory is not looked at.
const MOST_PAGES: usize = 8 << 10;

/// Pages of launches that have ended, for the next ones: to get new memory from the host takes longer than to clear it.
static SPARE: ProcessMutex<Vec<Page>> = ProcessMutex::new(Vec::new());
/// The most of them.
const SPARES: usize = 1024;

/// A page that nobody has used.
fn fresh() -> Option<Page> {
    let spare = SPARE.lock().pop();
    let Some(mut page) = spare else { return vec![Cell::default(); WORDS].into_boxed_slice().try_into().ok() };
    page.fill(Cell::default());
    Some(page)
}

impl Drop for Cells {
    fn drop(&mut self) {
        let mut spare = SPARE.lock();
        let room = SPARES.saturating_sub(spare.len());
        spare.extend(self.pages.drain(..).take(room));
    }
}

/// The words of a large memory.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    index: Quick<u64, usize>,
    pages: Vec<Page>,
    /// The numbers of the pages that were used last, and one more than their places.
    recent: [(u64, usize); WAYS],
    /// Whether all memory is remembered, whatever it takes.
    pub all_of_it: bool,
}

impl Cells {
    /// The bytes of the host's memory that they take.
    pub(crate) fn bytes(&self) -> u64 {
        (self.pages.len() * size_of::<[Cell; WORDS]>()) as u64
    }

    /// The cell of the word at an address; `None` when too much memory is in use.
    pub(crate) fn at(&mut self, address: u64) -> Option<&mut Cell> {
        self.some(address, 1)?.first_mut()
    }

    /// The cells of some words of one page.
    pub(crate) fn some(&mut self, address: u64, words: usize) -> Option<&mut [Cell]> {
        let (number, word) = (address >> 12, (address >> 2) as usize & (WORDS - 1));
        let recent = self.recent[number as usize % WAYS];
        let page = if recent.0 == number && recent.1 > 0 { recent.1 - 1 } else { self.page(number)? };
        self.pages[page].get_mut(word..word + words)
    }

    /// The numbers of all pages, and their cells.
    pub(crate) fn each(&self) -> impl Iterator<Item = (u64, &[Cell; WORDS])> {
        self.index.iter().map(|(number, place)| (*number, &*self.pages[*place]))
    }

    /// All cells.
    pub(crate) fn all(&mut self) -> impl Iterator<Item = &mut Cell> {
        self.pages.iter_mut().flat_map(|page| page.iter_mut())
    }

    #[cold]
    fn page(&mut self, number: u64) -> Option<usize> {
        let known = self.index.get(&number).copied();
        if known.is_none() && self.pages.len() == MOST_PAGES && !self.all_of_it {
            return None;
        }
        let place = known.unwrap_or(self.pages.len());
        if known.is_none() {
            let page = fresh()?;
            self.pages.push(page);
            self.index.insert(number, place);
        }
        self.recent[number as usize % WAYS] = (number, place + 1);
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Event = Event {
        time: 1,
        cta_time: 1,
        cta: 0,
        at: 64,
        since: 7,
        warp: 3,
        strong: false,
        looked_at: false,
        scope: None,
        copy: 0,
    };

    #[test]
    fn a_cell_is_small() {
        assert_eq!(size_of::<Cell>(), 24);
    }

    #[test]
    fn executions_of_one_instruction_are_one_event_while_marks_tell_them_apart() {
        let mut events = Events::default();
        let first = events.number(&LOAD);
        for execution in [7, 8, 7 + TOGETHER - 1] {
            let now = Event { since: execution, ..LOAD };
            assert_eq!(events.number(&now), first);
            let mark = events.mark(first, &now, 31, 9);
            assert_eq!((mark.event(), mark.lane(), mark.bytes()), (first, 31, 9));
            assert_eq!(mark.execution(events.get(first)), execution);
        }
        for other in [
            Event { since: 7 + TOGETHER, ..LOAD },
            Event { time: 2, ..LOAD },
            Event { cta: 1, ..LOAD },
            Event { warp: 4, ..LOAD },
            Event { at: 80, ..LOAD },
        ] {
            assert_ne!(events.number(&other), first, "{other:?}");
        }
    }

    #[test]
    fn what_cells_know_is_not_forgotten() {
        let mut events = Events { room: 4, ..Events::default() };
        let mut cells = [Cell::default(); 2];
        let mut mark = |time: u32, lane: u32| {
            let now = Event { time, ..LOAD };
            let number = events.number(&now);
            events.mark(number, &now, lane, 15)
        };
        let (forgotten, store, load) = (mark(1, 0), mark(2, 5), mark(3, 6));
        cells[0].note_telling();
        cells[0].written(store);
        cells[1].reads[1] = load;
        assert!(forgotten.event() > 0 && events.is_full());
        events.collect(cells.iter_mut());
        assert_eq!(events.list.len(), 3);
        let of = |mark: Mark| (events.get(mark.event()).time, mark.lane(), mark.bytes());
        assert_eq!((of(cells[0].write()), of(cells[1].reads[1])), ((2, 5, 15), (3, 6, 15)));
        assert!(cells[0].tells() && !cells[1].tells());
        assert_eq!(cells[1].write(), Mark::default());
    }

    #[test]
    fn the_words_of_an_access_are_those_of_one_page() {
        let mut cells = Cells::default();
        cells.at(0x1ffc).into_iter().for_each(Cell::note_telling);
        assert!(cells.some(0x1ff8, 2).is_some_and(|cells| !cells[0].tells() && cells[1].tells()));
        assert!(cells.some(0x1ff8, 3).is_none());
        // Another page that is looked for in the same place.
        assert!(cells.at(0x1ffc + (WAYS << 12) as u64).is_some_and(|cell| !cell.tells()));
        assert!(cells.at(0x1ffc).is_some_and(|cell| cell.tells()));
        // What a launch knows ends with it.
        drop(cells);
        assert!(Cells::default().at(0x1ffc).is_some_and(|cell| !cell.tells()));
    }
}
