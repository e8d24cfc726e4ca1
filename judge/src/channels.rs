//! Programs for the families of channels and of channel groups: two views of the same objects, with other weights.

use crate::compare::Author;
use crate::program::{Answer, Failing, Ioctl, Piece, Step};
use crate::random::Random;
use crate::spaces::ioctl;
use std::mem::offset_of;
use tegrarm_abi::nvgpu::address_space::*;
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_abi::nvgpu::tsg::*;
use zerocopy::{FromZeros, IntoBytes};

/// The sizes of buffers for rings, USERD and notifiers.
const SIZES: [u32; 4] = [4096, 8192, 64 << 10, 1 << 20];

/// What a descriptor stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ctrl,
    Space,
    Channel,
    Group,
    Event,
    Buffer,
}

/// Which calls are frequent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    Channels,
    Groups,
    /// The work of channels fails.
    Failures,
}

/// Writes one program.
pub struct Channels {
    random: Random,
    view: View,
    left: u32,
    steps: usize,
    made: Vec<(Kind, usize)>,
    /// What the last step makes if it succeeds.
    asked: Option<Kind>,
    /// The steps that come first, so that most programs have a channel that works.
    opening: Vec<Opening>,
    /// Whether the channel that is opened has a watchdog.
    watched: bool,
}

#[derive(Clone, Copy, Debug)]
enum Opening {
    Open(&'static str, Kind),
    Buffer(u32),
    Space,
    BindSpace,
    BindGroup,
    Watchdog,
    Setup,
    Notifier,
}

impl Channels {
    pub fn new(seed: u64, view: View) -> Channels {
        let mut random = Random(seed ^ 0x5eed << 32);
        let left = 8 + random.below(40) as u32;
        let mut opening = vec![Opening::Open("ctrl", Kind::Ctrl)];
        opening.extend((0..2).map(|_| Opening::Buffer(random.pick(&SIZES))));
        opening.extend([Opening::Space, Opening::Open("channel", Kind::Channel), Opening::Open("tsg", Kind::Group)]);
        opening.extend([Opening::BindSpace, Opening::BindGroup]);
        if view == View::Failures {
            opening.extend([Opening::Watchdog, Opening::Setup, Opening::Notifier]);
            // A second channel of the group hears of the failure, too.
            if random.one_in(2) {
                opening.extend([Opening::Open("channel", Kind::Channel), Opening::BindSpace, Opening::BindGroup]);
                opening.extend([Opening::Watchdog, Opening::Setup, Opening::Notifier]);
            }
            opening.reverse();
            return Channels { random, view, left, steps: 0, made: vec![], asked: None, opening, watched: true };
        }
        // Some programs begin with less than a channel that can be set up.
        opening.truncate(8 - random.pick(&[0, 0, 0, 0, 1, 2, 3]));
        opening.reverse();
        Channels { random, view, left, steps: 0, made: vec![], asked: None, opening, watched: true }
    }

    /// The step of some descriptor of a kind. Sometimes it is one of another kind, or none.
    fn some(&mut self, kind: Kind) -> usize {
        if self.random.one_in(24) {
            return self.any();
        }
        let all: Vec<usize> = self.made.iter().filter(|(k, _)| *k == kind).map(|(_, step)| *step).collect();
        if all.is_empty() { self.any() } else { self.random.pick(&all) }
    }

    fn any(&mut self) -> usize {
        match self.random.below(4) {
            0 => usize::MAX,
            _ => self.random.pick(&self.made).1,
        }
    }

    /// The step of a descriptor on which a call is made. It is always one of the kind, or there is none.
    fn on(&mut self, kind: Kind) -> Option<usize> {
        let all: Vec<usize> = self.made.iter().filter(|(k, _)| *k == kind).map(|(_, step)| *step).collect();
        (!all.is_empty()).then(|| self.random.pick(&all))
    }

    fn word(&mut self, likely: &[u32]) -> u32 {
        match self.random.below(10) {
            0 => self.random.next() as u32,
            1 => self.random.pick(&[0, 1, 2, 3, 4, 7, 63, 64, 0x7fff_ffff, 0x8000_0000, u32::MAX]),
            _ => self.random.pick(likely),
        }
    }

    fn makes(&mut self, kind: Kind, at: usize, call: Ioctl) -> Ioctl {
        self.asked = Some(kind);
        Ioctl { makes: Some(at), ..call }
    }

    fn space(&mut self) -> Ioctl {
        let mut args = nvgpu_alloc_as_args::new_zeroed();
        (args.flags, args.va_range_start) = (NVGPU_GPU_IOCTL_ALLOC_AS_FLAGS_UNIFIED_VA, 2 << 20);
        args.va_range_end = self.random.pick(&[0xff_0000_0000, 0xff_ffe0_0000, 4 << 30]);
        self.makes(Kind::Space, offset_of!(nvgpu_alloc_as_args, as_fd), ioctl(0, NVGPU_GPU_IOCTL_ALLOC_AS, &args, &[]))
    }

    fn bind_space(&mut self) -> Option<Ioctl> {
        let (on, channel) = (self.on(Kind::Space)?, self.some(Kind::Channel));
        Some(ioctl(on, NVGPU_AS_IOCTL_BIND_CHANNEL, &nvgpu_as_bind_channel_args::new_zeroed(), &[(0, channel)]))
    }

    fn bind_group(&mut self) -> Option<Ioctl> {
        let (on, channel) = (self.on(Kind::Group)?, self.some(Kind::Channel));
        if self.random.one_in(3) {
            return Some(ioctl(on, NVGPU_TSG_IOCTL_BIND_CHANNEL, &0u32, &[(0, channel)]));
        }
        let mut args = nvgpu_tsg_bind_channel_ex_args::new_zeroed();
        args.subcontext_id = self.word(&[0, 0, 0, 1, 2]);
        Some(ioctl(on, NVGPU_TSG_IOCTL_BIND_CHANNEL_EX, &args, &[(0, channel)]))
    }

    fn setup(&mut self, on: usize) -> Ioctl {
        let mut args = nvgpu_channel_setup_bind_args::new_zeroed();
        args.num_gpfifo_entries = self.word(&[4, 512, 512, 1024, 2, 1, 3, 1 << 17, 1 << 28]);
        // Larger rings of the kernel's own would only show how much memory a machine has.
        args.num_inflight_jobs = self.random.pick(&[0, 0, 0, 1, 32]);
        args.flags = self.random.pick(&[0xa, 0xa, 0xa, 2, 8, 0, 0x1a, 0xb, 0xe, 0x20]);
        if args.flags & NVGPU_CHANNEL_SETUP_BIND_FLAGS_USERMODE_SUPPORT == 0 && args.num_gpfifo_entries > 1 << 17 {
            args.num_gpfifo_entries = self.random.pick(&[4, 64, 100]);
        }
        if self.random.one_in(12) {
            (args.userd_dmabuf_offset, args.gpfifo_dmabuf_offset) = self.random.pick(&[(4096, 0), (0, 4096)]);
        }
        let (userd, ring) = (self.some(Kind::Buffer), self.some(Kind::Buffer));
        let fds = [
            (offset_of!(nvgpu_channel_setup_bind_args, userd_dmabuf_fd), userd),
            (offset_of!(nvgpu_channel_setup_bind_args, gpfifo_dmabuf_fd), ring),
        ];
        let with = if self.random.one_in(16) { &fds[..1] } else { &fds[..] };
        ioctl(on, NVGPU_IOCTL_CHANNEL_SETUP_BIND, &args, with)
    }

    fn old_setup(&mut self, on: usize) -> Ioctl {
        let mut args = nvgpu_alloc_gpfifo_ex_args::new_zeroed();
        args.num_entries = self.random.pick(&[0, 1, 2, 3, 4, 64, 100, 512]);
        args.flags = self.random.pick(&[0, 0, 2, 4]);
        ioctl(on, NVGPU_IOCTL_CHANNEL_ALLOC_GPFIFO_EX, &args, &[])
    }

    fn watchdog(&mut self, on: usize) -> Ioctl {
        let mut args = nvgpu_channel_wdt_args::new_zeroed();
        args.wdt_status = self.word(&[1, 1, 2, 3, 0, 1 << 2, 1 | 4, 2 | 4, 2 | 8]);
        args.timeout_ms = self.word(&[0, 100, 5000]);
        ioctl(on, NVGPU_IOCTL_CHANNEL_WDT, &args, &[])
    }

    fn notifier(&mut self, on: usize) -> Ioctl {
        let mut args = nvgpu_set_error_notifier::new_zeroed();
        args.offset = self.random.pick(&[0, 0, 16, 4080, 4081, 4096, u64::MAX, u64::MAX - 15]);
        args.size = self.random.pick(&[16, 16, 0, 15, 4096]);
        let buffer = self.some(Kind::Buffer);
        let fds = [(offset_of!(nvgpu_set_error_notifier, mem), buffer)];
        let with = if self.random.one_in(12) { &fds[..0] } else { &fds[..] };
        ioctl(on, NVGPU_IOCTL_CHANNEL_SET_ERROR_NOTIFIER, &args, with)
    }

    /// A call on a channel.
    fn channel(&mut self) -> Option<Ioctl> {
        let on = self.on(Kind::Channel)?;
        let plain = |request| Ioctl { on, request, bytes: vec![], fds: vec![], pieces: vec![], makes: None };
        Some(match self.random.below(33) {
            0..=7 => self.setup(on),
            8 => self.old_setup(on),
            9..=13 => self.watchdog(on),
            14..=16 => {
                ioctl(on, NVGPU_IOCTL_CHANNEL_GET_USER_SYNCPOINT, &nvgpu_get_user_syncpoint_args::new_zeroed(), &[])
            }
            17..=18 => self.notifier(on),
            19 => ioctl(on, NVGPU_IOCTL_CHANNEL_GET_TIMEDOUT, &nvgpu_get_param_args::new_zeroed(), &[]),
            20 => ioctl(on, NVGPU_IOCTL_CHANNEL_SET_TIMEOUT, &self.word(&[0, 1000]), &[]),
            21 => ioctl(on, NVGPU_IOCTL_CHANNEL_SET_TIMEOUT_EX, &[self.word(&[0, 1000]), self.word(&[0, 1])], &[]),
            22 => plain(NVGPU_IOCTL_CHANNEL_ENABLE),
            23 => plain(NVGPU_IOCTL_CHANNEL_DISABLE),
            24 => plain(NVGPU_IOCTL_CHANNEL_PREEMPT),
            25 => ioctl(on, NVGPU_IOCTL_CHANNEL_SET_NVMAP_FD, &self.word(&[0]), &[]),
            26 => ioctl(on, NVGPU_IOCTL_CHANNEL_SET_BOOSTED_CTX, &[self.word(&[0, 1]), 0], &[]),
            27 => ioctl(on, NVGPU_IOCTL_CHANNEL_RESCHEDULE_RUNLIST, &self.word(&[0, 1]), &[]),
            28 => {
                let runlist = self.runlist();
                self.makes(Kind::Channel, 0, ioctl(on, NVGPU_IOCTL_CHANNEL_OPEN, &runlist, &[]))
            }
            29 => ioctl(on, NVGPU_IOCTL_CHANNEL_ZCULL_BIND, &[self.word64(), self.word64()], &[]),
            30 => {
                let args = [self.random.pick(&[0, 0xa1c0, 0x1234, u32::MAX]), self.word(&[0]), 0, 0];
                ioctl(on, NVGPU_IOCTL_CHANNEL_ALLOC_OBJ_CTX, &args, &[])
            }
            31 => {
                let args =
                    [self.word(&[0, 1]), 1, 0, self.random.pick(&[0, 16, 4080, 1 << 20, u32::MAX]), self.word(&[0]), 0];
                let buffer = self.some(Kind::Buffer);
                ioctl(on, NVGPU_IOCTL_CHANNEL_WAIT, &args, &[(8, buffer)])
            }
            _ => self.preemption(on),
        })
    }

    /// The work of a channel fails, or the program looks what became of it.
    fn failure(&mut self) -> Option<Step> {
        let on = self.on(Kind::Channel)?;
        Some(match self.random.below(16) {
            0..=3 => Step::Fail(on, self.failing()),
            4..=8 => Step::Read(self.on(Kind::Buffer)?, self.random.pick(&[0, 0, 0, 16, 4080]), 16),
            9..=10 => {
                Step::Ioctl(ioctl(on, NVGPU_IOCTL_CHANNEL_GET_TIMEDOUT, &nvgpu_get_param_args::new_zeroed(), &[]))
            }
            11..=13 => {
                let group = self.on(Kind::Group)?;
                Step::Ioctl(self.sm_record(group))
            }
            14 if self.random.one_in(3) => Step::Ioctl(ioctl(on, NVGPU_IOCTL_CHANNEL_FORCE_RESET, &[0u8; 0], &[])),
            14 => Step::Ioctl(self.notifier(on)),
            _ => Step::Ioctl(ioctl(on, NVGPU_IOCTL_CHANNEL_SET_TIMEOUT, &self.word(&[0, 100, 1000, 5000]), &[])),
        })
    }

    fn failing(&mut self) -> Failing {
        let r = &mut self.random;
        match r.below(6) {
            0 => {
                let va = r.next() & r.pick(&[0xff_ffff_f000, 0x1_ffff_ffff_f000, u64::MAX]);
                let (client, kind) = (r.below(6) as usize, r.pick(&[0, 2, 3, 6]));
                Failing::Mmu { client, kind, access: r.below(4) as u32, va }
            }
            1 => {
                let (sm, global_esr, pc) = (r.below(16) as u32, r.pick(&[0, 4, 0x10, 0x20]), r.next() >> 15);
                Failing::Sm { sm, global_esr, warp_esr: r.pick(&[0, 2, 9, 0xf, 0x10, 0x17, 0x20]), pc }
            }
            2 => {
                const EXCEPTION: u32 = 0x20_0000;
                let part = 1 << r.pick(&[0, 1, 2, 3, 4, 7, 8, 9]);
                let (interrupt, exception) = r.pick(&[
                    (EXCEPTION, part),
                    (EXCEPTION, part),
                    (0x10, 0),
                    (0x100, 0),
                    (0x8_0000, 0),
                    (0x10_0000, 0),
                ]);
                Failing::Graphics { interrupt, exception }
            }
            3 if r.one_in(3) => Failing::Pbdma { register: 1, bit: r.below(5) as u8 },
            3 => Failing::Pbdma { register: 0, bit: r.pick(&[14, 15, 16, 18, 19, 21, 23, 25, 26, 30]) },
            4 if r.one_in(4) => Failing::Preemption,
            4 => Failing::Switch { times: r.pick(&[1, 10, 29, 30, 31, 50, 51, 100]) },
            _ => Failing::Copy { report: r.below(13) as u32 },
        }
    }

    /// The channel that was made last.
    fn newest(&self) -> Option<usize> {
        self.made.iter().rev().find(|(kind, _)| *kind == Kind::Channel).map(|(_, step)| *step)
    }

    fn runlist(&mut self) -> i32 {
        self.random.pick(&[-1, -1, -1, 0, 1, 2, 31])
    }

    fn preemption(&mut self, on: usize) -> Ioctl {
        let args = [self.word(&[0, 1, 2]), self.word(&[0, 1, 2, 4])];
        ioctl(on, NVGPU_IOCTL_CHANNEL_SET_PREEMPTION_MODE, &args, &[])
    }

    /// A call on a group.
    fn group(&mut self) -> Option<Ioctl> {
        let on = self.on(Kind::Group)?;
        let plain = |request| Ioctl { on, request, bytes: vec![], fds: vec![], pieces: vec![], makes: None };
        let channel = self.some(Kind::Channel);
        Some(match self.random.below(25) {
            0..=5 => self.bind_group()?,
            6..=7 => ioctl(on, NVGPU_TSG_IOCTL_UNBIND_CHANNEL, &0u32, &[(0, channel)]),
            8..=11 => {
                let mut args = nvgpu_tsg_create_subcontext_args::new_zeroed();
                args.type_ = self.word(&[0, 0, 1, 1, 1, 2]);
                let space = self.some(Kind::Space);
                let at = offset_of!(nvgpu_tsg_create_subcontext_args, as_fd);
                ioctl(on, NVGPU_TSG_IOCTL_CREATE_SUBCONTEXT, &args, &[(at, space)])
            }
            12..=13 => ioctl(on, NVGPU_TSG_IOCTL_DELETE_SUBCONTEXT, &[self.word(&[0, 1, 2, 3]), 0], &[]),
            14..=15 => ioctl(
                on,
                NVGPU_IOCTL_TSG_SET_TIMESLICE,
                &[self.word(&[999, 1000, 1024, 2000, 50_000, 50_001, 0]), 0],
                &[],
            ),
            16 => ioctl(on, NVGPU_IOCTL_TSG_GET_TIMESLICE, &[0u32; 2], &[]),
            17 => ioctl(on, NVGPU_IOCTL_TSG_SET_RUNLIST_INTERLEAVE, &[self.word(&[0, 1, 2, 3]), 0], &[]),
            18 => plain(NVGPU_IOCTL_TSG_ENABLE),
            19 => plain(NVGPU_IOCTL_TSG_DISABLE),
            20 => plain(NVGPU_IOCTL_TSG_PREEMPT),
            21..=22 => {
                let args = [self.word(&[1, 1, 1, 0, 2]), self.word(&[0, 1, 2, 3, 4, 5, 6]), 0, 0];
                let at = offset_of!(nvgpu_event_id_ctrl_args, event_fd);
                self.makes(Kind::Event, at, ioctl(on, NVGPU_IOCTL_TSG_EVENT_ID_CTRL, &args, &[]))
            }
            23 => self.sm_record(on),
            _ => ioctl(on, NVGPU_TSG_IOCTL_GET_SHARE_TOKEN, &[self.word64(), self.word64(), 0], &[]),
        })
    }

    fn word64(&mut self) -> u64 {
        u64::from(self.word(&[0, 1, 2]))
    }

    fn sm_record(&mut self, on: usize) -> Ioctl {
        let mut args = nvgpu_tsg_read_single_sm_error_state_args::new_zeroed();
        args.sm_id = self.word(&[0, 1, 15, 16]);
        args.record_size = self.random.pick(&[0, 8, 24, 32]);
        let mut call = ioctl(on, NVGPU_TSG_IOCTL_READ_SINGLE_SM_ERROR_STATE, &args, &[]);
        if !self.random.one_in(6) {
            let at = offset_of!(nvgpu_tsg_read_single_sm_error_state_args, record_mem);
            call.pieces.push(Piece { at, bytes: vec![0xa5; 32], fds: vec![] });
        }
        call
    }

    /// A call that is none, on a channel or on a group.
    fn malformed(&mut self) -> Option<Ioctl> {
        let kind = self.random.pick(&[Kind::Channel, Kind::Group, Kind::Event]);
        let on = self.on(kind)?;
        let letter = self.random.pick(&[b'H', b'T', b'G', b'A']);
        let number = self.random.pick(&[0, 1, 5, 24, 100, 110, 127, 128, 129, 130, 200, 255]);
        let size = self.random.pick(&[0, 1, 3, 4, 7, 9, 31, 33, 104, 112, 113, 255]);
        let request = (self.random.below(4) as u32) << 30 | size << 16 | u32::from(letter) << 8 | number;
        let bytes = (0..size).map(|_| self.random.pick(&[0, 0, 1, 255])).collect();
        Some(Ioctl { on, request, bytes, fds: vec![], pieces: vec![], makes: None })
    }

    /// A descriptor is made, duplicated or closed.
    fn file(&mut self) -> Option<Step> {
        let at = self.random.below(self.made.len() as u64) as usize;
        let (kind, of) = self.made[at];
        Some(match self.random.below(10) {
            0..=3 if of != 0 => {
                self.made.swap_remove(at);
                Step::Close(of)
            }
            4 => {
                self.asked = Some(kind);
                Step::Dup(of)
            }
            5 => {
                self.asked = Some(Kind::Channel);
                Step::Open("channel".into())
            }
            6 => {
                self.asked = Some(Kind::Group);
                Step::Open("tsg".into())
            }
            7 => Step::Ioctl(self.space()),
            8 => {
                let args = self.runlist();
                Step::Ioctl(self.makes(Kind::Channel, 0, ioctl(0, NVGPU_GPU_IOCTL_OPEN_CHANNEL, &args, &[])))
            }
            _ => {
                let args = nvgpu_gpu_open_tsg_args::new_zeroed();
                Step::Ioctl(self.makes(Kind::Group, 0, ioctl(0, NVGPU_GPU_IOCTL_OPEN_TSG, &args, &[])))
            }
        })
    }

    /// A call on an address space, to see what the channels mapped.
    fn look(&mut self) -> Option<Ioctl> {
        let on = self.on(Kind::Space)?;
        if self.random.one_in(2) {
            let args = nvgpu_as_get_sync_ro_map_args::new_zeroed();
            return Some(ioctl(on, NVGPU_AS_IOCTL_GET_SYNC_RO_MAP, &args, &[]));
        }
        Some(ioctl(on, NVGPU_AS_IOCTL_GET_VA_REGIONS, &nvgpu_as_get_va_regions_args::new_zeroed(), &[]))
    }

    fn call(&mut self) -> Option<Step> {
        if self.view == View::Failures && !self.random.one_in(4) {
            return self.failure();
        }
        let (channels, groups) = if self.view == View::Groups { (6, 22) } else { (16, 22) };
        match self.random.below(32) {
            n if n < channels => self.channel().map(Step::Ioctl),
            n if n < groups => self.group().map(Step::Ioctl),
            22..=24 => self.bind_space().map(Step::Ioctl),
            25..=26 => self.look().map(Step::Ioctl),
            27 => self.malformed().map(Step::Ioctl),
            _ => self.file(),
        }
    }

    fn open(&mut self, opening: Opening) -> Option<Step> {
        Some(match opening {
            Opening::Open(node, kind) => {
                self.asked = Some(kind);
                Step::Open(node.into())
            }
            Opening::Buffer(size) => {
                self.asked = Some(Kind::Buffer);
                Step::Buffer(size)
            }
            Opening::Space => Step::Ioctl(self.space()),
            Opening::BindSpace if self.view == View::Failures => {
                let at = offset_of!(nvgpu_as_bind_channel_args, channel_fd);
                let args = nvgpu_as_bind_channel_args::new_zeroed();
                Step::Ioctl(ioctl(self.on(Kind::Space)?, NVGPU_AS_IOCTL_BIND_CHANNEL, &args, &[(at, self.newest()?)]))
            }
            Opening::BindGroup if self.view == View::Failures => {
                let args = nvgpu_tsg_bind_channel_ex_args::new_zeroed();
                let channel = [(offset_of!(nvgpu_tsg_bind_channel_ex_args, channel_fd), self.newest()?)];
                Step::Ioctl(ioctl(self.on(Kind::Group)?, NVGPU_TSG_IOCTL_BIND_CHANNEL_EX, &args, &channel))
            }
            Opening::BindSpace => Step::Ioctl(self.bind_space()?),
            Opening::BindGroup => Step::Ioctl(self.bind_group()?),
            Opening::Watchdog => {
                let mut args = nvgpu_channel_wdt_args::new_zeroed();
                self.watched = self.random.one_in(3);
                args.wdt_status = if self.watched { 2 } else { 1 };
                Step::Ioctl(ioctl(self.newest()?, NVGPU_IOCTL_CHANNEL_WDT, &args, &[]))
            }
            Opening::Setup => {
                let on = self.newest()?;
                let mut call = self.setup(on);
                let mut args = nvgpu_channel_setup_bind_args::new_zeroed();
                args.num_gpfifo_entries = 512;
                // In usermode a channel is deterministic, and that needs a channel without a watchdog.
                args.flags = if self.watched { 0 } else { 0xa };
                call.bytes = args.as_bytes().to_vec();
                Step::Ioctl(call)
            }
            Opening::Notifier => {
                let on = self.newest()?;
                let mut call = self.notifier(on);
                let mut args = nvgpu_set_error_notifier::new_zeroed();
                (args.offset, args.size) = (self.random.pick(&[0, 0, 16, 4080]), 16);
                call.bytes = args.as_bytes().to_vec();
                Step::Ioctl(call)
            }
        })
    }
}

impl Author for Channels {
    fn next(&mut self, answers: &[Answer]) -> Option<Step> {
        if let Some(kind) = self.asked.take()
            && answers.last().is_some_and(|answer| answer.result == 0)
        {
            self.made.push((kind, self.steps - 1));
        }
        // Here a board's kernel stops, so the program ends.
        if answers.last().is_some_and(|answer| answer.result == -libc::EFAULT) {
            return None;
        }
        let step = loop {
            if let Some(opening) = self.opening.pop() {
                if let Some(step) = self.open(opening) {
                    break step;
                }
                continue;
            }
            if self.left == 0 {
                return None;
            }
            self.left -= 1;
            if let Some(step) = self.call() {
                break step;
            }
            self.asked = None;
        };
        self.steps += 1;
        Some(step)
    }
}
