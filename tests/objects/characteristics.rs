//! The library recognises the description of a GPU that a known release gives, and refuses every other description.

use proptest::prelude::*;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use tegra_sim::{Chip, L4t, SimConfig, SimKmd};
use tegrarm::rm::Rm;
use tegrarm::tegra::{Backing, CacheMode, Ctrl, Nvmap, Release};
use tegrarm_abi::nvgpu::ctrl::NVGPU_GPU_IOCTL_GET_CHARACTERISTICS;
use tegrarm_abi::rm::status::NV_ERR_NOT_SUPPORTED;
use tegrarm_kmd::{Arg, CallKind, Errno, Faulty, Kmd, Node};

/// A board that describes its GPU with these bytes and this size.
struct Described {
    board: Arc<SimKmd>,
    bytes: Vec<u8>,
    size: u64,
}

impl Kmd for Described {
    tegrarm_kmd::forward!(board: name, open, mmap, own_view, close, read_text, write_text);

    fn is_simulated(&self) -> bool {
        true
    }

    #[allow(unsafe_code, reason = "a kernel writes where the caller says")]
    fn ioctl(&self, fd: BorrowedFd<'_>, node: Node, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        match arg {
            Arg::Bytes(args) if request == NVGPU_GPU_IOCTL_GET_CHARACTERISTICS => {
                let word = |at: usize| u64::from_le_bytes(args[at..at + 8].try_into().expect("eight bytes"));
                let room = (word(0) as usize).min(self.bytes.len());
                // SAFETY: the caller gave an address with enough room, as it would give one to a kernel.
                unsafe { std::ptr::copy_nonoverlapping(self.bytes.as_ptr(), word(8) as *mut u8, room) };
                args[..8].copy_from_slice(&self.size.to_le_bytes());
                Ok(0)
            }
            arg => self.board.ioctl(fd, node, request, arg),
        }
    }
}

fn simulated(chip: Chip, l4t: L4t) -> Arc<SimKmd> {
    Arc::new(SimKmd::new(SimConfig { mem_total: 64 << 20, ..SimConfig::new(chip).on(l4t) }))
}

/// The description of a module's GPU on a release.
fn said(chip: Chip, l4t: L4t) -> Vec<u8> {
    let kmd: Arc<dyn Kmd> = simulated(chip, l4t);
    let ctrl = tegrarm_kmd::File::open(&kmd, Node::Ctrl, "/dev/nvgpu/igpu0/ctrl").unwrap();
    let mut bytes = vec![0u8; 1024];
    let mut get = tegrarm_abi::nvgpu::ctrl::nvgpu_gpu_get_characteristics {
        gpu_characteristics_buf_size: bytes.len() as u64,
        gpu_characteristics_buf_addr: bytes.as_mut_ptr() as u64,
    };
    ctrl.ioctl(NVGPU_GPU_IOCTL_GET_CHARACTERISTICS, &mut get).unwrap();
    bytes.truncate(get.gpu_characteristics_buf_size as usize);
    bytes
}

/// The offsets of the chip's name, the six classes and the architecture on each release, as in the chapters of
/// docs/hardware.
const PLACES: [(usize, usize, usize, Release); 4] = [
    (312, 148, 64, Release::R35),
    (312, 152, 64, Release::R35),
    (328, 160, 72, Release::R36),
    (336, 168, 80, Release::R39),
];
const ORIN: (&[u8; 8], u32, [u32; 6]) = (b"ga10b\0\0\0", 0x170, [0x902d, 0xc797, 0xc7c0, 0xc76f, 0xa140, 0xc7b5]);
const XAVIER: (&[u8; 8], u32, [u32; 6]) = (b"gv11b\0\0\0", 0x150, [0x902d, 0xc397, 0xc3c0, 0xc36f, 0xa140, 0xc3b5]);

/// The release and the classes in bytes of exactly a release's size. It is `None` if the bytes do not describe a GPU.
fn truth(bytes: &[u8], size: u64) -> Option<(Release, [u32; 6])> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    PLACES.iter().filter(|(of, ..)| *of as u64 == size && bytes.len() >= *of).find_map(|(_, name, classes, release)| {
        [ORIN, XAVIER].into_iter().find_map(|(chip, arch, known)| {
            let found: [u32; 6] = std::array::from_fn(|n| word(classes + 4 * n));
            let fits = bytes[*name..name + 8] == chip[..] && word(0) == arch && found == known;
            fits.then_some((*release, found))
        })
    })
}

/// Checks the library's reading of a description: either a refusal that names the sizes, or exactly the values in the
/// bytes.
fn check(board: &Arc<SimKmd>, bytes: Vec<u8>, size: u64) -> Result<bool, TestCaseError> {
    let expected = truth(&bytes, size);
    let kmd: Arc<dyn Kmd> = Arc::new(Described { board: board.clone(), bytes, size });
    match Ctrl::open(&kmd) {
        Ok(ctrl) => {
            let c = ctrl.characteristics();
            let found = [
                c.twod_class,
                c.threed_class,
                c.compute_class,
                c.gpfifo_class,
                c.inline_to_memory_class,
                c.dma_copy_class,
            ];
            prop_assert_eq!(Some((ctrl.release(), found)), expected, "taken for what it is not");
            Ok(true)
        }
        Err(error) => {
            prop_assert_eq!(error.errno, Errno::ENOTSUP);
            let text = error.to_string();
            prop_assert!(text.contains(&format!("{size} bytes")) && text.contains("336 (r39)"), "{}", text);
            Ok(false)
        }
    }
}

#[test]
fn every_known_release_is_known() {
    let board = simulated(Chip::AgxOrin, L4t::R36);
    for chip in Chip::all() {
        for l4t in L4t::ALL {
            let bytes = said(chip, l4t);
            let size = bytes.len() as u64;
            assert!(check(&board, bytes, size).unwrap(), "{chip:?} {l4t:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn noise_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..1100), known in prop::option::of(0..4usize)) {
        thread_local!(static BOARD: Arc<SimKmd> = simulated(Chip::AgxOrin, L4t::R36));
        let size = known.map_or(bytes.len(), |n| PLACES[n].0) as u64;
        prop_assert!(!BOARD.with(|board| check(board, bytes, size))?);
    }

    /// The answer of a release, with bytes changed, inserted or removed, and with its own size or another one.
    #[test]
    fn a_changed_description_is_refused_or_says_the_same(
        l4t in prop::sample::select(L4t::ALL.to_vec()),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        shift in prop::option::of((any::<prop::sample::Index>(), prop::sample::select(vec![-8isize, -4, 4, 8]))),
        size in prop::option::of(prop_oneof![0..1200u64, prop::sample::select(vec![312u64, 328, 336, u64::MAX])]),
    ) {
        thread_local!(static BOARD: Arc<SimKmd> = simulated(Chip::AgxOrin, L4t::R36));
        let mut bytes = said_once(l4t);
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some((at, by)) = shift {
            let at = at.index(bytes.len() - 8);
            match by {
                1.. => drop(bytes.splice(at..at, std::iter::repeat_n(0, by as usize))),
                _ => drop(bytes.drain(at..at + by.unsigned_abs())),
            }
        }
        let size = size.unwrap_or(bytes.len() as u64);
        bytes.resize(1024, 0);
        BOARD.with(|board| check(board, bytes, size))?;
    }
}

fn said_once(l4t: L4t) -> Vec<u8> {
    static SAID: std::sync::OnceLock<Vec<(L4t, Vec<u8>)>> = std::sync::OnceLock::new();
    let all = SAID.get_or_init(|| L4t::ALL.map(|l4t| (l4t, said(Chip::AgxOrin, l4t))).to_vec());
    all.iter().find(|(of, _)| *of == l4t).expect("every release").1.clone()
}

#[test]
fn a_client_of_an_unknown_kernel_is_told_and_the_report_shows_its_bytes() {
    let mut bytes = said(Chip::AgxOrin, L4t::R39);
    bytes.extend([0xa5; 8]);
    let size = bytes.len() as u64;
    let kmd = Arc::new(Described { board: simulated(Chip::AgxOrin, L4t::R39), bytes, size });
    let error = Rm::new(kmd.clone(), CacheMode::WriteCombine).device_count().unwrap_err();
    assert_eq!(error.status, NV_ERR_NOT_SUPPORTED, "{error}");
    assert!(error.to_string().contains("344 bytes; known are 312 (r35.1 to r35.3)"), "{error}");
    let kmd: Arc<dyn Kmd> = kmd;
    let report = tegrarm::tegra::report(&kmd).unwrap();
    for part in ["GET_CHARACTERISTICS: 344 bytes", "00a5a5a5a5a5a5a5a5", "none of them"] {
        assert!(report.contains(part), "{part:?} is missing in\n{report}");
    }
    assert!(report.contains("NVMAP_IOC_ALLOC of R39 (0x40204e03) with handle 0: EINVAL, known"), "{report}");
    assert!(report.contains("NVMAP_IOC_ALLOC of R36 (0x40144e03) with handle 0: ENOTTY, not known"), "{report}");
}

/// nvmap is another module than nvgpu, and an older or newer nvmap works as well.
#[test]
fn nvmap_of_another_age_than_nvgpus_is_found_out() {
    for chip in L4t::ALL {
        for nvmap in L4t::ALL {
            let (bytes, board) = (said(Chip::AgxOrin, chip), simulated(Chip::AgxOrin, nvmap));
            let size = bytes.len() as u64;
            let kmd: Arc<dyn Kmd> = Arc::new(Described { board, bytes, size });
            let ctrl = Ctrl::open(&kmd).unwrap();
            let nvmap = Nvmap::open(&kmd, ctrl.release()).unwrap();
            let backing = Backing::new(&nvmap, 4096, CacheMode::InnerCacheable);
            assert!(backing.is_ok(), "{:?} {chip:?}", backing.err());
        }
    }
}

#[test]
fn nvmap_that_knows_no_alloc_is_refused_and_other_errors_are_passed_on() {
    let faulty = Arc::new(Faulty::new(simulated(Chip::AgxOrin, L4t::R36)));
    let kmd: Arc<dyn Kmd> = faulty.clone();
    faulty.arm(CallKind::Named("NVMAP_IOC_ALLOC"), 1, Errno::ENOTTY);
    let error = Nvmap::open(&kmd, Release::R36).err().unwrap();
    assert_eq!(error.errno, Errno::ENOTSUP);
    assert!(error.call.contains("knows none of the commands"), "{error}");
    faulty.arm(CallKind::Named("NVMAP_IOC_ALLOC"), 1, Errno::EIO);
    assert_eq!(Nvmap::open(&kmd, Release::R36).err().unwrap().errno, Errno::EIO);
}
