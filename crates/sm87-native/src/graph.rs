//! What a piece of a program computes, as a graph of values.

use std::collections::{BTreeMap, HashMap};

/// A value: 32 bits in each lane. A *mask* has all bits of a lane set, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub(crate) u32);

/// Operations on one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum One {
    /// A signed integer becomes a float, rounded to nearest even.
    ToFloat,
    /// A float becomes a signed integer, toward zero. Numbers that do not fit become `0x80000000`.
    ToInteger,
    /// A float becomes an integral float, to nearest even.
    Nearest,
    /// A float becomes a float of 16 bits, to nearest even. The upper half of the result is zero, and the payload of a NaN is not specified.
    Half,
    /// Every NaN becomes `0x7fffffff`.
    Canonical,
}

/// Operations on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Two {
    /// The sum, without its carry.
    Add,
    /// The first minus the second.
    Sub,
    /// The low half of the product.
    Mul,
    /// Bits that both have.
    And,
    /// Bits that the second has and the first has not.
    AndNot,
    /// Bits that one of the two has.
    Or,
    /// Bits that exactly one of the two has.
    Xor,
    /// Shifts the first to the left by the second. Counts of 32 and more give zero.
    Shl,
    /// The same to the right.
    Shr,
    /// The same of a number with a sign. Counts of 32 and more give the sign.
    Sar,
    /// A mask: the two are equal.
    Equal,
    /// A mask: the first is greater, as signed numbers.
    Greater,
    /// The lesser of numbers without signs.
    Least,
    /// The greater of numbers without signs.
    Most,
    /// The sum of floats, rounded to nearest even, with denormals. The payload of a NaN is not specified.
    AddFloat,
    /// The first minus the second, in the same way.
    SubFloat,
    /// The product, in the same way.
    MulFloat,
    /// A mask: the first float is less.
    LessFloat,
    /// A mask: the floats are equal.
    EqualFloat,
    /// A mask: the first float is less, or they are equal.
    AtMostFloat,
    /// A mask: one of the two is a NaN.
    Unordered,
    /// The upper halves of the products of the lower and of the upper 16 bits, without signs.
    HighHalves,
    /// Two lanes are a *pair*, an even lane and the next one, which is the upper half of 64 bits. The product of the even lanes as a pair,
    /// without signs.
    Product,
    /// The same with signs.
    SignedProduct,
    /// The sum of pairs.
    AddPairs,
    /// A mask of pairs: they are equal.
    EqualPairs,
    /// The first pair minus the second, as doubles.
    SubDoubles,
    /// Shifts pairs to the left, by a number below 64 that is known.
    ShlPairs,
    /// The same to the right.
    ShrPairs,
    /// The even lanes of the first, and the odd lanes of the second.
    Mixed,
    /// In each half of a vector, the lower two lanes of both, in turns.
    Low,
    /// The same of the upper two lanes.
    High,
    /// In each half of a vector, the lower pairs of both.
    LowPairs,
    /// The same of the upper pairs.
    HighPairs,
}

/// How a value is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    /// The row at this offset in words, as it was before the piece.
    Row(u32),
    /// The constant at this offset in words.
    Constant(u32),
    /// The same number in all lanes.
    Word(u32),
    /// A mask: the lanes that were set in the set of lanes with this index before the piece.
    Lanes(u8),
    One(One, Value),
    Two(Two, Value, Value),
    /// A shift by a number below 32, or below 64 if pairs are shifted.
    By(Two, Value, u8),
    /// Four words at this address, a lane's number of bytes behind it, in the lower half, and those of the lane that is four higher.
    Quads {
        table: usize,
        bytes: Value,
        lane: u8,
    },
    /// A word of each lane, so many bytes behind the place to which a window leads, or before it.
    Loaded {
        window: u8,
        bytes: i32,
    },
    /// `a · b + c` of floats, rounded once, with the signs of the product and of `c` changed if the flags say so.
    Fma {
        a: Value,
        b: Value,
        c: Value,
        minus_product: bool,
        minus_c: bool,
    },
    Select {
        mask: Value,
        yes: Value,
        no: Value,
    },
}

impl Node {
    /// The values that it is made of.
    pub(crate) fn operands(self) -> impl Iterator<Item = Value> {
        let all = match self {
            Node::Row(_) | Node::Constant(_) | Node::Word(_) | Node::Lanes(_) | Node::Loaded { .. } => [None; 3],
            Node::One(_, a) | Node::By(_, a, _) | Node::Quads { bytes: a, .. } => [Some(a), None, None],
            Node::Two(_, a, b) => [Some(a), Some(b), None],
            Node::Fma { a, b, c, .. } => [Some(a), Some(b), Some(c)],
            Node::Select { mask, yes, no } => [Some(mask), Some(yes), Some(no)],
        };
        all.into_iter().flatten()
    }

    /// Whether an instruction makes it. Other values are in memory when the piece begins, and stay there.
    pub(crate) fn is_made(self) -> bool {
        !matches!(self, Node::Row(_) | Node::Constant(_) | Node::Word(_) | Node::Lanes(_))
    }
}

/// Where a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// The row at this offset in words.
    Row(u32),
    /// The set of lanes with this index.
    Lanes(u8),
}

/// What is written at a place when the piece ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub value: Value,
    /// The number of nodes that there were when the value was written: later nodes are of later instructions.
    pub at: u32,
    /// Whether it is written for all lanes, also for those that do not execute the piece.
    pub everywhere: bool,
}

const SIGN: u32 = 1 << 31;
const ONES: u32 = u32::MAX;

/// What a piece of a program computes.
#[derive(Default)]
pub struct Graph {
    pub(crate) nodes: Vec<Node>,
    known: HashMap<Node, Value>,
    pub(crate) writes: BTreeMap<Place, Write>,
    /// Masks of the lanes that execute an instruction, and how many instructions have this mask.
    pub(crate) guards: BTreeMap<Value, u32>,
}

impl Graph {
    fn node(&mut self, node: Node) -> Value {
        let next = Value(self.nodes.len() as u32);
        let value = *self.known.entry(node).or_insert(next);
        if value == next {
            self.nodes.push(node);
        }
        value
    }

    /// The value that stood at a place before the piece, if it is part of the graph.
    pub(crate) fn standing_at(&self, place: Place) -> Option<Value> {
        let node = match place {
            Place::Row(offset) => Node::Row(offset),
            Place::Lanes(index) => Node::Lanes(index),
        };
        self.known.get(&node).copied()
    }

    pub(crate) fn of(&self, value: Value) -> Node {
        self.nodes[value.0 as usize]
    }

    fn word_of(&self, value: Value) -> Option<u32> {
        if let Node::Word(x) = self.of(value) { Some(x) } else { None }
    }

    /// The number in all lanes.
    pub fn word(&mut self, x: u32) -> Value {
        self.node(Node::Word(x))
    }

    /// The constant at an offset in words. It is the same in all lanes.
    pub fn constant(&mut self, offset: u32) -> Value {
        self.node(Node::Constant(offset))
    }

    /// What the row at an offset in words holds now.
    pub fn row(&mut self, offset: u32) -> Value {
        self.writes.get(&Place::Row(offset)).map(|write| write.value).unwrap_or_else(|| self.node(Node::Row(offset)))
    }

    /// The mask of the lanes in a set.
    pub fn lanes(&mut self, index: u8) -> Value {
        self.writes.get(&Place::Lanes(index)).map(|write| write.value).unwrap_or_else(|| self.node(Node::Lanes(index)))
    }

    /// Writes a row. `everywhere` also writes the lanes that do not execute the piece; the value must then be the same in all lanes.
    pub fn set_row(&mut self, offset: u32, value: Value, everywhere: bool) {
        self.set(Place::Row(offset), value, everywhere);
    }

    /// Writes a set of lanes.
    pub fn set_lanes(&mut self, index: u8, value: Value, everywhere: bool) {
        self.set(Place::Lanes(index), value, everywhere);
    }

    fn set(&mut self, place: Place, value: Value, everywhere: bool) {
        self.writes.insert(place, Write { value, at: self.nodes.len() as u32, everywhere });
    }

    /// Forgets what is written to rows at some offsets, because nobody reads it after the piece.
    pub fn keep_rows(&mut self, read: impl Fn(u32) -> bool) {
        self.writes.retain(|place, _| if let Place::Row(offset) = place { read(*offset) } else { true });
    }

    /// Notes that only the lanes of a mask execute an instruction.
    pub fn guarded(&mut self, mask: Value) {
        *self.guards.entry(mask).or_default() += 1;
    }

    /// An operation on one value.
    pub fn one(&mut self, op: One, a: Value) -> Value {
        match (op, self.of(a)) {
            (One::Canonical, Node::One(One::Canonical, _)) => a,
            _ => self.node(Node::One(op, a)),
        }
    }

    /// An operation on two values.
    pub fn two(&mut self, op: Two, a: Value, b: Value) -> Value {
        let (a, b) = if op.is_of_floats() { (self.any_nan(a), self.any_nan(b)) } else { (a, b) };
        if let (Some(x), Some(y)) = (self.word_of(a), self.word_of(b))
            && let Some(known) = op.of_words(x, y)
        {
            return self.word(known);
        }
        if op.commutes() && self.word_of(a).is_some() && self.word_of(b).is_none() {
            return self.two(op, b, a);
        }
        self.simpler(op, a, b).unwrap_or_else(|| self.node(Node::Two(op, a, b)))
    }

    /// The operation in a simpler way.
    fn simpler(&mut self, op: Two, a: Value, b: Value) -> Option<Value> {
        let word = self.word_of(b);
        Some(match (op, word) {
            (Two::Add | Two::Sub | Two::Or | Two::Xor | Two::Shl | Two::Shr | Two::Sar, Some(0)) => a,
            (Two::And, Some(ONES)) | (Two::Mul, Some(1)) => a,
            (Two::And | Two::Mul, Some(0)) | (Two::Or, Some(ONES)) => b,
            (Two::Shl | Two::Shr, Some(32..)) => self.word(0),
            (Two::Shl | Two::Shr, Some(n)) => self.node(Node::By(op, a, n as u8)),
            (Two::Sar, Some(n)) => self.node(Node::By(op, a, n.min(31) as u8)),
            (Two::Mul, Some(n)) if n.is_power_of_two() => self.node(Node::By(Two::Shl, a, n.trailing_zeros() as u8)),
            (Two::Xor, Some(ONES)) => return self.complemented(a),
            (Two::And, _) => match (self.complemented(a), self.complemented(b)) {
                (Some(a), _) => self.node(Node::Two(Two::AndNot, a, b)),
                (_, Some(b)) => self.node(Node::Two(Two::AndNot, b, a)),
                _ if a == b => a,
                _ => return None,
            },
            (Two::Or, _) if a == b => a,
            (Two::Xor | Two::Sub, _) if a == b => self.word(0),
            (Two::AddFloat, _) => match (self.negated(a), self.negated(b)) {
                (_, Some(b)) => self.node(Node::Two(Two::SubFloat, a, self.any_nan(b))),
                (Some(a), _) => self.node(Node::Two(Two::SubFloat, b, self.any_nan(a))),
                _ => return None,
            },
            _ => return None,
        })
    }

    /// What a value is the complement of.
    fn complemented(&self, value: Value) -> Option<Value> {
        match self.of(value) {
            Node::Two(Two::Xor, x, ones) if self.word_of(ones) == Some(ONES) => Some(x),
            _ => None,
        }
    }

    /// What a value is the opposite of, as a float.
    fn negated(&self, value: Value) -> Option<Value> {
        match self.of(value) {
            Node::Two(Two::Xor, x, sign) if self.word_of(sign) == Some(SIGN) => Some(x),
            _ => None,
        }
    }

    /// A value that is a NaN in the same lanes. Operations on floats do not care which NaN it is.
    fn any_nan(&self, value: Value) -> Value {
        if let Node::One(One::Canonical, x) = self.of(value) { x } else { value }
    }

    /// Shifts pairs by a number below 64, to the left (`ShlPairs`) or to the right.
    pub fn shift_pairs(&mut self, op: Two, a: Value, n: u8) -> Value {
        if n == 0 { a } else { self.node(Node::By(op, a, n)) }
    }

    /// For each lane, the first three words of the row of a table that begins so many bytes behind its beginning. The table must have all
    /// rows that can occur, and it must exist as long as the code. (Gathers of the host are slower on many processors.)
    pub fn look_up(&mut self, table: *const [i32; 4], bytes: Value) -> [Value; 3] {
        let table = table as usize;
        let [a, b, c, d] = [0, 1, 2, 3].map(|lane| self.node(Node::Quads { table, bytes, lane }));
        let low = [self.two(Two::Low, a, b), self.two(Two::Low, c, d)];
        let high = [self.two(Two::High, a, b), self.two(Two::High, c, d)];
        let [first, second] = [Two::LowPairs, Two::HighPairs].map(|op| self.two(op, low[0], low[1]));
        [first, second, self.two(Two::LowPairs, high[0], high[1])]
    }

    /// The words that a window leads to, so many bytes further on. Nobody else's writes are seen between two loads of the same words.
    pub fn loaded(&mut self, window: u8, bytes: i32) -> Value {
        self.node(Node::Loaded { window, bytes })
    }

    /// Whether it loads words through windows.
    pub(crate) fn loads(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node, Node::Loaded { .. }))
    }

    /// Of each value, whether lanes need it that do not execute the piece.
    pub(crate) fn needed_everywhere(&self) -> Vec<bool> {
        let mut needed = vec![false; self.nodes.len()];
        let everywhere = self.writes.values().filter(|write| write.everywhere);
        everywhere.for_each(|write| needed[write.value.0 as usize] = true);
        for (at, node) in self.nodes.iter().enumerate().rev() {
            if needed[at] {
                node.operands().for_each(|operand| needed[operand.0 as usize] = true);
            }
        }
        needed
    }

    /// Whether something is written to a row of which this is the offset in words.
    pub fn writes_row(&self, offset: u32) -> bool {
        self.writes.contains_key(&Place::Row(offset))
    }

    /// `a · b + c` of floats, rounded once. The payload of a NaN is not specified.
    pub fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        let [a, b, c] = [a, b, c].map(|x| self.any_nan(x));
        let [x, y, z] = [a, b, c].map(|x| self.negated(x));
        let minus_product = x.is_some() != y.is_some();
        let minus_c = z.is_some();
        let [a, b, c] = [x.unwrap_or(a), y.unwrap_or(b), z.unwrap_or(c)].map(|x| self.any_nan(x));
        self.node(Node::Fma { a, b, c, minus_product, minus_c })
    }

    /// `mask ? yes : no`.
    pub fn select(&mut self, mask: Value, yes: Value, no: Value) -> Value {
        match self.word_of(mask) {
            _ if yes == no => yes,
            Some(0) => no,
            Some(ONES) => yes,
            _ => match self.complemented(mask) {
                Some(mask) => self.node(Node::Select { mask, yes: no, no: yes }),
                None => self.node(Node::Select { mask, yes, no }),
            },
        }
    }
}

impl Two {
    fn is_of_floats(self) -> bool {
        use Two::*;
        matches!(self, AddFloat | SubFloat | MulFloat | LessFloat | EqualFloat | AtMostFloat | Unordered)
    }

    /// Whether the order of the operands makes no difference.
    pub(crate) fn commutes(self) -> bool {
        use Two::*;
        matches!(
            self,
            Add | Mul
                | And
                | Or
                | Xor
                | Equal
                | Least
                | Most
                | AddFloat
                | MulFloat
                | EqualFloat
                | Unordered
                | HighHalves
                | Product
                | SignedProduct
                | AddPairs
                | EqualPairs
        )
    }

    /// The result of two numbers that are known, if they are integers.
    fn of_words(self, x: u32, y: u32) -> Option<u32> {
        let mask = |is: bool| if is { ONES } else { 0 };
        Some(match self {
            Two::Add => x.wrapping_add(y),
            Two::Sub => x.wrapping_sub(y),
            Two::Mul => x.wrapping_mul(y),
            Two::And => x & y,
            Two::AndNot => !x & y,
            Two::Or => x | y,
            Two::Xor => x ^ y,
            Two::Shl => x.checked_shl(y).unwrap_or(0),
            Two::Shr => x.checked_shr(y).unwrap_or(0),
            Two::Sar => ((x as i32) >> y.min(31)) as u32,
            Two::Equal => mask(x == y),
            Two::Greater => mask(x as i32 > y as i32),
            Two::Least => x.min(y),
            Two::Most => x.max(y),
            _ => return None,
        })
    }
}
