//! Programs for the family of the ctrl node: queries, tables, clocks and registrations, with good and bad arguments.

use crate::compare::Author;
use crate::program::{Answer, Ioctl, Piece, Slot, Step};
use crate::random::Random;
use crate::spaces::ioctl;
use std::mem::offset_of;
use tegrarm_abi::nvgpu::address_space::NVGPU_AS_IOCTL_BIND_CHANNEL;
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_abi::nvgpu::tsg::{NVGPU_TSG_IOCTL_BIND_CHANNEL, NVGPU_TSG_IOCTL_GET_SHARE_TOKEN};
use zerocopy::{FromZeros, IntoBytes};

/// The steps of the opening, which every program has.
const CTRL: usize = 0;
const BUFFERS: [usize; 3] = [1, 2, 3];
const SPACE: usize = 4;
/// A channel that is deterministic, one in no group, and one that has only a group.
const CHANNELS: [usize; 3] = [5, 6, 7];
const GROUP: usize = 8;
const OPENING: usize = 14;

/// Writes one program.
pub struct Ctrl {
    random: Random,
    left: u32,
    steps: usize,
    /// The steps that opened ctrl nodes, and did not close them.
    open: Vec<usize>,
    /// The descriptors of clock requests.
    requests: Vec<usize>,
    asked: Asked,
}

/// What the last step makes if it succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Nothing,
    Node,
    Request,
}

fn plain(on: usize, request: u32, bytes: usize) -> Ioctl {
    Ioctl { on, request, bytes: vec![0; bytes], fds: vec![], pieces: vec![], makes: None }
}

impl Ctrl {
    pub fn new(seed: u64) -> Ctrl {
        let mut random = Random(seed ^ 0xc741 << 24);
        let left = 8 + random.below(40) as u32;
        Ctrl { random, left, steps: 0, open: vec![CTRL], requests: vec![], asked: Asked::Nothing }
    }

    fn opening(&self) -> Step {
        let channel_at = |fd| [(0, fd)];
        match self.steps {
            0 => Step::Open("ctrl".into()),
            1 => Step::Buffer(4096),
            2 => Step::Buffer(1 << 20),
            3 => Step::View(2),
            4 => {
                let mut args = nvgpu_alloc_as_args::new_zeroed();
                (args.flags, args.va_range_start, args.va_range_end) = (2, 2 << 20, 0xff_0000_0000);
                let makes = Some(offset_of!(nvgpu_alloc_as_args, as_fd));
                Step::Ioctl(Ioctl { makes, ..ioctl(CTRL, NVGPU_GPU_IOCTL_ALLOC_AS, &args, &[]) })
            }
            5..=7 => Step::Open("channel".into()),
            8 => Step::Open("tsg".into()),
            9 => Step::Ioctl(ioctl(SPACE, NVGPU_AS_IOCTL_BIND_CHANNEL, &0u32, &channel_at(CHANNELS[0]))),
            10 => Step::Ioctl(ioctl(GROUP, NVGPU_TSG_IOCTL_BIND_CHANNEL, &0u32, &channel_at(CHANNELS[0]))),
            11 => {
                let mut args = nvgpu_channel_wdt_args::new_zeroed();
                args.wdt_status = NVGPU_IOCTL_CHANNEL_DISABLE_WDT;
                Step::Ioctl(ioctl(CHANNELS[0], NVGPU_IOCTL_CHANNEL_WDT, &args, &[]))
            }
            12 => {
                let mut args = nvgpu_channel_setup_bind_args::new_zeroed();
                (args.num_gpfifo_entries, args.flags) = (512, 0xa);
                let fds = [
                    (offset_of!(nvgpu_channel_setup_bind_args, userd_dmabuf_fd), 1),
                    (offset_of!(nvgpu_channel_setup_bind_args, gpfifo_dmabuf_fd), 2),
                ];
                Step::Ioctl(ioctl(CHANNELS[0], NVGPU_IOCTL_CHANNEL_SETUP_BIND, &args, &fds))
            }
            _ => Step::Ioctl(ioctl(GROUP, NVGPU_TSG_IOCTL_BIND_CHANNEL, &0u32, &channel_at(CHANNELS[2]))),
        }
    }

    fn word(&mut self, likely: &[u32]) -> u32 {
        match self.random.below(12) {
            0 => self.random.next() as u32,
            1 => self.random.pick(&[0, 1, 2, 3, 0x7fff_ffff, 0x8000_0000, u32::MAX]),
            _ => self.random.pick(likely),
        }
    }

    fn short(&mut self, likely: &[u16]) -> u16 {
        if self.random.one_in(16) { self.random.next() as u16 } else { self.random.pick(likely) }
    }

    /// Gives the call memory behind a pointer, or a pointer to nothing.
    fn memory(&mut self, call: &mut Ioctl, at: usize, bytes: Vec<u8>) {
        if self.random.one_in(10) {
            let nothing: u64 = self.random.pick(&[0, 8, u64::MAX]);
            call.bytes[at..at + 8].copy_from_slice(&nothing.to_le_bytes());
            return;
        }
        call.pieces.push(Piece { at, bytes, fds: vec![] });
    }

    fn characteristics(&mut self, on: usize) -> Ioctl {
        let mut args = nvgpu_gpu_get_characteristics::new_zeroed();
        args.gpu_characteristics_buf_size = self.random.pick(&[328, 328, 0, 6, 312, 329, 4096, u64::MAX]);
        let mut call = ioctl(on, NVGPU_GPU_IOCTL_GET_CHARACTERISTICS, &args, &[]);
        let at = offset_of!(nvgpu_gpu_get_characteristics, gpu_characteristics_buf_addr);
        self.memory(&mut call, at, vec![0xa5; 336]);
        call
    }

    /// A query that writes to memory: a size, 4 bytes that nobody reads, and a pointer.
    fn sized(&mut self, on: usize, request: u32, sizes: &[u32], memory: usize) -> Ioctl {
        let mut call = ioctl(on, request, &[self.word(sizes), self.word(&[0, 7]), 0, 0], &[]);
        self.memory(&mut call, 8, vec![0xa5; memory]);
        call
    }

    fn layout(&mut self, on: usize) -> Ioctl {
        match self.random.below(12) {
            0 => plain(on, NVGPU_GPU_IOCTL_ZCULL_GET_CTX_SIZE, 4),
            1 => plain(on, NVGPU_GPU_IOCTL_ZCULL_GET_INFO, 40),
            2 => self.sized(on, NVGPU_GPU_IOCTL_GET_TPC_MASKS, &[8, 4, 0, 6, 9, 100], 16),
            3 => self.sized(on, NVGPU_GPU_IOCTL_GET_FBP_L2_MASKS, &[8, 4, 0, 6, 9, 100], 16),
            4 => self.sized(on, NVGPU_GPU_IOCTL_GET_GPC_LOCAL_TO_PHYSICAL_MAP, &[8, 8, 4, 0, 16], 16),
            5 => self.sized(on, NVGPU_GPU_IOCTL_GET_GPC_LOCAL_TO_LOGICAL_MAP, &[8, 8, 4, 0, 16], 16),
            6 => plain(on, NVGPU_GPU_IOCTL_NUM_VSMS, 8),
            7 => {
                let mut call = plain(on, NVGPU_GPU_IOCTL_VSMS_MAPPING, 8);
                self.memory(&mut call, 0, vec![0xa5; 104]);
                call
            }
            8 => plain(on, NVGPU_GPU_IOCTL_GET_TPC_EXCEPTION_EN_STATUS, 8),
            9 => self.sized(on, NVGPU_GPU_IOCTL_GET_ENGINE_INFO, &[48, 0, 15, 16, 31, 47, 64, 1000], 64),
            _ => self.characteristics(on),
        }
    }

    /// The tables of clears. Few values, so that entries repeat, and enough of them to fill the tables.
    fn clears(&mut self, on: usize) -> Ioctl {
        let kind = self.word(&[1, 2, 2, 3, 3]);
        if self.random.one_in(3) {
            let mut args = nvgpu_gpu_zbc_query_table_args::new_zeroed();
            args.type_ = if self.random.one_in(8) { 0 } else { kind };
            args.index_size = self.random.below(if kind == 1 { 34 } else { 18 }) as u32;
            (args.depth, args.color_ds[1], args.ref_cnt) = (5, 6, 7);
            return ioctl(on, NVGPU_GPU_IOCTL_ZBC_QUERY_TABLE, &args, &[]);
        }
        let mut args = nvgpu_gpu_zbc_set_table_args::new_zeroed();
        (args.type_, args.format) = (kind, self.random.pick(&[0, 1, 1, 2, 36]));
        let values = self.random.pick(&[2, 20]);
        args.depth = self.random.pick(&[0, 0x3f80_0000, self.random.0 as u32 % values]);
        args.stencil = self.random.pick(&[0, 1, 0xff, self.random.0 as u32 % values]);
        args.color_ds = [self.random.pick(&[0, 0x3f80_0000]); 4];
        args.color_l2 = [self.random.pick(&[0, 0xffff_ffff, self.random.0 as u32 % values]); 4];
        ioctl(on, NVGPU_GPU_IOCTL_ZBC_SET_TABLE, &args, &[])
    }

    fn clock_entries(&mut self) -> Vec<u8> {
        let entry = |r: &mut Random| nvgpu_gpu_clk_info {
            flags: r.pick(&[0, 1]),
            clk_type: r.pick(&[1, 1, 2, 2, 3, 3, 0, 4]),
            clk_domain: r.pick(&[1, 1, 1, 1, 1, 0, 2, 16, 17]),
            freq_hz: r.pick(&[
                0,
                1,
                305_999_999,
                306_000_000,
                408_000_001,
                409_000_000,
                612_999_999,
                918_000_000,
                1_300_000_000,
                1_999_999_999,
                4_294_967_296,
                65_535_999_999,
                70_000_000_000,
                u64::MAX,
            ]),
        };
        (0..4).flat_map(|_| entry(&mut self.random).as_bytes().to_vec()).collect()
    }

    fn clocks(&mut self, on: usize) -> Ioctl {
        let entries = self.clock_entries();
        let (mut call, at) = match self.random.below(8) {
            0 => {
                let mut args = nvgpu_gpu_clk_range_args::new_zeroed();
                (args.flags, args.num_entries) = (self.word(&[0, 1]), self.short(&[0, 1, 1, 2]));
                let at = offset_of!(nvgpu_gpu_clk_range_args, clk_range_entries);
                (ioctl(on, NVGPU_GPU_IOCTL_CLK_GET_RANGE, &args, &[]), at)
            }
            1 => {
                let mut args = nvgpu_gpu_clk_vf_points_args::new_zeroed();
                (args.flags, args.clk_domain) = (self.random.pick(&[0, 0, 0, 1]), self.word(&[1, 1, 1, 0]));
                (args.max_entries, args.num_entries) = (self.short(&[0, 10, 11, 12, 64]), 3);
                let at = offset_of!(nvgpu_gpu_clk_vf_points_args, clk_vf_point_entries);
                let mut call = ioctl(on, NVGPU_GPU_IOCTL_CLK_GET_VF_POINTS, &args, &[]);
                self.memory(&mut call, at, vec![0xa5; 96]);
                return call;
            }
            2..=4 => {
                let mut args = nvgpu_gpu_clk_get_info_args::new_zeroed();
                args.flags = self.word(&[0, 1, 1]);
                (args.clk_type, args.num_entries) = (self.short(&[0, 1, 2, 3]), self.short(&[1, 1, 2, 3, 4, 0]));
                let at = offset_of!(nvgpu_gpu_clk_get_info_args, clk_info_entries);
                (ioctl(on, NVGPU_GPU_IOCTL_CLK_GET_INFO, &args, &[]), at)
            }
            _ => {
                let mut args = nvgpu_gpu_clk_set_info_args::new_zeroed();
                args.flags = self.random.pick(&[0, 0, 0, 0, 0, 1]);
                (args.num_entries, args.pad0) = (self.short(&[1, 1, 1, 1, 0, 2]), 9);
                let at = offset_of!(nvgpu_gpu_clk_set_info_args, clk_info_entries);
                self.asked = Asked::Request;
                let makes = Some(offset_of!(nvgpu_gpu_clk_set_info_args, completion_fd));
                (Ioctl { makes, ..ioctl(on, NVGPU_GPU_IOCTL_CLK_SET_INFO, &args, &[]) }, at)
            }
        };
        self.memory(&mut call, at, entries);
        call
    }

    fn controls(&mut self, on: usize) -> Ioctl {
        match self.random.below(12) {
            0 => {
                let flags = self.random.next() as u8;
                ioctl(on, NVGPU_GPU_IOCTL_FLUSH_L2, &[flags, 1, 2, 3, 4], &[])
            }
            // The model refuses state 1.
            1 => ioctl(on, NVGPU_GPU_IOCTL_SET_MMUDEBUG_MODE, &[self.random.pick(&[0, 2, 3, u32::MAX]), 5], &[]),
            2 | 3 => {
                let mut args = nvgpu_gpu_sm_debug_mode_args::new_zeroed();
                args.enable = self.word(&[0, 1]);
                args.sms = self.random.pick(&[0, 1, 0xffff, 0x10000, u64::MAX]);
                let channel = self.random.pick(&[5, 6, 7, CTRL, GROUP, usize::MAX]);
                ioctl(on, NVGPU_GPU_IOCTL_SET_SM_DEBUG_MODE, &args, &[(0, channel)])
            }
            4 => plain(on, NVGPU_GPU_IOCTL_CLEAR_SM_ERRORS, 0),
            5 => plain(on, NVGPU_GPU_IOCTL_TRIGGER_SUSPEND, 0),
            6 => plain(on, NVGPU_GPU_IOCTL_RESUME_FROM_PAUSE, 0),
            7 => {
                let mut args = nvgpu_gpu_get_gpu_time_args::new_zeroed();
                (args.gpu_timestamp, args.reserved) = (3, 4);
                ioctl(on, NVGPU_GPU_IOCTL_GET_GPU_TIME, &args, &[])
            }
            8 => {
                let mut args = nvgpu_gpu_get_cpu_time_correlation_info_args::new_zeroed();
                (args.count, args.source_id) = (self.word(&[0, 1, 16, 17]), self.word(&[1, 2, 0, 3]));
                args.samples[15].cpu_timestamp = 1;
                ioctl(on, NVGPU_GPU_IOCTL_GET_CPU_TIME_CORRELATION_INFO, &args, &[])
            }
            9 => self.sensor(on),
            _ => self.deterministic(on),
        }
    }

    fn sensor(&mut self, on: usize) -> Ioctl {
        let request = self.random.pick(&[
            NVGPU_GPU_IOCTL_GET_VOLTAGE,
            NVGPU_GPU_IOCTL_GET_CURRENT,
            NVGPU_GPU_IOCTL_GET_POWER,
            NVGPU_GPU_IOCTL_GET_TEMPERATURE,
            NVGPU_GPU_IOCTL_SET_THERM_ALERT_LIMIT,
        ]);
        if self.random.one_in(6) {
            return ioctl(on, NVGPU_GPU_IOCTL_GET_EVENT_FD, &[0u32; 2], &[]);
        }
        ioctl(on, request, &[self.random.pick(&[0, 1]), 0, 0, 9u32], &[])
    }

    fn deterministic(&mut self, on: usize) -> Ioctl {
        let mut args = nvgpu_gpu_set_deterministic_opts_args::new_zeroed();
        (args.num_channels, args.flags) = (self.random.pick(&[1, 1, 2, 3, 0, 512, 513]), self.random.below(5) as u32);
        let mut call = ioctl(on, NVGPU_GPU_IOCTL_SET_DETERMINISTIC_OPTS, &args, &[]);
        let at = offset_of!(nvgpu_gpu_set_deterministic_opts_args, channels);
        // There are never more descriptors that are looked at than the first one that is none.
        self.memory(&mut call, at, vec![0xff; 16]);
        for piece in &mut call.pieces {
            let slots = (0..3).map(|i| (4 * i, self.random.pick(&[5, 5, 5, 6, CTRL, usize::MAX])));
            piece.fds = slots.map(|(at, step)| Slot { at, step }).collect();
        }
        call
    }

    fn registration(&mut self, on: usize) -> Ioctl {
        let buffer = self.random.pick(&[BUFFERS[0], BUFFERS[1], BUFFERS[2], BUFFERS[1], CTRL, usize::MAX]);
        if self.random.one_in(2) {
            // On entry the structure has a descriptor, a size and a pointer.
            let size = self.word(&[0, 0, 16, 64, 256, 257]).min(1024);
            let mut call = ioctl(on, NVGPU_GPU_IOCTL_GET_BUFFER_INFO, &[0, size, 0, 0, 1, 2], &[(0, buffer)]);
            if size > 0 {
                self.memory(&mut call, 8, vec![0xa5; 260]);
            }
            return call;
        }
        let mut args = nvgpu_gpu_register_buffer_args::new_zeroed();
        args.comptags_alloc_control = self.random.pick(&[0, 0, 1, 2, 3]);
        (args.metadata_size, args.flags) = (self.word(&[0, 1, 16, 256, 257]), self.word(&[0, 2, 4, 6]));
        let fds = [(offset_of!(nvgpu_gpu_register_buffer_args, dmabuf_fd), buffer)];
        let mut call = ioctl(on, NVGPU_GPU_IOCTL_REGISTER_BUFFER, &args, &fds);
        let at = offset_of!(nvgpu_gpu_register_buffer_args, metadata_addr);
        let fill = self.random.next() as u8;
        self.memory(&mut call, at, vec![fill; 256]);
        call
    }

    fn share(&mut self, on: usize) -> Ioctl {
        if self.random.one_in(3) {
            let ids = [self.random.pick(&[1, 2, 0]), self.random.pick(&[1, 2, 3]), 0u64];
            return ioctl(GROUP, NVGPU_TSG_IOCTL_GET_SHARE_TOKEN, &ids, &[]);
        }
        let mut args = nvgpu_gpu_open_tsg_args::new_zeroed();
        args.flags = self.random.pick(&[0, 1, 1, 3]);
        if args.flags & 1 != 0 || self.random.one_in(4) {
            (args.source_device_instance_id, args.share_token) = (self.random.below(4), self.random.below(4));
        }
        Ioctl { makes: Some(0), ..ioctl(on, NVGPU_GPU_IOCTL_OPEN_TSG, &args, &[]) }
    }

    fn file(&mut self) -> Step {
        match self.random.below(6) {
            0 if self.open.len() > 1 => {
                let at = 1 + self.random.below(self.open.len() as u64 - 1) as usize;
                Step::Close(self.open.swap_remove(at))
            }
            1 if !self.requests.is_empty() => {
                let at = self.random.below(self.requests.len() as u64) as usize;
                Step::Close(self.requests.swap_remove(at))
            }
            2 => {
                self.asked = Asked::Node;
                Step::Dup(self.random.pick(&self.open))
            }
            3 => Step::Close(self.random.pick(&BUFFERS)),
            _ => {
                self.asked = Asked::Node;
                Step::Open("ctrl".into())
            }
        }
    }

    fn call(&mut self) -> Step {
        let on = self.random.pick(&self.open);
        Step::Ioctl(match self.random.below(20) {
            0..=4 => self.layout(on),
            5..=7 => self.clears(on),
            8..=11 => self.clocks(on),
            12..=14 => self.controls(on),
            15..=16 => self.registration(on),
            17 => self.share(on),
            _ => return self.file(),
        })
    }
}

impl Author for Ctrl {
    fn next(&mut self, answers: &[Answer]) -> Option<Step> {
        let asked = std::mem::replace(&mut self.asked, Asked::Nothing);
        if answers.last().is_some_and(|answer| answer.result == 0) {
            match asked {
                Asked::Node => self.open.push(self.steps - 1),
                Asked::Request => self.requests.push(self.steps - 1),
                Asked::Nothing => {}
            }
        }
        let step = if self.steps < OPENING {
            self.opening()
        } else if self.left == 0 {
            return None;
        } else {
            self.left -= 1;
            self.call()
        };
        self.steps += 1;
        Some(step)
    }
}
