//! Programs for the family of nvmap: handles, their memory, dma-bufs, and handles after they were freed.

use crate::compare::Author;
use crate::program::{Answer, Ioctl, Piece, Step};
use crate::random::Random;
use crate::spaces::ioctl;
use std::mem::offset_of;
use tegrarm_abi::nvmap::*;
use zerocopy::{FromZeros, IntoBytes};

/// The bytes of a program's memory for READ, WRITE and lists.
const MEMORY: usize = 256;
/// A heap that the simulated board does not have, and neither do the stand-ins.
const ABSENT: u32 = NVMAP_HEAP_CARVEOUT_TSEC;

/// Writes one program.
pub struct Nvmap {
    random: Random,
    left: u32,
    steps: usize,
    /// The steps that opened the node, and those that made descriptors of dma-bufs.
    nodes: Vec<usize>,
    dmabufs: Vec<usize>,
    /// The ids that were answered. Some of them are freed.
    ids: Vec<u32>,
    asked: Asked,
    /// Whether a list was sent: nvmap may have lost a handle, and its memory is not free again.
    lost: bool,
}

/// What the last step makes if it succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Nothing,
    /// An id at a place of the argument.
    Id(usize),
    Dmabuf,
    Node,
}

impl Nvmap {
    pub fn new(seed: u64) -> Nvmap {
        let mut random = Random(seed ^ 0x0a9 << 44);
        let left = 8 + random.below(40) as u32;
        Nvmap {
            random,
            left,
            steps: 0,
            nodes: vec![],
            dmabufs: vec![],
            ids: vec![],
            asked: Asked::Nothing,
            lost: false,
        }
    }

    fn id(&mut self) -> u32 {
        if self.ids.is_empty() || self.random.one_in(24) {
            return self.random.pick(&[0, 0x7fff_ffff, 0x8000_0100, u32::MAX]);
        }
        // Newer ids more often, because older ones are often freed.
        let last = self.ids.len() as u64;
        let at =
            if self.random.one_in(3) { self.random.below(last) } else { last - 1 - self.random.below(last.min(3)) };
        self.ids[at as usize]
    }

    /// Now and then a descriptor takes the place of an id.
    fn descriptor_for_id(&mut self, at: usize) -> Vec<(usize, usize)> {
        if self.dmabufs.is_empty() || !self.random.one_in(16) {
            return vec![];
        }
        vec![(at, self.random.pick(&self.dmabufs))]
    }

    fn word(&mut self, likely: &[u32]) -> u32 {
        if self.random.one_in(16) { self.random.next() as u32 } else { self.random.pick(likely) }
    }

    fn create(&mut self, on: usize) -> Ioctl {
        let size = self.random.pick(&[1, 4095, 4096, 4096, 4097, 8192, 65536, 69632, 1 << 20, 0]);
        if self.random.one_in(4) {
            let size: u64 = if self.random.one_in(4) { 1 << 42 } else { size };
            self.asked = Asked::Id(0);
            return ioctl(on, NVMAP_IOC_CREATE_64, &size, &[]);
        }
        self.asked = Asked::Id(offset_of!(nvmap_create_handle, handle));
        ioctl(on, NVMAP_IOC_CREATE, &[size as u32, self.word(&[0, 7])], &[])
    }

    fn alloc(&mut self, on: usize) -> Ioctl {
        let mut args = nvmap_alloc_handle::new_zeroed();
        args.handle = self.id();
        let heaps = [NVMAP_HEAP_IOVMM, NVMAP_HEAP_IOVMM, NVMAP_HEAP_IOVMM, NVMAP_HEAP_IOVMM, 0, ABSENT];
        args.heap_mask = self.random.pick(&heaps);
        if self.random.one_in(8) {
            args.heap_mask |= self.random.pick(&[NVMAP_HEAP_CARVEOUT_IVM, NVMAP_HEAP_CARVEOUT_VIDMEM, ABSENT]);
        }
        args.flags = self.random.pick(&[0, 1, 2, 3]) | self.random.pick(&[0x900_0000, 0, 0x900_0000]);
        args.flags |= self.random.pick(&[0, 0, 0, 8, 0x20, 0x40, 0x80, 0x100, 0x200, 0x40, 0x100]);
        args.align = self.random.pick(&[0, 4096, 4096, 64, 1, 3, 8192, 1 << 31, 65536, 4097]);
        args.numa_nid = self.random.pick(&[-1, -1, -1, -1, 0, 0, -2, 17, i32::MIN]);
        let fds = self.descriptor_for_id(offset_of!(nvmap_alloc_handle, handle));
        ioctl(on, NVMAP_IOC_ALLOC, &args, &fds)
    }

    fn get_fd(&mut self, on: usize) -> Ioctl {
        self.asked = Asked::Dmabuf;
        // A descriptor in place of the id would take a reference from the dma-buf that nobody gave (docs/judge.md).
        Ioctl { makes: Some(0), ..ioctl(on, NVMAP_IOC_GET_FD, &[0, self.id()], &[]) }
    }

    fn from_fd(&mut self, on: usize) -> Ioctl {
        let all: Vec<usize> = self.dmabufs.iter().chain(&self.nodes).copied().chain([usize::MAX]).collect();
        let good = !self.dmabufs.is_empty() && !self.random.one_in(8);
        let fd = if good { self.random.pick(&self.dmabufs) } else { self.random.pick(&all) };
        self.asked = Asked::Id(offset_of!(nvmap_create_handle, handle));
        ioctl(on, NVMAP_IOC_FROM_FD, &[0, self.word(&[0, 7])], &[(0, fd)])
    }

    fn duplicate(&mut self, on: usize) -> Ioctl {
        let mut args = nvmap_duplicate_handle::new_zeroed();
        args.handle = self.id();
        args.access_flags = self.random.pick(&[0, 0, NVMAP_HANDLE_RO, NVMAP_HANDLE_RO, 1, NVMAP_HANDLE_RO | 1]);
        let fds = self.descriptor_for_id(offset_of!(nvmap_duplicate_handle, handle));
        self.asked = Asked::Id(offset_of!(nvmap_duplicate_handle, dup_handle));
        ioctl(on, NVMAP_IOC_DUP_HANDLE, &args, &fds)
    }

    fn parameters(&mut self, on: usize) -> Ioctl {
        let mut args = nvmap_handle_parameters::new_zeroed();
        // What the call does not write stays.
        args.as_mut_bytes().fill(self.random.pick(&[0, 0xa5]));
        args.handle = self.id();
        let fds = self.descriptor_for_id(offset_of!(nvmap_handle_parameters, handle));
        ioctl(on, NVMAP_IOC_PARAMETERS, &args, &fds)
    }

    /// A copy never reaches beyond the program's memory: what is wrong is refused before, or lies in the buffer alone.
    fn copy(&mut self, on: usize) -> Ioctl {
        let mut args = nvmap_rw_handle::new_zeroed();
        args.handle = self.id();
        args.count = self.random.below(4);
        args.elem_size = self.random.pick(&[0, 1, 8, 16, 16, 64, 64, 1 << 40]);
        args.user_stride = self.random.pick(&[args.elem_size, args.elem_size, 64, 8]).min(64);
        args.hmem_stride = self.random.pick(&[args.elem_size, args.elem_size, 64, 8, 4000, 1 << 50]);
        args.offset = self.random.pick(&[0, 0, 8, 1, 4, 4032, 4080, 4095, 4096, 1 << 33, u64::MAX]);
        if self.random.one_in(16) {
            args.count = 1 << 40;
            args.user_stride = self.random.pick(&[1 << 30, 1 << 40]);
        }
        let request = self.random.pick(&[NVMAP_IOC_READ, NVMAP_IOC_WRITE]);
        let fds = self.descriptor_for_id(offset_of!(nvmap_rw_handle, handle));
        let mut call = ioctl(on, request, &args, &fds);
        if !self.random.one_in(16) {
            let fill = self.random.next() as u8;
            call.pieces.push(Piece {
                at: 0,
                bytes: (0..MEMORY).map(|i| fill.wrapping_add(i as u8)).collect(),
                fds: vec![],
            });
        }
        call
    }

    /// Cache maintenance of an address at which no buffer is mapped, and of lists.
    fn maintain(&mut self, on: usize) -> Ioctl {
        if self.random.one_in(3) {
            let mut args = nvmap_cache_op_64::new_zeroed();
            (args.addr, args.handle) = (self.random.pick(&[0, 8, 8]), self.id());
            (args.len, args.op) = (self.random.pick(&[0, 4096, u64::MAX]), self.random.pick(&[0, 1, 2, 3, -1]));
            return ioctl(on, NVMAP_IOC_CACHE_64, &args, &[]);
        }
        self.lost = true;
        let mut args = nvmap_cache_op_list::new_zeroed();
        args.nr = self.random.pick(&[1, 1, 2, 3, 0, 1 << 30, u32::MAX]);
        args.op = self.random.pick(&[0, 1, 2, 3, -1, i32::MIN, i32::MIN | 1]);
        let mut call = ioctl(on, NVMAP_IOC_CACHE_LIST, &args, &[]);
        let ids: Vec<u32> = (0..4).map(|_| self.id()).collect();
        let numbers = vec![self.random.pick(&[0u64, 1, 4096]); 4];
        let lists = [
            (offset_of!(nvmap_cache_op_list, handles), ids.as_bytes().to_vec()),
            (offset_of!(nvmap_cache_op_list, offsets), numbers.as_bytes().to_vec()),
            (offset_of!(nvmap_cache_op_list, sizes), numbers.as_bytes().to_vec()),
        ];
        for (at, bytes) in lists {
            if !self.random.one_in(16) {
                call.pieces.push(Piece { at, bytes, fds: vec![] });
            }
        }
        call
    }

    fn heaps(&mut self, on: usize) -> Ioctl {
        let heap = self.random.pick(&[NVMAP_HEAP_IOVMM, NVMAP_HEAP_IOVMM, ABSENT, NVMAP_HEAP_CARVEOUT_IVM, 0, 1 << 31]);
        if self.random.one_in(3) {
            // No carveout is there, whatever the bit.
            return ioctl(on, NVMAP_IOC_GET_HEAP_SIZE, &[heap, 0, 5, 6], &[]);
        }
        let mut args = nvmap_query_heap_params::new_zeroed();
        args.as_mut_bytes().fill(self.random.pick(&[0, 0xa5]));
        args.heap_mask = if self.lost { ABSENT } else { heap };
        ioctl(on, NVMAP_IOC_QUERY_HEAP_PARAMS, &args, &[])
    }

    fn label(&mut self, on: usize) -> Ioctl {
        let args = [self.random.pick(&[1, 0x900]), self.random.pick(&[0, 1, 31, 63, 64, u32::MAX]), 0, 0];
        let mut call = ioctl(on, NVMAP_IOC_SET_TAG_LABEL, &args, &[]);
        if !self.random.one_in(6) {
            call.pieces.push(Piece { at: 8, bytes: vec![b'x'; MEMORY], fds: vec![] });
        }
        call
    }

    /// A number that nvmap does not know.
    fn malformed(&mut self, on: usize) -> Ioctl {
        let known = self.random.pick(&[NVMAP_IOC_CREATE, NVMAP_IOC_ALLOC, NVMAP_IOC_READ, NVMAP_IOC_PARAMETERS]);
        let request = match self.random.below(4) {
            0 => known ^ 1 << (16 + self.random.below(6)),
            1 => known ^ 1 << 30,
            2 => known & !0xff00 | u32::from(b'G') << 8,
            _ => self.random.pick(&[NVMAP_IOC_FROM_ID, NVMAP_IOC_GET_ID, NVMAP_IOC_PARAM, known & !0xff | 0xc8]),
        };
        let bytes = vec![0; (request >> 16 & 0x3fff) as usize];
        Ioctl { on, request, bytes, fds: vec![], pieces: vec![], makes: None }
    }

    /// Something with descriptors: a close, a duplicate, one more open node.
    fn file(&mut self) -> Step {
        match self.random.below(6) {
            0 if self.nodes.len() > 1 || self.random.one_in(8) => {
                let at = self.random.below(self.nodes.len() as u64) as usize;
                Step::Close(self.nodes.swap_remove(at))
            }
            1 | 2 if !self.dmabufs.is_empty() => {
                let at = self.random.below(self.dmabufs.len() as u64) as usize;
                Step::Close(self.dmabufs.swap_remove(at))
            }
            3 if !self.dmabufs.is_empty() => {
                self.asked = Asked::Dmabuf;
                Step::Dup(self.random.pick(&self.dmabufs))
            }
            4 => {
                self.asked = Asked::Node;
                Step::Dup(self.random.pick(&self.nodes))
            }
            _ => {
                self.asked = Asked::Node;
                Step::Open("nvmap".into())
            }
        }
    }

    fn call(&mut self) -> Step {
        let on = self.random.pick(&self.nodes);
        Step::Ioctl(match self.random.below(40) {
            0..=4 => self.create(on),
            5..=11 => self.alloc(on),
            12..=15 => {
                let id = u64::from(self.id());
                ioctl(on, NVMAP_IOC_FREE, &id, &[])
            }
            16..=19 => self.get_fd(on),
            20..=22 => self.from_fd(on),
            23..=25 => self.duplicate(on),
            26..=29 => self.parameters(on),
            30..=33 => self.copy(on),
            34 => self.maintain(on),
            35 => self.heaps(on),
            36 => self.label(on),
            37 => self.malformed(on),
            _ => return self.file(),
        })
    }

    fn learn(&mut self, answer: &Answer) {
        let asked = std::mem::replace(&mut self.asked, Asked::Nothing);
        if answer.result != 0 {
            return;
        }
        match asked {
            Asked::Id(at) => {
                self.ids
                    .extend(answer.bytes.get(at..at + 4).and_then(|id| Some(u32::from_le_bytes(id.try_into().ok()?))));
            }
            Asked::Dmabuf => self.dmabufs.push(self.steps - 1),
            Asked::Node => self.nodes.push(self.steps - 1),
            Asked::Nothing => {}
        }
    }
}

impl Author for Nvmap {
    fn next(&mut self, answers: &[Answer]) -> Option<Step> {
        if let Some(answer) = answers.last() {
            self.learn(answer);
        }
        let step = match self.left {
            0 => return None,
            _ if self.nodes.is_empty() => {
                self.asked = Asked::Node;
                Step::Open("nvmap".into())
            }
            _ => self.call(),
        };
        self.left -= 1;
        self.steps += 1;
        Some(step)
    }
}
