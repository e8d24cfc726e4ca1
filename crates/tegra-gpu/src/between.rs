//! What launches and copies of different queues do to each other's memory, for `race=strict`: which semaphores are between them, and
//! what programs tell of their waits.
//!
//! Each queue has a clock: what has happened before its next work. It learns by semaphores from other queues, and from the processor
//! what that knew when it gave the work. What the processor knows is what it has waited for, as far as the program tells its waits. Of a queue
//! whose waits nobody tells, it knows whatever has ended. Where it is not known who has told what, everything counts as told, so that
//! races are missed, and none is reported that is none.

use super::semaphore::{Condition, Release};
use sm87::Launch;
use sm87_check::{Between, Bytes, Checker, Clock, PROCESSOR, Spot, Watch, Work};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use tegra_hw::{HostNews, HwChannel};
use tegra_mm::{Access, Nature, PageTable, SYNCPOINT_STRIDE};
use tegrarm_lock::Mutex;

/// So many releases of a semaphore are told apart.
const RELEASES: usize = 256;

/// The queues of a GPU, if races between them are looked for.
#[derive(Debug)]
pub(crate) struct Queues {
    known: Mutex<Known>,
    checker: Arc<Checker>,
    channels: Mutex<Vec<Arc<HwChannel>>>,
}

#[derive(Debug, Default)]
struct Known {
    /// The number of the last work.
    time: u64,
    queues: BTreeMap<u32, Queue>,
    /// What the processor knows, and all that has ended.
    host: Clock,
    ended: Clock,
    semaphores: HashMap<(usize, u64), Semaphore>,
    between: Between,
}

/// What is known of a queue.
#[derive(Debug)]
struct Queue {
    clock: Clock,
    /// How its work is named in reports.
    name: Arc<str>,
    /// Whether the program tells its waits, and the semaphore that says how far the queue is.
    told: bool,
    progress: Option<(usize, u64)>,
    /// What the processor knew when it gave entries of the ring, and the entry behind them.
    given: VecDeque<(u32, Clock)>,
}

/// The releases of a semaphore.
#[derive(Debug, Default)]
struct Semaphore {
    /// What all of them together told.
    all: Clock,
    /// The releases with growing numbers, if one queue makes them.
    list: VecDeque<(u64, Clock)>,
    by: Option<u32>,
    /// Whether several queues have released it.
    is_shared: bool,
    /// Whether numbers are combined with those before, so that it is not known what memory holds.
    combines: bool,
}

/// Some bytes at a GPU address that a queue reads or writes by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) va: u64,
    pub(crate) len: u64,
    pub(crate) wrote: bool,
}

impl Queues {
    pub(crate) fn new(checker: &Arc<Checker>) -> Arc<Queues> {
        Arc::new(Queues { known: Mutex::default(), checker: checker.clone(), channels: Mutex::default() })
    }

    /// A channel can run from now on. `touched` is called when its program has told what the processor did to a buffer: the checker may have
    /// found something.
    pub(crate) fn opens(
        self: &Arc<Queues>,
        channel: &Arc<HwChannel>,
        touched: impl Fn(&Checker, &Arc<HwChannel>) + Send + Sync + 'static,
    ) {
        let all = self.clone();
        let hears = move |process, news: HostNews<'_>| {
            if let Some(channel) = all.hears(process, news) {
                touched(&all.checker, &channel);
            }
        };
        channel.tsg.gpu.names.listen(Box::new(hears));
        self.channels.lock().push(channel.clone());
        let mut known = self.known.lock();
        let (clock, name) = (known.host.clone(), format!("channel {}", channel.id).into());
        let queue = Queue { clock, name, told: false, progress: None, given: VecDeque::new() };
        known.queues.insert(channel.token(), queue);
    }

    /// A channel exists no more. Whoever has closed it knows what it has done.
    pub(crate) fn closes(&self, id: u32) {
        let gone: Vec<_> = self.channels.lock().extract_if(.., |channel| channel.id == id).collect();
        for token in gone.iter().map(|channel| channel.token()) {
            let mut known = self.known.lock();
            let Known { time, queues, host, ended, between, .. } = &mut *known;
            queues.remove(&token);
            between.closes(token, *time);
            [host, ended]
                .into_iter()
                .chain(queues.values_mut().map(|of| &mut of.clock))
                .for_each(|of| of.forget(token));
        }
    }

    /// A program tells what its processor does. The result is a channel of it if the processor has touched a buffer.
    fn hears(&self, process: i32, news: HostNews<'_>) -> Option<Arc<HwChannel>> {
        let token = news.token();
        let is_it = |channel: &&Arc<HwChannel>| channel.token() == token && channel.tsg.process == process;
        let channel = self.channels.lock().iter().find(is_it).cloned()?;
        let mut known = self.known.lock();
        match news {
            HostNews::Queue { progress, name, .. } => {
                known.introduced(token, name, Spot::of(&channel.space.table(), progress))
            }
            HostNews::Gives { end, .. } => known.gives(token, end, true),
            HostNews::Waited { number, .. } => known.waited(token, number),
            HostNews::Touched { va, wrote, calls, .. } => {
                known.touched(&self.checker, &channel.space.table(), va, (wrote, calls));
                return Some(channel);
            }
        }
        None
    }

    /// A doorbell was found while the channel's ring has entries up to the one before `end`.
    pub(crate) fn rung(&self, channel: &HwChannel, end: u32) {
        self.known.lock().gives(channel.token(), end, false);
    }

    /// A channel takes an entry of its ring.
    pub(crate) fn takes(&self, channel: &HwChannel, entry: u32) {
        self.known.lock().takes(channel.token(), entry);
    }

    /// A channel is about to release a semaphore.
    pub(crate) fn releases(&self, channel: &HwChannel, table: &PageTable, release: &Release) {
        let Some(spot) = semaphore(table, release.va) else { return };
        // A syncpoint counts.
        let combines = release.reduction.is_some() || spot.memory.nature() == Nature::Syncpoints;
        let is_stamp = release.timestamp.is_some();
        self.known.lock().releases(channel.token(), spot.key(), release.payload, (combines, is_stamp));
    }

    /// A channel has found `value` in a semaphore, as it wanted.
    pub(crate) fn acquires(&self, channel: &HwChannel, table: &PageTable, found: Acquired) {
        if let Some(spot) = semaphore(table, found.va) {
            self.known.lock().acquires(channel.token(), spot.key(), found);
        }
    }

    /// A channel begins a launch. The result is its number.
    pub(crate) fn begins(&self, channel: &HwChannel) -> u64 {
        self.known.lock().begins(channel.token())
    }

    /// A launch has ended that `watch` has looked at.
    pub(crate) fn launched(&self, channel: &HwChannel, time: u64, name: Option<&str>, launch: &Launch, watch: &Watch) {
        let uses = watch.uses(launch);
        let what = name.map_or_else(|| format!("the kernel at {:#x}", launch.code), |name| format!("kernel {name}"));
        let mut known = self.known.lock();
        let (token, mut heard) = (channel.token(), known.between.heard(&uses, &launch.table));
        if uses.tells_host {
            // The processor may have given work meanwhile because of what it was told, and what it has accessed may have been left to it.
            heard.join(&known.ended);
            heard.learn(PROCESSOR, known.host.of(PROCESSOR).unwrap_or_default());
        }
        let Some(of) = known.queues.get_mut(&token) else { return };
        of.clock.join(&heard);
        let work = of.work((token, time), &what, launch.code);
        known.between.launched(&self.checker, work, &uses, &launch.table);
        known.ends(token, time, uses.tells_host);
    }

    /// A channel has read and written bytes by itself.
    pub(crate) fn copied(
        &self,
        channel: &HwChannel,
        what: &str,
        table: &PageTable,
        ranges: impl Iterator<Item = Range>,
    ) {
        let mut bytes = Vec::new();
        for Range { mut va, mut len, wrote } in ranges {
            while len > 0 {
                let access = if wrote { Access::Write } else { Access::Read };
                let Ok(extent) = table.translate(va, access) else { break };
                let here = len.min(extent.end() - va);
                bytes.extend(Spot::of(table, va).map(|spot| Bytes { spot, va, len: here, wrote }));
                (va, len) = (va + here, len - here);
            }
        }
        let (mut known, token) = (self.known.lock(), channel.token());
        let time = known.begins(token);
        let Some(of) = known.queues.get(&token) else { return };
        let work = of.work((token, time), what, 0);
        known.between.copied(&self.checker, work, &bytes, table);
        known.ends(token, time, false);
    }
}

impl Queue {
    fn work(&self, (queue, time): (u32, u64), what: &str, code: u64) -> Work {
        Work { queue, time, clock: self.clock.clone(), what: format!("{what} in {}", self.name), code }
    }
}

impl Known {
    /// A program names a queue, and says which semaphore says how far it is if it tells its waits from now on.
    fn introduced(&mut self, queue: u32, name: &str, progress: Option<Spot>) {
        let Some(of) = self.queues.get_mut(&queue) else { return };
        (of.name, of.told, of.progress) = (name.into(), progress.is_some(), progress.map(|spot| spot.key()));
        of.given.clear();
        if !of.told {
            self.host.join(&of.clock);
        }
    }

    /// The processor gives entries of a queue's ring, up to the one before `end`. If nobody tells its waits, it may know all that has ended.
    fn gives(&mut self, queue: u32, end: u32, told: bool) {
        let Some(of) = self.queues.get_mut(&queue).filter(|of| of.told == told) else { return };
        if !told && of.given.back().is_some_and(|(last, _)| *last == end) {
            return;
        }
        let mut clock = self.host.clone();
        if !told {
            clock.join(&self.ended);
        }
        of.given.push_back((end, clock));
    }

    fn takes(&mut self, queue: u32, entry: u32) {
        let Some(of) = self.queues.get_mut(&queue) else { return };
        while of.given.front().is_some_and(|(end, _)| *end == entry) {
            of.given.pop_front();
        }
        match of.given.front() {
            Some((_, clock)) => of.clock.join(clock),
            None => {
                of.clock.join(&self.host);
                if !of.told {
                    of.clock.join(&self.ended);
                }
            }
        }
    }

    /// The processor has waited until a queue has come to a number.
    fn waited(&mut self, queue: u32, number: u64) {
        let Some(of) = self.queues.get(&queue) else { return };
        let semaphore = of.progress.and_then(|key| self.semaphores.get(&key));
        match semaphore.and_then(|semaphore| semaphore.list.iter().find(|(value, _)| *value >= number)) {
            Some((_, clock)) => self.host.join(clock),
            None => self.host.join(&of.clock),
        }
    }

    /// The processor has accessed a byte without having waited for all that it has given.
    fn touched(&mut self, checker: &Checker, table: &PageTable, va: u64, (wrote, calls): (bool, u64)) {
        let Some(spot) = Spot::of(table, va) else { return };
        self.time += 1;
        self.host.learn(PROCESSOR, self.time);
        let (clock, what) = (self.host.clone(), format!("the processor (calls {calls})"));
        let work = Work { queue: PROCESSOR, time: self.time, clock, what, code: 0 };
        self.between.touched(checker, work, (&spot, va), (wrote, calls), table);
    }

    fn releases(&mut self, queue: u32, key: (usize, u64), payload: u64, (combines, is_stamp): (bool, bool)) {
        let Some(of) = self.queues.get(&queue) else { return };
        // Whatever is no progress of a queue, and no time that it leaves for later, the processor may look at by itself.
        if !is_stamp && of.progress != Some(key) {
            self.host.join(&of.clock);
        }
        let semaphore = self.semaphores.entry(key).or_default();
        semaphore.all.join(&of.clock);
        semaphore.combines |= combines;
        semaphore.is_shared |= semaphore.by.replace(queue).is_some_and(|by| by != queue);
        if semaphore.is_shared && semaphore.list.len() > 1
            || semaphore.list.back().is_some_and(|(last, _)| *last >= payload)
        {
            semaphore.list.clear();
        }
        semaphore.list.push_back((payload, of.clock.clone()));
        if semaphore.list.len() > RELEASES {
            semaphore.list.pop_front();
        }
    }

    fn acquires(&mut self, queue: u32, key: (usize, u64), found: Acquired) {
        let Acquired { value, condition, payload, wide, .. } = found;
        let semaphore = self.semaphores.get(&key);
        let is_last = |semaphore: &Semaphore| semaphore.list.back().is_some_and(|(last, _)| *last == value);
        let explained = semaphore.is_some_and(|semaphore| semaphore.combines || is_last(semaphore));
        let mut learnt = semaphore.map_or_else(Clock::default, |semaphore| {
            let first = semaphore.list.iter().find(|(value, _)| condition.holds(*value, payload, wide));
            let exact = first.filter(|_| {
                explained && !semaphore.combines && !semaphore.is_shared && semaphore.list.len() < RELEASES
            });
            exact.map_or_else(|| semaphore.all.clone(), |(_, clock)| clock.clone())
        });
        if !explained {
            // The processor may have written it, or a kernel or a copy of any queue.
            learnt.join(&self.host);
            self.queues.iter().filter_map(|(queue, of)| Some((*queue, of.clock.of(*queue)?))).for_each(
                |(queue, time)| {
                    learnt.learn(queue, time);
                },
            );
        }
        if let Some(of) = self.queues.get_mut(&queue) {
            of.clock.join(&learnt);
        }
    }

    fn begins(&mut self, queue: u32) -> u64 {
        self.time += 1;
        if let Some(of) = self.queues.get_mut(&queue) {
            of.clock.learn(queue, self.time);
        }
        self.time
    }

    /// A work has ended. If nobody tells the processor's waits, that knows it. If the work itself may have told the processor, all
    /// that was given until now may have been given because of that.
    fn ends(&mut self, queue: u32, time: u64, tells_host: bool) {
        self.ended.learn(queue, time);
        let Some(of) = self.queues.get(&queue).filter(|of| tells_host || !of.told) else { return };
        let clock = of.clock.clone();
        self.host.join(&clock);
        if tells_host {
            let given = |of: &mut Queue| {
                of.clock.join(&clock);
                of.given.iter_mut().for_each(|(_, known)| known.join(&clock));
            };
            self.queues.values_mut().for_each(given);
        }
    }
}

/// A wait that is over: the address of the semaphore, what was found there, and what was wanted.
#[derive(Clone, Copy)]
pub(crate) struct Acquired {
    pub(crate) va: u64,
    pub(crate) value: u64,
    pub(crate) condition: Condition,
    pub(crate) payload: u64,
    pub(crate) wide: bool,
}

/// Where a semaphore is. Every address of a syncpoint leads to its counter.
fn semaphore(table: &PageTable, va: u64) -> Option<Spot> {
    let spot = Spot::of(table, va)?;
    let is_syncpoint = spot.memory.nature() == Nature::Syncpoints;
    let at = if is_syncpoint { spot.at - spot.at % SYNCPOINT_STRIDE as u64 } else { spot.at };
    Some(Spot { at, ..spot })
}
