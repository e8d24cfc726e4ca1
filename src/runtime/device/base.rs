//! What the queues of a device share, and the commands that prepare a channel to be one of them.

use crate::runtime::channel::Channel;
use crate::runtime::channel::timeline::Host;
use crate::runtime::commands::Engine;
use crate::runtime::fault::diagnostics::Diagnostics;
use crate::runtime::launch::params::Windows;
use crate::runtime::launch::template::Context;
use crate::runtime::launch::{LaunchError, Limits};
use crate::runtime::library::{Installed, Sizes};
use crate::runtime::memory::doorbell::Doorbell;
use crate::runtime::memory::heap::Heap;
use crate::runtime::memory::session::Session;
use crate::runtime::memory::{Cache, Memory};
use once_cell::sync::OnceCell;
use std::sync::Arc;
use tegrarm_abi::rm::classes::{AMPERE_COMPUTE_B, AMPERE_DMA_COPY_B};
use tegrarm_abi::rm::status::*;
use tegrarm_images::cubin::{Cubin, Kernel};
use tegrarm_rm::rm::Rm;
use tegrarm_rm::rm::profile::Profile;
use tegrarm_rm::rm::syncpoints::SyncpointMap;
use tegrarm_rm::status::{During, RmError, RmResult};

const WARPS_PER_SM: u64 = 48;
const SMS_PER_TPC: u64 = 2;
const WARP: u64 = 32;

/// An RM client with an address space, the doorbell, and the properties of the GPU.
pub struct Base {
    doorbell: Arc<Doorbell>,
    code: Arc<Heap>,
    session: Arc<Session>,
    profile: Profile,
    context: Context,
    /// The addresses of all syncpoints. They are asked for at the first use.
    syncpoints: OnceCell<SyncpointMap>,
    diagnostics: Arc<Diagnostics>,
    /// What the processor was told and accesses, for a kernel that wants to know it.
    host: Arc<Host>,
}

impl Base {
    /// Prepares GPU `index` so that channels can be opened.
    ///
    /// # Errors
    /// An error that RM gives. Nothing is left of the attempt.
    pub fn open(rm: &Arc<Rm>, index: u32) -> RmResult<Base> {
        let sizes = Sizes::from_env()?;
        let profile = rm.device_profile(index)?;
        let session = Arc::new(Session::open(rm).during(|| format!("opening device {index}"))?);
        let doorbell = Arc::new(Doorbell::map(&session)?);
        let sass = profile.sm_version;
        let sm_count = profile.compute_units;
        let context = Context {
            limits: Limits { shared: profile.shared_mem_size + 1024, ..Limits::ORIN },
            windows: Windows { shared: profile.shared_window, local: profile.local_window, sm_count },
            sass_version: (sass >> 4 & 0xf0 | sass & 0xf) as u8,
        };
        let (syncpoints, diagnostics) = (OnceCell::new(), Diagnostics::new(sizes, rm.examines_code()));
        let host = Host::new(
            diagnostics.is_checked() && diagnostics.wanted(|| rm.wanted()).is_some_and(|wanted| wanted.accesses),
        );
        let code = Heap::new(&session);
        Ok(Base { doorbell, code, session, profile, context, syncpoints, diagnostics, host })
    }

    /// The properties of the GPU.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The values that all launches have in common.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The memory for machine code.
    #[inline]
    pub fn code(&self) -> &Arc<Heap> {
        &self.code
    }

    /// What the device knows that helps to explain a fault.
    #[inline]
    pub fn diagnostics(&self) -> &Arc<Diagnostics> {
        &self.diagnostics
    }

    /// What the processor was told and accesses.
    pub fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// The device library. The first module that needs it installs it, with the memory that the module's functions need.
    ///
    /// # Errors
    /// NO_MEMORY when there is not enough memory.
    pub fn library_for(&self, module: &Cubin) -> RmResult<&Arc<Installed>> {
        let sizes = self.diagnostics.sizes();
        let install = || Installed::new(&self.session, &self.code, sizes, module);
        let library = self.diagnostics.library_or(install)?;
        library.serve(module, sizes)?;
        Ok(library)
    }

    /// The doorbell of all channels.
    pub fn doorbell(&self) -> &Arc<Doorbell> {
        &self.doorbell
    }

    /// The addresses at which the GPU reads syncpoints. The kernel is asked for them once.
    ///
    /// # Errors
    /// An error that RM gives.
    pub fn syncpoints(&self) -> RmResult<&SyncpointMap> {
        self.syncpoints.get_or_try_init(|| self.session.syncpoints())
    }

    /// The RM objects that the device is made of.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Gives a channel its first commands: its engines, and the windows in which kernels find shared and local memory.
    ///
    /// # Errors
    /// The channel's fault.
    pub fn set_up(&self, channel: &mut Channel) -> RmResult<()> {
        let (windows, engine) = (&self.context.windows, channel.engine());
        channel.submit(engine, |commands| {
            if engine == Engine::Compute {
                commands.set_object(Engine::Compute, AMPERE_COMPUTE_B).windows(windows.shared, windows.local);
            }
            commands.set_object(Engine::Copy, AMPERE_DMA_COPY_B);
        })?;
        Ok(())
    }

    /// Tells the kernel how the channel of a queue is named, if it has a use for that.
    pub fn introduce(&self, channel: &mut Channel, number: u64) {
        let rm = self.session.rm();
        let Some(wanted) = self.diagnostics.wanted(|| rm.wanted()) else { return };
        let told = self.diagnostics.is_checked() && wanted.waits;
        if told || wanted.queues {
            let name = match (number, channel.engine()) {
                (0, _) => "the default queue".to_owned(),
                (_, Engine::Compute) => format!("queue {number}"),
                (_, Engine::Copy) => format!("copy queue {number}"),
            };
            channel.introduce(rm, &self.host, &name, told);
        }
    }

    /// Gives a channel memory for `local` bytes per thread. The GPU takes it in units: a warp has a multiple of 512
    /// bytes, and a TPC a multiple of 32 KiB.
    ///
    /// # Errors
    /// An error that RM gives if there is no memory, and the channel's fault.
    pub fn local_memory(&self, channel: &mut Channel, local: u32) -> RmResult<Memory> {
        let sms = self.profile.compute_units;
        let per_warp = (u64::from(local) * WARP).next_multiple_of(512);
        let per_tpc = (per_warp * WARPS_PER_SM * SMS_PER_TPC).next_multiple_of(32 << 10);
        let total = (per_tpc * u64::from(sms).div_ceil(SMS_PER_TPC)).next_multiple_of(128 << 10);
        let arena = Memory::new(&self.session, total, Cache::WriteCombined)
            .during(|| format!("local memory of {local} bytes for each thread"))?;
        channel.submit(Engine::Compute, |commands| {
            commands.local_memory(arena.va(), per_tpc);
        })?;
        Ok(arena)
    }
}

/// The error of a launch that the GPU cannot run.
#[cold]
pub fn refused(kernel: &Kernel, e: LaunchError) -> RmError {
    RmError::new(NV_ERR_INVALID_ARGUMENT, format!("launching '{}': {e}", kernel.name))
}
