//! Operations are written once, for any [`Simd`]. With values of [`Recorded`], they do not compute: they write down what they would compute,
//! in a graph that [`super::translate`] makes machine code of. So a translated instruction cannot differ from one that is interpreted.
//!
//! What an operation does with single lanes, or depending on the lanes' values, cannot be written down. It is then *refused*: the instruction
//! stays one that is interpreted.
#![allow(unsafe_code)]

use super::rows::{Dst, Pred, REGISTER, Row, Src, pred};
use super::runs::{Group, Space, WINDOWS};
use super::uop::{Handlers, UNIFORM, Uop};
use sm87_native::{Graph, One, Two, Value};
use sm87_num::mufu::Table;
use sm87_simd::interpolate::{self, Pairs};
use sm87_simd::{Double, Simd, Taker};
use std::cell::RefCell;

/// Writes down what an instruction does.
pub(crate) type Record = fn(&Uop, &mut Recorder<'_>);

/// An operation: its handlers, and how it is written down for a translation, if it can be translated.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    pub run: Handlers,
    pub record: Option<Record>,
}

impl From<Handlers> for Operation {
    fn from(run: Handlers) -> Operation {
        Operation { run, record: None }
    }
}

/// The graph that this thread records, and whether something was refused.
#[derive(Default)]
struct Recording {
    graph: Graph,
    refused: bool,
}

thread_local! {
    static RECORDING: RefCell<Recording> = RefCell::default();
}

fn with<R>(f: impl FnOnce(&mut Recording) -> R) -> R {
    RECORDING.with_borrow_mut(f)
}

fn graph<R>(f: impl FnOnce(&mut Graph) -> R) -> R {
    with(|recording| f(&mut recording.graph))
}

/// A value of the graph.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Recorded(Value);

impl Recorded {
    fn one(self, op: One) -> Recorded {
        Recorded(graph(|graph| graph.one(op, self.0)))
    }

    fn two(self, op: Two, o: Recorded) -> Recorded {
        Recorded(graph(|graph| graph.two(op, self.0, o.0)))
    }

    fn refused() -> Recorded {
        with(|recording| recording.refused = true);
        Recorded::splat(0)
    }
}

/// The groups of the loads of a program, and which of them are those of a stretch.
struct Groups<'a> {
    known: &'a mut Vec<Group>,
    used: Vec<usize>,
}

impl Groups<'_> {
    /// The window of a load, and how many bytes behind it the word is. The result is `None` if there is none for it.
    fn window(&mut self, at: Group) -> Option<(u8, i32)> {
        let recent = self.known.len().saturating_sub(WINDOWS);
        let found = self.known[recent..].iter().rposition(|group| group.chain == at.chain).map(|n| recent + n);
        let n = found.unwrap_or(self.known.len());
        if n == self.known.len() {
            self.known.push(Group { number: n as u32, ..at });
        }
        if !self.used.contains(&n) {
            // All groups of a stretch need windows of their own.
            (self.used.iter().all(|used| used.abs_diff(n) < WINDOWS)).then(|| self.used.push(n))?;
        }
        let group = &mut self.known[n];
        let bytes = i32::try_from(i64::from(at.offset as i32) - i64::from(group.offset as i32)).ok()?;
        (group.lowest, group.highest) = (group.lowest.min(bytes), group.highest.max(bytes));
        (bytes % 4 == 0).then_some((group.window() as u8, bytes))
    }
}

/// The graph that is recorded, with the operands of instructions.
pub(crate) struct Recorder<'a> {
    immediates: &'a [Row],
    /// The mask of the lanes that execute the instruction, if a guard says so.
    guard: Option<Recorded>,
    everywhere: bool,
    /// The groups of its loads, if it may load something.
    groups: Option<Groups<'a>>,
}

impl<'a> Recorder<'a> {
    /// Begins a graph. The program has these immediates.
    pub(crate) fn begin(immediates: &'a [Row]) -> Self {
        with(|recording| *recording = Recording::default());
        Recorder { immediates, guard: None, everywhere: false, groups: None }
    }

    /// Begins a graph that may load words. The groups of its loads are among those that are known, or become known.
    pub(crate) fn of_stretch(immediates: &'a [Row], known: &'a mut Vec<Group>) -> Self {
        Recorder { groups: Some(Groups { known, used: Vec::new() }), ..Recorder::begin(immediates) }
    }

    /// Whether something was refused.
    pub(crate) fn is_refused(&self) -> bool {
        with(|recording| recording.refused)
    }

    /// Which groups the loads so far are in.
    pub(crate) fn used(&self) -> &[usize] {
        self.groups.as_ref().map_or(&[], |groups| &groups.used)
    }

    /// The graph that was recorded, unless something was refused.
    pub(crate) fn end(self) -> Option<Graph> {
        let Recording { graph, refused } = with(std::mem::take);
        (!refused).then_some(graph)
    }

    /// Records an instruction.
    pub(crate) fn instruction(&mut self, u: &Uop, record: Record) {
        self.everywhere = u.aux & UNIFORM != 0;
        self.guard = (u.guard != Pred::TRUE).then(|| self.lanes(u.guard));
        if let Some(guard) = self.guard {
            if self.everywhere {
                Recorded::refused();
            }
            graph(|graph| graph.guarded(guard.0));
        }
        record(u, self);
    }

    /// A source.
    pub(crate) fn source(&self, s: Src) -> Recorded {
        const ZERO: usize = 4 * 32;
        match s.space() {
            0 if s.own() < ZERO => Recorded::splat(0),
            0 => Recorded(graph(|graph| graph.row(s.own() as u32))),
            1 => Recorded::splat(self.immediates[s.offset() / 32].0[0]),
            _ => Recorded(graph(|graph| graph.constant(s.offset() as u32))),
        }
    }

    /// The mask of a predicate.
    pub(crate) fn lanes(&self, p: Pred) -> Recorded {
        let lanes = match p.index {
            pred::PT | pred::UPT => Recorded::splat(u32::MAX),
            index => Recorded(graph(|graph| graph.lanes(index))),
        };
        if p.invert != 0 { lanes.not() } else { lanes }
    }

    /// Loads a word of each lane, also of those for which the guard is false. Its address registers are those that the lanes have when the stretch
    /// begins, so no instruction of it may write them.
    pub(crate) fn load(&mut self, u: &Uop, space: Space) {
        let chain = u.at - u32::from(u.aux);
        let at = Group { number: 0, chain, a: u.a, c: u.c, space, offset: u.imm, lowest: 0, highest: 0 };
        let known = |s: Src| s.space() == 0 && !graph(|graph| graph.writes_row(s.own() as u32));
        let pair = at.space == Space::Pairs;
        let fixed =
            known(at.a) && known(at.c) && (!pair || known(at.a.plus(1))) && (!at.is_global() || known(at.c.plus(1)));
        let refused = u.ps != Pred::TRUE || !fixed;
        match self.groups.as_mut().filter(|_| !refused).and_then(|groups| groups.window(at)) {
            Some((window, bytes)) => {
                self.set_row(u.d, Recorded(graph(|graph| graph.loaded(window, bytes))));
            }
            None => {
                Recorded::refused();
            }
        }
    }

    /// Writes a destination, in the lanes for which the guard is true.
    pub(crate) fn set_row(&self, d: Dst, value: Recorded) {
        let offset = d.offset() as u32;
        // Nobody reads the rows that take writes to RZ.
        if offset < REGISTER * 32 && !self.everywhere {
            return;
        }
        let value = self.guarded(value, || Recorded(graph(|graph| graph.row(offset))));
        graph(|graph| graph.set_row(offset, value.0, self.everywhere));
    }

    /// Writes a predicate in the same way.
    pub(crate) fn set_lanes(&self, index: u8, value: Recorded) {
        if matches!(index, pred::SINK | pred::UNIFORM_SINK) {
            return;
        }
        let value = self.guarded(value, || Recorded(graph(|graph| graph.lanes(index))));
        graph(|graph| graph.set_lanes(index, value.0, self.everywhere));
    }

    /// A value where the guard is true, and what was there before where it is false.
    fn guarded(&self, value: Recorded, old: impl FnOnce() -> Recorded) -> Recorded {
        self.guard.map_or(value, |guard| guard.select(value, old()))
    }
}

/// The number by which [`Recorded::from_bits`] knows a predicate. Operations get it instead of the lanes of the predicate.
pub(crate) fn named(p: Pred) -> u32 {
    u32::from(p.index) | u32::from(p.invert != 0) << 8
}

/// Makes methods that are one operation of the graph.
macro_rules! two {
    ($($name:ident = $op:ident;)*) => {$(
        fn $name(self, o: Self) -> Self {
            self.two(Two::$op, o)
        }
    )*};
}

impl Simd for Recorded {
    const LANES: usize = 8;

    fn splat(x: u32) -> Self {
        Recorded(graph(|graph| graph.word(x)))
    }
    fn from_bits(bits: u32) -> Self {
        let name = Pred { index: bits as u8, invert: -((bits >> 8 & 1) as i8) };
        Recorder { immediates: &[], guard: None, everywhere: false, groups: None }.lanes(name)
    }
    fn select(self, t: Self, f: Self) -> Self {
        Recorded(graph(|graph| graph.select(self.0, t.0, f.0)))
    }
    two! {
        add = Add;
        sub = Sub;
        mul = Mul;
        and = And;
        or = Or;
        xor = Xor;
        shl = Shl;
        shr = Shr;
        sar = Sar;
        eq = Equal;
        fadd = AddFloat;
        fmul = MulFloat;
        flt = LessFloat;
        feq = EqualFloat;
        fle = AtMostFloat;
        funord = Unordered;
        minu = Least;
        maxu = Most;
    }
    fn lt(self, o: Self) -> Self {
        o.two(Two::Greater, self)
    }
    fn fma(self, b: Self, c: Self) -> Self {
        Recorded(graph(|graph| graph.fma(self.0, b.0, c.0)))
    }
    fn i2f(self) -> Self {
        self.one(One::ToFloat)
    }
    fn f2i(self) -> Self {
        self.one(One::ToInteger)
    }
    fn nearest(self) -> Self {
        self.one(One::Nearest)
    }
    fn canonical(self) -> Self {
        self.one(One::Canonical)
    }
    fn to_halves(self) -> Self {
        self.funord(self).select(Self::splat(0x7fff), self.one(One::Half))
    }
    fn mul_wide(self, o: Self, signed: bool) -> [Self; 2] {
        let op = if signed { Two::SignedProduct } else { Two::Product };
        let (even, odd) = (self.two(op, o), self.shr_pairs::<32>().two(op, o.shr_pairs::<32>()));
        [Self::joined([even, odd]), Self::mixed(even.shr_pairs::<32>(), odd)]
    }
    fn interpolate<const N: usize>(table: &'static Table<N>, argument: Self, exponent: Self) -> Self {
        interpolate::interpolate(table, argument, exponent)
    }
    fn logarithm(fraction: Self, exponent: Self) -> Self {
        interpolate::logarithm(fraction, exponent)
    }
    fn tangent(fraction: Self, exponent: Self) -> Self {
        interpolate::tangent(fraction, exponent)
    }

    // What depends on the lanes' values, or is done to single lanes, is not recorded.
    fn to_bits(self) -> u32 {
        Recorded::refused();
        0
    }
    fn any(self) -> bool {
        Recorded::refused();
        false
    }
    fn least(self) -> u32 {
        self.to_bits()
    }
    fn most(self) -> u32 {
        self.to_bits()
    }
    fn map3(_: Self, _: Self, _: Self, _: impl Fn(u32, u32, u32) -> u32) -> Self {
        Recorded::refused()
    }
    fn double(_: Double, _: [Self; 2], _: [Self; 2], _: [Self; 2]) -> [Self; 2] {
        [Recorded::refused(); 2]
    }
    fn double_relation(_: [Self; 2], _: [Self; 2]) -> [Self; 3] {
        [Recorded::refused(); 3]
    }
    unsafe fn load(_: *const u32) -> Self {
        Recorded::refused()
    }
    unsafe fn store(self, _: *mut u32) {
        Recorded::refused();
    }
    unsafe fn load_some(_: *const u32, _: Self) -> Self {
        Recorded::refused()
    }
    unsafe fn store_some(self, _: *mut u32, _: Self) {
        Recorded::refused();
    }
    unsafe fn gather2(_: *const u8, _: *const u32) -> [Self; 2] {
        [Recorded::refused(); 2]
    }
    unsafe fn gather4(_: *const u8, _: *const u32) -> [Self; 4] {
        [Recorded::refused(); 4]
    }
    unsafe fn gather_words(_: *const u8, _: *const u32, _: usize, _: &impl Taker) {
        Recorded::refused();
    }
    unsafe fn pick(self, _: *const u32) -> Self {
        Recorded::refused()
    }
    unsafe fn load_crossed(_: *const u32, _: usize, _: u32) -> Self {
        Recorded::refused()
    }
    unsafe fn spread2(_: *const u8) -> [Self; 2] {
        [Recorded::refused(); 2]
    }
    unsafe fn spread4(_: *const u8) -> [Self; 4] {
        [Recorded::refused(); 4]
    }
    unsafe fn scatter2(_: [Self; 2], _: *mut u8, _: *const u32) {
        Recorded::refused();
    }
    unsafe fn scatter4(_: [Self; 4], _: *mut u8, _: *const u32) {
        Recorded::refused();
    }
    unsafe fn row2(_: *const u8) -> [Self; 2] {
        [Recorded::refused(); 2]
    }
    unsafe fn row4(_: *const u8) -> [Self; 4] {
        [Recorded::refused(); 4]
    }
    unsafe fn put_row2(_: [Self; 2], _: *mut u8) {
        Recorded::refused();
    }
    unsafe fn put_row4(_: [Self; 4], _: *mut u8) {
        Recorded::refused();
    }
}

impl Pairs for Recorded {
    two! {
        product = SignedProduct;
        add_pairs = AddPairs;
        equal_pairs = EqualPairs;
        sub_doubles = SubDoubles;
        high_halves = HighHalves;
    }
    fn shl_pairs<const N: i32>(self) -> Self {
        Recorded(graph(|graph| graph.shift_pairs(Two::ShlPairs, self.0, N as u8)))
    }
    fn shr_pairs<const N: i32>(self) -> Self {
        Recorded(graph(|graph| graph.shift_pairs(Two::ShrPairs, self.0, N as u8)))
    }
    fn mixed(even: Self, odd: Self) -> Self {
        even.two(Two::Mixed, odd)
    }
    fn look_up<const N: usize>(table: &'static [[i32; 4]; N], row: Self) -> [Self; 3] {
        const { assert!(N.is_power_of_two()) };
        let bytes = row.and(Self::splat(N as u32 - 1)).shl(Self::splat(4));
        graph(|graph| graph.look_up(table.as_ptr(), bytes.0)).map(Recorded)
    }
}
