//! Programs for the family of malformed calls: on every node, requests with a wrong size, direction, number or letter.

use crate::compare::Author;
use crate::program::{Answer, Ioctl, Step};
use crate::random::Random;
use crate::spaces::ioctl;
use tegrarm_abi::nvgpu::address_space::{ADDRESS_SPACE_IOCTLS, NVGPU_AS_IOCTL_BIND_CHANNEL};
use tegrarm_abi::nvgpu::channel::CHANNEL_IOCTLS;
use tegrarm_abi::nvgpu::ctrl::{CTRL_IOCTLS, NVGPU_GPU_IOCTL_ALLOC_AS, nvgpu_alloc_as_args};
use tegrarm_abi::nvgpu::r35::{CHANNEL_IOCTLS_R35, CTRL_IOCTLS_R35};
use tegrarm_abi::nvgpu::tsg::TSG_IOCTLS;
use zerocopy::FromZeros;

/// Writes one program.
pub struct Malformed {
    random: Random,
    left: u32,
    steps: usize,
}

impl Malformed {
    pub fn new(seed: u64) -> Malformed {
        let mut random = Random(seed ^ 0xbad << 40);
        Malformed { left: 4 + random.below(16) as u32, random, steps: 0 }
    }

    /// A request near one that exists, or any request. No release has it.
    fn request(&mut self) -> u32 {
        loop {
            let tables = [CTRL_IOCTLS, ADDRESS_SPACE_IOCTLS, CHANNEL_IOCTLS, TSG_IOCTLS];
            let older = [CTRL_IOCTLS_R35, CHANNEL_IOCTLS_R35];
            let table = tables[self.random.below(4) as usize];
            let known = table[self.random.below(table.len() as u64) as usize].number;
            let request = match self.random.below(8) {
                // The direction.
                0 => known ^ 1 << 30,
                1 => known ^ 1 << 31,
                // The size.
                2 => known ^ 1 << (16 + self.random.below(8)),
                3 => known & 0xc000_ffff | self.size() << 16,
                // The letter.
                4 => known & !0xff00 | (self.random.below(256) as u32) << 8,
                // The number.
                5..=6 => known & !0xff | self.random.below(256) as u32,
                _ => self.random.next() as u32 & 0xc000_ffff | self.size() << 16,
            };
            if !tables.iter().chain(&older).any(|table| table.iter().any(|row| row.number == request)) {
                return request;
            }
        }
    }

    /// A size that is mostly near the limits of the nodes, so that recorded programs stay small.
    fn size(&mut self) -> u32 {
        let end = if self.random.one_in(64) { 0x4000 } else { 0x100 };
        self.random.below(end) as u32
    }

    fn call(&mut self) -> Step {
        let on = self.random.below(4) as usize;
        let request = self.request();
        let size = request >> 16 & 0x3fff;
        let bytes = (0..size).map(|_| self.random.pick(&[0, 0, 0, 1, 255])).collect();
        Step::Ioctl(Ioctl { on, request, bytes, fds: vec![], pieces: vec![], makes: None })
    }
}

impl Author for Malformed {
    fn next(&mut self, _: &[Answer]) -> Option<Step> {
        let step = match self.steps {
            0 => Step::Open("ctrl".into()),
            1 => {
                let mut args = nvgpu_alloc_as_args::new_zeroed();
                (args.flags, args.va_range_start, args.va_range_end) = (2, 2 << 20, 0xff_0000_0000);
                Step::Ioctl(Ioctl { makes: Some(4), ..ioctl(0, NVGPU_GPU_IOCTL_ALLOC_AS, &args, &[]) })
            }
            2 => Step::Open("channel".into()),
            3 => Step::Open("tsg".into()),
            4 => Step::Ioctl(ioctl(1, NVGPU_AS_IOCTL_BIND_CHANNEL, &0u32, &[(0, 2)])),
            _ if self.left == 0 => return None,
            _ => {
                self.left -= 1;
                self.call()
            }
        };
        self.steps += 1;
        Some(step)
    }
}
