//! SUBMIT_GPFIFO on kernel-mode channels (docs/hardware/nvgpu-channel.md#submit-gpfifo).

use super::fence::Fences;
use super::state::{Channel, ChannelState, Setup};
use super::sync_file::SyncFile;
use crate::dispatch::{Call, Reply};
use crate::rule::Because;
use crate::space::AddressSpace;
use std::sync::Arc;
use tegra_hw::HwChannel;
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_kmd::Errno;

/// The offsets of the USERD words that the host and this kernel use (docs/hardware/nvgpu-channel.md#userd-and-ring).
const GP_GET: usize = 0x88;
const GP_PUT: usize = 0x8c;

pub(super) fn submit_gpfifo(call: &Call<'_>, channel: &Arc<Channel>, args: &mut nvgpu_submit_gpfifo_args) -> Reply {
    if channel.dead() {
        return Err(Errno::ETIMEDOUT.because("the channel is dead: an error stopped it").into());
    }
    let theirs = entries(call, channel, args);
    let mut state = channel.state.lock();
    let asked = Asked::of(args.flags);
    let ring = Ring::of(&checked_setup(&state, &asked)?.hw);
    ring.check_room(args.num_entries, asked.fences())?;
    let theirs = theirs?;
    if theirs.len() != args.num_entries as usize {
        return Err(Errno::EAGAIN.because("the channel got its ring only during the call").into());
    }
    let space = state.space.clone().ok_or(Errno::EINVAL)?;
    let fences = state.setup.as_mut().and_then(|setup| setup.fences.as_mut()).ok_or(Errno::ENOMEM)?;
    if asked.fences() > 0 && ring.waiting() + args.num_entries + asked.fences() > fences.slots() {
        return Err(Errno::EAGAIN.because("as many jobs as num_inflight_jobs are in flight").into());
    }
    let list = Submit { call, ring: &ring, asked, space: &space, fences }.list(args, theirs)?;
    ring.put(&list)?;
    call.board.gpu.ring(ring.hw.id);
    Ok(())
}

/// Reads the program's entries, as many as a ring can have. The channel is not locked meanwhile, because the memory may
/// be such that the program itself has to bring it, and whoever closes the channel would wait for it.
fn entries(call: &Call<'_>, channel: &Channel, args: &nvgpu_submit_gpfifo_args) -> Reply<Vec<u64>> {
    let room = channel.state.lock().setup.as_ref().map_or(0, |setup| setup.hw.entries);
    if args.num_entries < room { call.copy_in_array(args.gpfifo, args.num_entries as usize) } else { Ok(Vec::new()) }
}

/// What the flags of a submit ask for.
#[derive(Clone, Copy)]
struct Asked {
    /// The kernel keeps the buffers of the work until it has finished.
    tracked: bool,
    /// The work waits for a fence.
    before: bool,
    /// The program gets a fence for the end of the work.
    after: bool,
    /// Fences are sync files, and not syncpoints with values.
    as_files: bool,
}

impl Asked {
    fn of(flags: u32) -> Asked {
        let flag = |bit| flags & bit != 0;
        Asked {
            tracked: !flag(NVGPU_SUBMIT_GPFIFO_FLAGS_SKIP_BUFFER_REFCOUNTING),
            before: flag(NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_WAIT),
            after: flag(NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_GET),
            as_files: flag(NVGPU_SUBMIT_GPFIFO_FLAGS_SYNC_FENCE),
        }
    }

    /// The number of fences. Each of them takes an entry of the ring.
    fn fences(self) -> u32 {
        u32::from(self.before) + u32::from(self.after)
    }
}

/// The channel's setup, after the checks that it was set up for the kernel's submit and for what is asked.
fn checked_setup<'a>(state: &'a ChannelState, asked: &Asked) -> Reply<&'a Setup> {
    let setup = state.setup.as_ref();
    if setup.is_some_and(|setup| setup.usermode) {
        return Err(Errno::EINVAL.because("the channel was set up for usermode submit").into());
    }
    let setup = setup.ok_or_else(|| Errno::ENOMEM.because("the channel has no ring (SETUP_BIND)"))?;
    let file = asked.after && asked.as_files;
    if setup.deterministic && (asked.tracked || file || state.watchdog.enabled || setup.railgating_allowed) {
        let rule =
            "a deterministic channel's submit needs SKIP_BUFFER_REFCOUNTING, no sync_file, no watchdog, no railgating";
        return Err(Errno::EINVAL.because(rule).into());
    }
    Ok(setup)
}

/// The ring of a channel, and how far the host and this kernel are in it.
struct Ring {
    hw: Arc<HwChannel>,
    entries: u32,
    get: u32,
    put: u32,
}

impl Ring {
    fn of(hw: &Arc<HwChannel>) -> Ring {
        let (hw, entries) = (hw.clone(), hw.entries);
        let word = |at| hw.userd.backing.load_u32(hw.userd.offset + at).unwrap_or(0) % entries;
        let (get, put) = (word(GP_GET), word(GP_PUT));
        Ring { hw, entries, get, put }
    }

    /// The number of entries that the host has not fetched.
    fn waiting(&self) -> u32 {
        (self.put + self.entries - self.get) % self.entries
    }

    /// The number of entries that can be written now. One always stays free.
    fn free(&self) -> u32 {
        (self.get + self.entries - self.put - 1) % self.entries
    }

    /// Checks that the program's entries and the fences fit into the ring at all, and now.
    fn check_room(&self, theirs: u32, fences: u32) -> Result<(), Errno> {
        if theirs > self.entries - 1 - fences {
            return Err(Errno::ENOMEM.because("the ring does not have as many entries"));
        }
        if theirs + fences > self.free() {
            return Err(Errno::EAGAIN.because("the ring is full"));
        }
        Ok(())
    }

    /// The place of the entry that comes so many behind the present end.
    fn place(&self, behind: usize) -> u32 {
        (self.put + behind as u32) % self.entries
    }

    /// Writes entries behind the present end, and tells the host where the end is then.
    fn put(&self, list: &[u64]) -> Result<(), Errno> {
        let (ring, userd) = (&self.hw.ring, &self.hw.userd);
        for (i, entry) in list.iter().enumerate() {
            let at = ring.offset + self.place(i) as usize * size_of_val(entry);
            if !ring.backing.write(at, &entry.to_le_bytes()) {
                return Err(Errno::ENOMEM);
            }
        }
        let told = userd.backing.store_u32(userd.offset + GP_PUT, self.place(list.len()));
        if told { Ok(()) } else { Err(Errno::ENOMEM) }
    }
}

/// A submit that passed the checks.
struct Submit<'a> {
    call: &'a Call<'a>,
    ring: &'a Ring,
    asked: Asked,
    space: &'a AddressSpace,
    fences: &'a mut Fences,
}

impl Submit<'_> {
    /// Makes the entries of the submit: waits for fences, the program's own, and the fence for the end, which the arguments then
    /// return.
    fn list(mut self, args: &mut nvgpu_submit_gpfifo_args, theirs: Vec<u64>) -> Reply<Vec<u64>> {
        let awaited = self.awaited(args.fence)?;
        // A merged fence takes one entry for each of its points.
        if theirs.len() + awaited.len() + usize::from(self.asked.after) > self.ring.free() as usize {
            return Err(Errno::EAGAIN.into());
        }
        let mut list = Vec::new();
        for fence in awaited {
            list.push(self.fences.wait(self.call, self.space, self.ring.place(list.len()), fence)?);
        }
        list.extend(theirs);
        if self.asked.after {
            list.push(self.signal(list.len(), &mut args.fence)?);
        }
        Ok(list)
    }

    /// The syncpoints and values for which the work waits.
    fn awaited(&self, fence: nvgpu_fence) -> Result<Vec<nvgpu_fence>, Errno> {
        match self.asked {
            Asked { before: false, .. } => Ok(Vec::new()),
            Asked { as_files: false, .. } => Ok(vec![fence]),
            Asked { as_files: true, .. } => SyncFile::pending(self.call, fence.id.cast_signed()),
        }
    }

    /// Makes the entry that signals the end of the work, and the fence for it.
    fn signal(&mut self, behind: usize, fence: &mut nvgpu_fence) -> Reply<u64> {
        let (entry, point, value) = self.fences.signal(self.ring.place(behind))?;
        if self.asked.as_files {
            let fd = SyncFile::install(self.call, &point, value).inspect_err(|_| self.fences.retract())?;
            fence.id = fd.cast_unsigned();
        } else {
            *fence = nvgpu_fence { id: point.id, value };
        }
        Ok(entry)
    }
}
