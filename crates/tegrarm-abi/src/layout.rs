//! The declarations of ABI items, and the registries of them.

pub use core::mem::{offset_of, size_of};
pub use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

/// The source of a number, which is also the table that checks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// nvgpu and nvmap of L4T r36 (JetPack 6).
    R36,
    /// nvgpu and nvmap of L4T r35 (JetPack 5). Only items that differ from r36 are here.
    R35,
    /// nvgpu and nvmap of L4T r39 (JetPack 7). Only items that are new or differ from r36 are here.
    R39,
    /// RM of driver 570.86.16.
    Rm570,
    /// NV_STATUS codes.
    NvStatus,
    /// GPU class methods.
    Methods,
    /// The values of the launch descriptor.
    Qmd,
    /// RM numbers that are not in the table of 570: newer layouts, and classes and controls known from other sources.
    Extra,
    /// Linux's own files.
    Linux,
}

/// The kinds of files that take ioctls: device nodes, and anonymous files that are made from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Node {
    /// `/dev/nvmap`, ioctl magic `N`.
    Nvmap,
    /// `/dev/nvgpu/igpu0/ctrl`, magic `G`.
    Ctrl,
    /// An address space, magic `A`.
    As,
    /// A channel group (time-slice group), magic `T`.
    Tsg,
    /// A channel, magic `H`.
    Channel,
    /// `/dev/nvgpu/igpu0/dbg`, magic `D`.
    Debugger,
    /// `/dev/nvgpu/igpu0/prof*`, magic `P`.
    Profiler,
    /// `/dev/nvgpu/igpu0/sched`, magic `S`.
    Sched,
    /// `/dev/nvgpu/igpu0/nvsched`, magic `N`.
    Nvsched,
    /// `/dev/nvgpu/igpu0/ctxsw`, magic `C`.
    Ctxsw,
    /// `/dev/nvgpu/igpu0/nvsched_ctrl_fifo`, magic `F`.
    CtrlFifo,
    /// The file of a fence, magic `>`.
    SyncFile,
    /// `/dev/host1x-fence`, magic `X`.
    Host1x,
    /// The descriptor of a memory buffer. No ioctl of this crate works on it, and it can be mapped into the CPU and the
    /// GPU.
    Dmabuf,
}

/// One field of a [`StructLayout`].
#[derive(Clone, Copy, Debug)]
pub struct FieldLayout {
    /// The name of the field. Fields that begin with `_` are padding.
    pub name: &'static str,
    /// The offset from the start of the structure in bytes.
    pub offset: usize,
    /// The size in bytes.
    pub size: usize,
    /// The Rust type, as it is written.
    pub ty: &'static str,
}

/// The layout that the compiler gave to one ABI structure.
#[derive(Clone, Copy, Debug)]
pub struct StructLayout {
    /// The upstream name. Variants of r35 and r39 have the suffix `_r35` or `_r39`.
    pub name: &'static str,
    /// The size in bytes.
    pub size: usize,
    /// The source of its numbers.
    pub abi: Abi,
    /// The fields in order.
    pub fields: &'static [FieldLayout],
}

/// A structure that knows its own layout.
pub trait AbiStruct: FromBytes + IntoBytes + Immutable {
    /// The entry of the registry.
    const LAYOUT: &'static StructLayout;
}

/// Copies every field that both structures have, by name. The registry has the offsets. Padding and reserved fields are
/// not copied.
///
/// # Panics
/// When a field has different sizes in the two structures. The same name then means different things in them.
pub fn copy_shared_fields<A: AbiStruct, B: AbiStruct>(from: &A, to: &mut B) {
    let is_filler = |name: &str| ["_pad", "pad", "reserved"].iter().any(|prefix| name.starts_with(prefix));
    for here in A::LAYOUT.fields.iter().filter(|f| !is_filler(f.name)) {
        if let Some(there) = B::LAYOUT.fields.iter().find(|f| f.name == here.name) {
            assert_eq!(here.size, there.size, "{}.{} and {}", A::LAYOUT.name, here.name, B::LAYOUT.name);
            let bytes = &from.as_bytes()[here.offset..here.offset + here.size];
            to.as_mut_bytes()[there.offset..there.offset + there.size].copy_from_slice(bytes);
        }
    }
}

/// The argument of an ioctl that takes no argument, a plain integer or a bare descriptor, so that there is no structure
/// to decode.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct NoArg {}

impl AbiStruct for NoArg {
    const LAYOUT: &'static StructLayout = &StructLayout { name: "", size: 0, abi: Abi::R36, fields: &[] };
}

/// One ioctl of one node.
#[derive(Clone, Copy, Debug)]
pub struct Ioctl {
    /// The upstream name. Variants of r35 and r39 have the suffix `_R35` or `_R39`.
    pub name: &'static str,
    /// The full request of 32 bits, `_IOC(dir, magic, nr, size)`.
    pub number: u32,
    /// The kind of file that takes it.
    pub node: Node,
    /// The source of its number.
    pub abi: Abi,
    /// Its argument structure. It is [`NoArg`]'s layout if there is no structure to decode.
    pub arg: &'static StructLayout,
}

impl Ioctl {
    /// `_IOC_NR`: the number within the node's magic.
    pub const fn nr(&self) -> u32 {
        self.number & 0xff
    }
}

/// `_IOC_SIZE`: the number of bytes of a request's argument, which the kernel copies.
pub const fn argument_size(request: u32) -> usize {
    (request >> 16 & 0x3fff) as usize
}

/// One constant with a name.
#[derive(Clone, Copy, Debug)]
pub struct Const {
    /// The upstream name.
    pub name: &'static str,
    /// The value, widened.
    pub value: i128,
    /// The source of its value.
    pub abi: Abi,
}

/// A range of bits in a method's data word or in the launch descriptor. `msb` and `lsb` belong to it. An array of
/// ranges has `count` ranges that are `stride` bits apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// The highest bit.
    pub msb: u16,
    /// The lowest bit.
    pub lsb: u16,
    /// The distance between the elements of an array of ranges, or 0 for a single range.
    pub stride: u16,
    /// The number of elements.
    pub count: u16,
}

impl Bits {
    /// The `i`-th element of an array of ranges.
    #[inline]
    pub const fn at(self, i: u16) -> Bits {
        Bits { msb: self.msb + i * self.stride, lsb: self.lsb + i * self.stride, stride: 0, count: 1 }
    }
    /// The width in bits.
    #[inline]
    pub const fn width(self) -> u32 {
        (self.msb - self.lsb + 1) as u32
    }
    /// Reads the range out of one 32-bit method data word.
    pub const fn of(self, word: u32) -> u32 {
        ((word as u64 >> self.lsb) & ((1u64 << self.width()) - 1)) as u32
    }
    /// Places `value` into the range of a 32-bit word; bits that do not fit are dropped.
    #[inline]
    pub const fn put(self, value: u32) -> u32 {
        (((value as u64) & ((1u64 << self.width()) - 1)) << self.lsb) as u32
    }
    /// Reads the range (at most 64 bits wide) out of a little-endian array of dwords.
    pub fn of_words(self, words: &[u32]) -> u64 {
        let mut value = 0u64;
        let mut bit = self.lsb as usize;
        let mut got = 0;
        while bit <= self.msb as usize {
            let take = (32 - bit % 32).min(self.msb as usize + 1 - bit);
            let part = (words[bit / 32] >> (bit % 32)) as u64 & ((1u64 << take) - 1);
            value |= part << got;
            got += take;
            bit += take;
        }
        value
    }
    /// Places `value` into the range of a little-endian array of dwords; bits that do not fit are dropped.
    #[inline]
    pub fn put_words(self, words: &mut [u32], value: u64) {
        let mut bit = self.lsb as usize;
        let mut put = 0;
        while bit <= self.msb as usize {
            let take = (32 - bit % 32).min(self.msb as usize + 1 - bit);
            let mask = ((1u64 << take) - 1) as u32;
            let part = (value >> put) as u32 & mask;
            words[bit / 32] = words[bit / 32] & !(mask << (bit % 32)) | part << (bit % 32);
            put += take;
            bit += take;
        }
    }
}

/// One range of bits with a name.
#[derive(Clone, Copy, Debug)]
pub struct NamedBits {
    /// The upstream name.
    pub name: &'static str,
    /// The range itself.
    pub bits: Bits,
}

/// Declares ABI structures and their registry.
#[macro_export]
macro_rules! abi_structs {
    ($(#[$rm:meta])* pub static $reg:ident: $abi:expr;
     $( $(#[$sm:meta])* pub struct $name:ident { $( $f:ident: $t:ty, )* } )*) => {
        $(
            $(#[$sm])*
            #[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
            #[repr(C)]
            #[allow(missing_docs)]
            pub struct $name { $( pub $f: $t, )* }

            impl AbiStruct for $name {
                const LAYOUT: &'static StructLayout = &StructLayout {
                    name: stringify!($name),
                    size: size_of::<$name>(),
                    abi: $abi,
                    fields: &[ $( FieldLayout {
                        name: stringify!($f),
                        offset: offset_of!($name, $f),
                        size: size_of::<$t>(),
                        ty: stringify!($t),
                    }, )* ],
                };
            }
        )*
        $(#[$rm])*
        pub static $reg: &[&StructLayout] = &[ $( <$name as AbiStruct>::LAYOUT, )* ];
    };
}

/// Declares constants and their registry.
#[macro_export]
macro_rules! abi_consts {
    ($(#[$rm:meta])* pub static $reg:ident: $abi:expr; $( $name:ident: $t:ty = $v:expr; )*) => {
        $( #[allow(missing_docs)] pub const $name: $t = $v; )*
        $(#[$rm])*
        pub static $reg: &[Const] = &[ $( Const { name: stringify!($name), value: $name as i128, abi: $abi }, )* ];
    };
}

/// Declares the ioctls of a node and their registry. Each of them becomes a `u32` constant.
#[macro_export]
macro_rules! abi_ioctls {
    ($(#[$rm:meta])* pub static $reg:ident: $abi:expr, $node:expr; $( $name:ident: $v:expr => $arg:ty; )*) => {
        $( #[allow(missing_docs)] pub const $name: u32 = $v; )*
        $(#[$rm])*
        pub static $reg: &[Ioctl] = &[ $( Ioctl {
            name: stringify!($name), number: $name, node: $node, abi: $abi, arg: <$arg as AbiStruct>::LAYOUT,
        }, )* ];
    };
}

/// Declares bit ranges and their registry.
#[macro_export]
macro_rules! abi_bits {
    ($(#[$rm:meta])* pub static $reg:ident: $abi:expr;
     $( $name:ident: $msb:literal, $lsb:literal $(, $stride:literal * $count:literal)?; )*) => {
        $( #[allow(missing_docs)] pub const $name: Bits = $crate::abi_bits!(@one $msb, $lsb $(, $stride, $count)?); )*
        $(#[$rm])*
        pub static $reg: &[NamedBits] = &[ $( NamedBits { name: stringify!($name), bits: $name }, )* ];
    };
    (@one $msb:literal, $lsb:literal) => { Bits { msb: $msb, lsb: $lsb, stride: 0, count: 1 } };
    (@one $msb:literal, $lsb:literal, $stride:literal, $count:literal) => {
        Bits { msb: $msb, lsb: $lsb, stride: $stride, count: $count }
    };
}
