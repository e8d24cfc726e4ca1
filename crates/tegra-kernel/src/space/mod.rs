//! GPU address spaces (docs/hardware/nvgpu-address-space.md#address-space).

pub(super) mod area;
pub(super) mod map;
pub(super) mod regions;
pub(super) mod remap;

use super::chip::ChipData;
use super::dispatch::{Call, Reply};
use super::nvmap::Buffer;
use crate::rule::Because;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tegra_hw::HwSpace;
use tegra_mm::{Buddy, Extent, PageAttributes, PageClass};
use tegrarm_abi::nvgpu::ctrl::{NVGPU_GPU_IOCTL_ALLOC_AS_FLAGS_UNIFIED_VA, nvgpu_alloc_as_args};
use tegrarm_abi::nvgpu::r35::NVGPU_GPU_IOCTL_ALLOC_AS_FLAGS_USERSPACE_MANAGED_R35;
use tegrarm_kmd::Errno;
use tegrarm_lock::Mutex;

/// The size of small pages.
pub(super) const PAGE: u64 = 4096;
/// The granularity of an address space's range, which is the range of one page directory entry.
const PDE: u64 = 2 << 20;
/// The size in bytes of the kernel's own region above the user's range.
const KERNEL_REGION: u64 = 4 << 30;
/// The first GPU virtual address that is too high.
const VA_LIMIT: u64 = 1 << 49;

/// A GPU address space. It lives for as long as its file or a bound channel.
#[derive(Debug)]
pub(super) struct AddressSpace {
    /// The mappings, as the GPU walks them.
    pub hw: Arc<HwSpace>,
    state: Mutex<Contents>,
    /// The size of big pages. 0 means that there are none.
    big_page: u64,
    /// True on r35 if the program places every mapping, without areas.
    user_managed: bool,
}

/// The parts of an address space that are in use, and their users.
#[derive(Debug)]
struct Contents {
    /// The allocators of the user's range. The first has the small pages, and also the big ones if the space is
    /// unified. The second has the big pages.
    user: Vec<Buddy>,
    kernel: Buddy,
    areas: BTreeMap<u64, Area>,
    mappings: BTreeMap<u64, Mapping>,
    /// The dmabuf, its access, the kind and the address of every mapping, to find a mapping that can be used again.
    by_buffer: BTreeSet<(Key, u64)>,
    /// The address at which the syncpoint aperture is mapped read-only, after it was mapped.
    sync_ro: Option<u64>,
}

/// A reserved range.
#[derive(Debug)]
struct Area {
    size: u64,
    page_size: u64,
    /// True if unmapped pages read as zero and drop writes.
    sparse: bool,
}

/// Sparse pages.
fn sparse_extent(va: u64, len: u64) -> Extent {
    Extent { va, len, writable: true, ..Extent::default() }
}

/// One mapping that exists.
#[derive(Debug)]
struct Mapping {
    size: u64,
    key: Key,
    flags: u32,
    /// The number of MAP calls that returned it, minus the number of UNMAP calls.
    refs: u32,
    /// True if the program placed it, so that its address belongs to an area, or to the program.
    fixed: bool,
    /// True if it was placed in an area. It ends with that.
    in_area: bool,
    /// True if it was placed in a sparse area: its pages become sparse again, even if the area was freed before.
    sparse: bool,
    writable: bool,
    attributes: PageAttributes,
    /// Keeps the dmabuf alive.
    buffer: Arc<Buffer>,
}

/// The identity of a dmabuf in a mapping: the buffer, and whether it may only be read.
type BufferId = (u64, bool);

fn buffer_id(buffer: &Buffer, read_only: bool) -> BufferId {
    (buffer.serial, read_only)
}

/// The properties by which two mappings of one buffer count as the same: the dmabuf and the kind that was asked for.
type Key = (BufferId, i16);

impl Contents {
    /// A free address for `size` bytes.
    fn place(&mut self, space: &AddressSpace, size: u64) -> Option<u64> {
        let class = space.class(size);
        let len = if class == PageClass::Big { size.next_multiple_of(space.big_page) } else { size };
        let split = self.user.len() > 1;
        let allocator = if split && class == PageClass::Big { 1 } else { 0 };
        self.user[allocator].alloc(len, class)
    }

    /// Whether a mapping lies in `start..end`.
    fn overlaps(&self, start: u64, end: u64) -> bool {
        self.mappings.range(..end).next_back().is_some_and(|(va, m)| va + m.size > start)
    }

    /// Drops one reference to a mapping. With the last one, the mapping is removed from the tables. If it lies in an
    /// area, its address stays reserved.
    fn put(&mut self, space: &AddressSpace, va: u64) -> Option<Mapping> {
        let mapping = self.mappings.get_mut(&va)?;
        mapping.refs -= 1;
        if mapping.refs > 0 {
            return None;
        }
        let mapping = self.mappings.remove(&va)?;
        self.by_buffer.remove(&(mapping.key, va));
        space.hw.update(|table| {
            table.clear(va, va + mapping.size);
            if mapping.sparse {
                table.insert(sparse_extent(va, mapping.size));
            }
        });
        if !mapping.fixed
            && let Some(allocator) = AddressSpace::allocator(self, va)
        {
            allocator.free(va);
        }
        Some(mapping)
    }

    /// The area that contains `va`, with its start.
    fn area(&self, va: u64) -> Option<(u64, &Area)> {
        let (start, area) = self.areas.range(..=va).next_back()?;
        (va < start + area.size).then_some((*start, area))
    }
}

impl AddressSpace {
    /// ALLOC_AS: makes the checks of docs/hardware/nvgpu-address-space.md#alloc-as in order, and then the space.
    pub(super) fn create(call: &Call<'_>, args: &nvgpu_alloc_as_args) -> Reply<AddressSpace> {
        let chip = call.board.chip;
        let big = u64::from(args.big_page_size);
        let unknown_big = big != 0 && (!big.is_power_of_two() || chip.available_big_pages & args.big_page_size == 0);
        let (start, end, split) = (args.va_range_start, args.va_range_end, args.va_range_split);
        let bad = |va: u64| va == 0 || !va.is_multiple_of(PDE);
        if unknown_big {
            return Err(Errno::EINVAL.because("big_page_size is none of the chip's (0 stands for its default)").into());
        }
        if bad(start) || bad(end) || start >= end {
            let rule =
                format!("va_range {start:#x}..{end:#x} is empty, begins at 0, or is not of multiples of {PDE:#x}");
            return Err(Errno::EINVAL.because(rule).into());
        }
        let unified = args.flags & NVGPU_GPU_IOCTL_ALLOC_AS_FLAGS_UNIFIED_VA != 0 || big == 0;
        let bad_split = if unified { split != 0 } else { bad(split) || split <= start || split >= end };
        if bad_split {
            let rule = "va_range_split is 0 with UNIFIED_VA, and otherwise a multiple of the page directory's reach inside \
                        the range";
            return Err(Errno::EINVAL.because(rule).into());
        }
        let above = || Errno::ENOMEM.because("above va_range_end there is no room for the kernel's own addresses");
        let top = end.checked_add(KERNEL_REGION).filter(|top| *top <= VA_LIMIT).ok_or_else(above)?;
        let user =
            if unified { vec![Buddy::new(start, end)] } else { vec![Buddy::new(start, split), Buddy::new(split, end)] };
        let managed = call.is_r35() && args.flags & NVGPU_GPU_IOCTL_ALLOC_AS_FLAGS_USERSPACE_MANAGED_R35 != 0;
        Ok(AddressSpace { user_managed: managed, ..AddressSpace::of_ranges(user, Buddy::new(end, top), big) })
    }

    fn of_ranges(user: Vec<Buddy>, kernel: Buddy, big_page: u64) -> AddressSpace {
        AddressSpace {
            hw: Arc::default(),
            state: Mutex::new(Contents {
                user,
                kernel,
                areas: BTreeMap::new(),
                mappings: BTreeMap::new(),
                by_buffer: BTreeSet::new(),
                sync_ro: None,
            }),
            big_page,
            user_managed: false,
        }
    }

    /// The address space that the driver makes for the unit that writes performance records. It has everything below
    /// 2^37 except the first page. Big pages lie from 56 GiB on.
    pub(super) fn of_perfbuf(chip: &ChipData) -> AddressSpace {
        const END: u64 = 1 << 37;
        const SPLIT: u64 = 56 << 30;
        let big = u64::from(chip.big_page);
        let user = match big {
            0 => vec![Buddy::new(PAGE, END)],
            _ => vec![Buddy::new(PAGE, SPLIT), Buddy::new(SPLIT, END)],
        };
        AddressSpace::of_ranges(user, Buddy::new(END, END + KERNEL_REGION), big)
    }

    /// Maps memory in the kernel's own region, for the kernel's own use. The program cannot unmap it.
    pub(super) fn map_kernel(
        self: &Arc<Self>,
        backing: Arc<tegra_mm::Backing>,
        offset: u64,
        len: u64,
        writable: bool,
    ) -> Result<KernelMapping, Errno> {
        let len = len.next_multiple_of(PAGE);
        let va = self.state.lock().kernel.alloc(len, PageClass::Small).ok_or(Errno::ENOMEM)?;
        let backing = Some(backing);
        let extent = Extent { va, len, backing, offset: offset as usize, writable, ..Extent::default() };
        self.write(extent);
        Ok(KernelMapping { space: self.clone(), va, len })
    }

    /// Writes the entries of a mapping. What was there is replaced: a program that divides the addresses itself may have mapped something
    /// over the kernel's addresses, and the last one wins.
    fn write(&self, extent: Extent) {
        self.hw.update(|table| {
            table.clear(extent.va, extent.end());
            table.insert(extent);
        });
    }

    /// The user allocator whose range contains `va`.
    fn allocator(state: &mut Contents, va: u64) -> Option<&mut Buddy> {
        state.user.iter_mut().find(|b| (b.start()..b.end()).contains(&va))
    }

    /// The page class of mappings whose page size the kernel chooses.
    fn class(&self, size: u64) -> PageClass {
        if self.big_page != 0 && size >= self.big_page { PageClass::Big } else { PageClass::Small }
    }
}

/// A mapping in the kernel's own region. Dropping it removes the mapping.
#[derive(Debug)]
pub(super) struct KernelMapping {
    space: Arc<AddressSpace>,
    /// The address of the mapping.
    pub va: u64,
    len: u64,
}

impl Drop for KernelMapping {
    fn drop(&mut self) {
        self.space.hw.update(|table| table.clear(self.va, self.va + self.len));
        self.space.state.lock().kernel.free(self.va);
    }
}
