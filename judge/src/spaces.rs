//! Programs for the family of address spaces.

use crate::compare::Author;
use crate::driver::Board;
use crate::program::{Answer, Ioctl, Piece, Slot, Step};
use crate::random::Random;
use tegrarm_abi::nvgpu::address_space::*;
use tegrarm_abi::nvgpu::ctrl::*;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

const PAGE: u64 = 4096;
const PDE: u64 = 2 << 20;
/// The sizes of buffers, from one page to more than a directory entry.
const SIZES: [u32; 9] = [4096, 4096, 8192, 12 << 10, 64 << 10, 68 << 10, 1 << 20, 2 << 20, 3 << 20];
/// Numbers of pages for areas. A sparse area has at most [`SPARSE`] pages, because the driver writes an entry for each.
const PAGES: [u64; 12] = [0, 1, 2, 3, 15, 16, 17, 512, 513, 1024, 1 << 20, 1 << 48];
const SPARSE: u64 = 4096;

/// Writes one program.
pub struct Spaces {
    random: Random,
    board: Board,
    left: u32,
    buffers: Vec<(usize, u64)>,
    spaces: Vec<Space>,
    /// The step whose answer is not looked at yet, and what it asked for.
    asked: Option<Asked>,
    steps: usize,
}

struct Space {
    step: usize,
    start: u64,
    end: u64,
    /// Addresses that were in an answer.
    known: Vec<u64>,
}

enum Asked {
    Space(u64, u64),
    Address(usize),
}

/// A call with its argument, and the places and steps of the descriptors in it.
pub fn ioctl<T: IntoBytes + zerocopy::Immutable>(on: usize, request: u32, args: &T, fds: &[(usize, usize)]) -> Ioctl {
    let fds = fds.iter().map(|&(at, step)| Slot { at, step }).collect();
    Ioctl { on, request, bytes: args.as_bytes().to_vec(), fds, pieces: vec![], makes: None }
}

impl Spaces {
    pub fn new(seed: u64, board: Board) -> Spaces {
        let mut random = Random(seed);
        let left = 8 + random.below(48) as u32;
        Spaces { random, board, left, buffers: vec![], spaces: vec![], asked: None, steps: 0 }
    }

    fn learn(&mut self, answer: &Answer) {
        match self.asked.take() {
            Some(Asked::Space(start, end)) if answer.result == 0 => {
                self.spaces.push(Space { step: self.steps - 1, start, end, known: vec![] });
            }
            Some(Asked::Address(at)) if answer.result == 0 => {
                let offset = match answer.bytes.len() {
                    size if size == size_of::<nvgpu_as_map_buffer_ex_args>() => {
                        nvgpu_as_map_buffer_ex_args::read_from_bytes(&answer.bytes).map(|a| a.offset).ok()
                    }
                    _ => nvgpu_as_alloc_space_args::read_from_bytes(&answer.bytes).map(|a| a.o_a_offset).ok(),
                };
                self.spaces[at].known.extend(offset);
            }
            _ => {}
        }
    }

    fn alloc_as(&mut self) -> Step {
        let r = &mut self.random;
        let start = r.pick(&[PDE, PDE, PDE, 4 << 20, 1 << 30, 3 << 30, 0, 0x1000, PDE + 1]);
        let end = match r.below(8) {
            0 => start + PDE * r.below(40),
            1 => 0xff_ffe0_0000,
            2 => (1 << 49) - (4 << 30),
            3 => r.pick(&[(1 << 49) - (2 << 30), 1 << 49, 1 << 50, 0, 0x1000]),
            4 => start + (1 << 30) + PDE * r.below(512),
            _ => 0xff_0000_0000,
        };
        let big = match (self.board, r.below(8)) {
            (_, 0) => r.pick(&[1, 4096, 3 << 16, 64 << 10, 128 << 10, 1 << 31]),
            (Board::Xavier, 1..=5) => 64 << 10,
            _ => 0,
        };
        let mut args = nvgpu_alloc_as_args::new_zeroed();
        (args.big_page_size, args.va_range_start, args.va_range_end) = (big, start, end);
        args.flags =
            r.pick(&[NVGPU_GPU_IOCTL_ALLOC_AS_FLAGS_UNIFIED_VA, NVGPU_GPU_IOCTL_ALLOC_AS_FLAGS_UNIFIED_VA, 0, !0]);
        if args.flags & NVGPU_GPU_IOCTL_ALLOC_AS_FLAGS_UNIFIED_VA == 0 && big != 0 || r.one_in(8) {
            args.va_range_split = r.pick(&[1 << 30, 4 << 30, 0, start, end, 0x1000, 56 << 30]);
        }
        if r.one_in(16) {
            (args.reserved, args.padding[0]) = (7, 7);
        }
        self.asked = Some(Asked::Space(start, end));
        let makes = Some(std::mem::offset_of!(nvgpu_alloc_as_args, as_fd));
        Step::Ioctl(Ioctl { makes, ..ioctl(0, NVGPU_GPU_IOCTL_ALLOC_AS, &args, &[]) })
    }

    /// An address that means something in a space: one that was answered, a neighbour, an edge, or any page.
    fn address(&mut self, space: usize) -> u64 {
        let (start, end) = (self.spaces[space].start, self.spaces[space].end);
        let r = &mut self.random;
        let known = &self.spaces[space].known;
        let near = if known.is_empty() { start } else { known[r.below(known.len() as u64) as usize] };
        let pages = (end - start) / PAGE;
        match r.below(16) {
            0..=7 => near,
            8 => near.wrapping_add(PAGE * r.below(20)),
            9 => near.wrapping_sub(PAGE * r.below(20)),
            10 => near + r.below(PAGE),
            11 => start,
            12 => end - PAGE * (1 + r.below(600)),
            13 => start + PAGE * r.below(pages.min(4096)),
            14 => r.pick(&[end, start - PAGE, 0, u64::MAX & !(PAGE - 1), end + (1 << 30)]),
            _ => (start + PAGE * r.below(pages)) & !(PDE - 1),
        }
    }

    fn buffer(&mut self) -> (usize, u64) {
        match self.random.below(24) {
            // The ctrl node is no buffer, and neither is a step that does not exist.
            0 => (self.random.pick(&[0, usize::MAX]), PAGE),
            _ => self.random.pick(&self.buffers),
        }
    }

    fn page_size(&mut self) -> u32 {
        match (self.board, self.random.below(12)) {
            (_, 0) => self.random.pick(&[0, 1, 8192, 64 << 10, 128 << 10]),
            (Board::Xavier, 1..=5) => 64 << 10,
            _ => 4096,
        }
    }

    fn alloc_space(&mut self, space: usize) -> Ioctl {
        let mut args = nvgpu_as_alloc_space_args::new_zeroed();
        args.page_size = self.page_size();
        args.flags = self.random.pick(&[0, 1, 1, 2, 3, 3, 0xfffffffc]);
        args.pages = match self.random.below(3) {
            0 => self.random.below(700),
            1 => 1 << self.random.below(13),
            _ => self.random.pick(&PAGES),
        };
        if args.flags & 2 != 0 {
            args.pages = args.pages.min(SPARSE);
        }
        if args.flags & 1 != 0 || self.random.one_in(8) {
            args.o_a_offset = self.address(space);
        }
        self.asked = Some(Asked::Address(space));
        let on = self.spaces[space].step;
        if self.random.one_in(8) && args.pages < 1 << 32 {
            self.asked = None;
            let mut old = nvgpu32_as_alloc_space_args::new_zeroed();
            (old.pages, old.page_size, old.flags, old.o_a_offset) =
                (args.pages as u32, args.page_size, args.flags, args.o_a_offset);
            return ioctl(on, NVGPU32_AS_IOCTL_ALLOC_SPACE, &old, &[]);
        }
        ioctl(on, NVGPU_AS_IOCTL_ALLOC_SPACE, &args, &[])
    }

    fn map_args(&mut self, space: usize) -> (nvgpu_as_map_buffer_ex_args, usize) {
        let (buffer, size) = self.buffer();
        let mut args = nvgpu_as_map_buffer_ex_args::new_zeroed();
        let fixed = self.random.one_in(2);
        args.flags = u32::from(fixed) | self.random.pick(&[4, 4, 4, 0, 0x20, 0x40, 0x80, 0x200, 0x24]);
        args.flags |= self.random.pick(&[0, 0, 0, 1, 2, 3]) << 10;
        if self.random.one_in(24) {
            args.flags ^= 1 << self.random.below(32);
        }
        // Compressible kinds ask for compression tags, of which the stand-ins have none.
        args.compr_kind = -1;
        args.incompr_kind = self.random.pick(&[0, 0, 0, 0, 0, 0, 6, 6, 6, -1, 255, 256, -2]);
        args.page_size = self.random.pick(&[0, 4096, 64 << 10, 3]);
        if fixed || self.random.one_in(24) {
            args.offset = self.address(space);
        }
        if fixed && self.random.one_in(3) || self.random.one_in(24) {
            args.buffer_offset = self.offset(size);
            args.mapping_size = self.offset(size);
        }
        (args, buffer)
    }

    fn offset(&mut self, size: u64) -> u64 {
        match self.random.below(8) {
            0 => self.random.below(size + 2),
            1 => self.random.pick(&[size, size + PAGE, u64::MAX, u64::MAX - PAGE + 1]),
            _ => PAGE * self.random.below(size / PAGE + 1),
        }
    }

    fn batch(&mut self, space: usize) -> Ioctl {
        let mut unmaps = Vec::new();
        for _ in 0..self.random.below(4) {
            unmaps.extend(self.address(space).to_le_bytes());
        }
        let (mut maps, mut fds) = (Vec::new(), Vec::new());
        let at = std::mem::offset_of!(nvgpu_as_map_buffer_ex_args, dmabuf_fd);
        for _ in 0..self.random.below(4) {
            let (args, step) = self.map_args(space);
            fds.push(Slot { at: maps.len() + at, step });
            maps.extend(args.as_bytes());
        }
        let mut args = nvgpu_as_map_buffer_batch_args::new_zeroed();
        args.num_unmaps = (unmaps.len() / 8) as u32;
        args.num_maps = (maps.len() / size_of::<nvgpu_as_map_buffer_ex_args>()) as u32;
        if self.random.one_in(16) {
            (args.num_unmaps, args.num_maps) = self.random.pick(&[(257, args.num_maps), (args.num_unmaps, 257)]);
        }
        let mut call = ioctl(self.spaces[space].step, NVGPU_AS_IOCTL_MAP_BUFFER_BATCH, &args, &[]);
        let (unmaps_at, maps_at) = (
            std::mem::offset_of!(nvgpu_as_map_buffer_batch_args, unmaps),
            std::mem::offset_of!(nvgpu_as_map_buffer_batch_args, maps),
        );
        // A list that is left out has the address 0.
        if !unmaps.is_empty() {
            call.pieces.push(Piece { at: unmaps_at, bytes: unmaps, fds: vec![] });
        }
        if !maps.is_empty() {
            call.pieces.push(Piece { at: maps_at, bytes: maps, fds });
        }
        call
    }

    fn remap(&mut self, space: usize) -> Ioctl {
        let (mut ops, mut fds) = (Vec::new(), Vec::new());
        let count = self.random.below(4);
        let near = self.address(space) / PAGE;
        for _ in 0..count {
            let mut op = nvgpu_as_remap_op::new_zeroed();
            (op.compr_kind, op.incompr_kind) = (-1, -1);
            op.flags = self.random.pick(&[1 << 15, 1 << 15, 1 << 15, 1 << 16, 1 << 17, 3 << 15, 0]);
            op.virt_offset_in_pages = near.wrapping_add(self.random.below(8));
            op.num_pages = self.random.pick(&[1, 1, 2, 3, 0, 1 << 40]);
            if self.random.one_in(3) {
                op.mem_offset_in_pages = self.random.pick(&[0, 0, 0, 1]);
            } else {
                let (step, size) = self.buffer();
                fds.push(Slot { at: ops.len() + std::mem::offset_of!(nvgpu_as_remap_op, mem_handle), step });
                op.mem_offset_in_pages = self.random.below(size / PAGE + 1);
                op.incompr_kind = self.random.pick(&[0, 0, 6, -1]);
                op.flags |= self.random.pick(&[0, 4, 1 << 10, 1 << 10 | 4]);
            }
            if self.random.one_in(24) {
                op.flags ^= 1 << self.random.below(32);
            }
            ops.extend(op.as_bytes());
        }
        let mut args = nvgpu_as_remap_args::new_zeroed();
        args.num_ops = count as u32;
        let mut call = ioctl(self.spaces[space].step, NVGPU_AS_IOCTL_REMAP, &args, &[]);
        if count > 0 {
            call.pieces.push(Piece { at: std::mem::offset_of!(nvgpu_as_remap_args, ops), bytes: ops, fds });
        }
        call
    }

    fn regions(&mut self, on: usize) -> Ioctl {
        let mut args = nvgpu_as_get_va_regions_args::new_zeroed();
        args.buf_size = self.random.pick(&[0, 23, 24, 47, 48, 72]);
        let mut call = ioctl(on, NVGPU_AS_IOCTL_GET_VA_REGIONS, &args, &[]);
        if !self.random.one_in(6) {
            call.pieces.push(Piece { at: 0, bytes: vec![0xa5; 72], fds: vec![] });
        }
        call
    }

    fn modify(&mut self, space: usize) -> Ioctl {
        let mut args = nvgpu_as_mapping_modify_args::new_zeroed();
        (args.compr_kind, args.incompr_kind) = self.random.pick(&[(-1, 0), (-1, 6), (-1, -1), (0, -1), (8, 6)]);
        args.map_address = self.address(space);
        args.buffer_offset = self.offset(PAGE * 4);
        args.buffer_size = self.offset(PAGE * 4);
        ioctl(self.spaces[space].step, NVGPU_AS_IOCTL_MAPPING_MODIFY, &args, &[])
    }

    /// A number that is no ioctl, or has another size than its structure.
    fn malformed(&mut self, on: usize) -> Ioctl {
        let (size, number) = (self.random.below(80) as u32, self.random.below(24) as u32);
        let letter = if self.random.one_in(8) { u32::from(b'G') } else { u32::from(b'A') };
        let request = (self.random.below(4) as u32) << 30 | size << 16 | letter << 8 | number;
        let known = [
            NVGPU_AS_IOCTL_BIND_CHANNEL,
            NVGPU32_AS_IOCTL_ALLOC_SPACE,
            NVGPU_AS_IOCTL_FREE_SPACE,
            NVGPU_AS_IOCTL_UNMAP_BUFFER,
            NVGPU_AS_IOCTL_ALLOC_SPACE,
            NVGPU_AS_IOCTL_MAP_BUFFER_EX,
            NVGPU_AS_IOCTL_GET_VA_REGIONS,
            NVGPU_AS_IOCTL_MAP_BUFFER_BATCH,
            NVGPU_AS_IOCTL_GET_SYNC_RO_MAP,
            NVGPU_AS_IOCTL_MAPPING_MODIFY,
            NVGPU_AS_IOCTL_REMAP,
        ];
        let request = if known.contains(&request) { request ^ 1 << 16 } else { request };
        let bytes = (0..request >> 16 & 0x3fff).map(|_| self.random.pick(&[0, 0, 0, 1, 255])).collect();
        Ioctl { on, request, bytes, fds: vec![], pieces: vec![], makes: None }
    }

    fn call(&mut self) -> Step {
        let space = self.random.below(self.spaces.len() as u64) as usize;
        let on = self.spaces[space].step;
        let step = match self.random.below(40) {
            0..=8 => self.alloc_space(space),
            9..=12 => {
                let mut args = nvgpu_as_free_space_args::new_zeroed();
                args.offset = self.address(space);
                args.pages = self.random.below(4);
                ioctl(on, NVGPU_AS_IOCTL_FREE_SPACE, &args, &[])
            }
            13..=25 => {
                let (args, buffer) = self.map_args(space);
                self.asked = Some(Asked::Address(space));
                let at = std::mem::offset_of!(nvgpu_as_map_buffer_ex_args, dmabuf_fd);
                ioctl(on, NVGPU_AS_IOCTL_MAP_BUFFER_EX, &args, &[(at, buffer)])
            }
            26..=30 => {
                let mut args = nvgpu_as_unmap_buffer_args::new_zeroed();
                args.offset = self.address(space);
                ioctl(on, NVGPU_AS_IOCTL_UNMAP_BUFFER, &args, &[])
            }
            31 => self.regions(on),
            32 => self.batch(space),
            33..=34 => self.remap(space),
            35 => self.modify(space),
            36 => ioctl(on, NVGPU_AS_IOCTL_GET_SYNC_RO_MAP, &nvgpu_as_get_sync_ro_map_args::new_zeroed(), &[]),
            37 => self.malformed(on),
            38 => {
                let channel = self.random.pick(&[0, on, usize::MAX]);
                ioctl(on, NVGPU_AS_IOCTL_BIND_CHANNEL, &nvgpu_as_bind_channel_args::new_zeroed(), &[(0, channel)])
            }
            _ => return self.file(space),
        };
        Step::Ioctl(step)
    }

    /// Something with descriptors: a close, a duplicate, a further space.
    fn file(&mut self, space: usize) -> Step {
        match self.random.below(4) {
            0 if self.spaces.len() > 1 => Step::Close(self.spaces.swap_remove(space).step),
            1 => {
                let buffer = self.random.below(self.buffers.len() as u64) as usize;
                // The buffer is closed, but its mappings stay.
                if self.buffers.len() > 2 { Step::Close(self.buffers.swap_remove(buffer).0) } else { self.alloc_as() }
            }
            2 => {
                let (start, end) = (self.spaces[space].start, self.spaces[space].end);
                let known = self.spaces[space].known.clone();
                let of = self.spaces[space].step;
                self.spaces.push(Space { step: self.steps, start, end, known });
                Step::Dup(of)
            }
            _ => self.alloc_as(),
        }
    }
}

impl Author for Spaces {
    fn next(&mut self, answers: &[Answer]) -> Option<Step> {
        if let Some(answer) = answers.last() {
            self.learn(answer);
        }
        let step = match self.steps {
            0 => Step::Open("ctrl".into()),
            1..=4 => {
                let size = self.random.pick(&SIZES);
                self.buffers.push((self.steps, u64::from(size)));
                Step::Buffer(size)
            }
            5 => {
                let (of, size) = self.buffers[0];
                self.buffers.push((5, size));
                Step::View(of)
            }
            _ if self.left == 0 => return None,
            _ if self.spaces.is_empty() => self.alloc_as(),
            _ => self.call(),
        };
        self.left = if self.steps > 5 { self.left - 1 } else { self.left };
        self.steps += 1;
        Some(step)
    }
}
