//! NVIDIA's driver, from the shared library that `judge/nvgpu` builds, as a player of programs.

use crate::model::{play, value_of, without_time};
use crate::program::{Answer, Behind, Failing, Ioctl, Run, Step, said};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Mutex;

/// The page tables' entry: the valid bit, the volatile bit, which alone means sparse, and where the address lies.
const VALID: u64 = 1;
const VOLATILE: u64 = 8;
const ADDRESS: u64 = 0x3fff_ffff_ffff << 8;
/// The bit of an entry's address that asks for the L3 cache. On gv11b it is the one below.
const L3: u64 = 1 << 33;
/// Where the glue lays the syncpoints (host1x.c).
const APERTURE: std::ops::Range<u64> = 0x6000_0000..0x6400_0000;

#[repr(C)]
struct Chip {
    boot_0: u32,
    big_pages: bool,
}

/// A failure, as judge.h has it.
#[repr(C)]
struct Failed {
    unit: u32,
    words: [u32; 4],
    address: u64,
}

impl Failed {
    /// The graphics engine's number for faults, and the clients: engine and client, the type of the client in bit 7
    /// (docs/hardware/gpu-faults.md#fault-types).
    const GRAPHICS: u32 = 64;
    const CLIENTS: [(u32, u32); 6] = [
        (32, 0x80 | 6),
        (15, 0x80 | 0x18),
        (Failed::GRAPHICS, 0x80 | 4),
        (Failed::GRAPHICS, 0x80 | 0x1d),
        (Failed::GRAPHICS, 0),
        (Failed::GRAPHICS, 0x11),
    ];

    fn of(what: Failing) -> Failed {
        let (unit, words, address) = match what {
            Failing::Mmu { client, kind, access, va } => {
                let (engine, id) = Failed::CLIENTS[client];
                (0, [engine, id, kind, access], va)
            }
            Failing::Sm { sm, global_esr, warp_esr, pc } => (1, [sm, global_esr, warp_esr, 0], pc),
            Failing::Graphics { interrupt, exception } => (2, [interrupt, exception, 0, 0], 0),
            Failing::Pbdma { register, bit } => {
                let mut words = [0; 4];
                words[usize::from(register)] = 1 << bit;
                (3, words, 0)
            }
            Failing::Switch { times } => (4, [times, 0, 0, 0], 0),
            Failing::Copy { report } => (5, [report, 0, 0, 0], 0),
            Failing::Preemption => (6, [0; 4], 0),
        };
        Failed { unit, words, address }
    }
}

/// A chip that the driver can be booted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Board {
    Orin,
    Xavier,
}

type Entry = unsafe extern "C" fn(*mut c_void, u64, u64, u64);

/// The functions of the shared library (judge.h).
struct Library {
    open: unsafe extern "C" fn(*const c_char) -> c_int,
    file: unsafe extern "C" fn(c_int) -> *mut c_void,
    ioctl: unsafe extern "C" fn(c_int, c_uint, *mut c_void) -> c_long,
    buffer: unsafe extern "C" fn(c_int, u64) -> c_int,
    dup: unsafe extern "C" fn(c_int) -> c_int,
    close: unsafe extern "C" fn(c_int) -> c_int,
    tables: unsafe extern "C" fn(c_int, Entry, *mut c_void) -> c_int,
    buffer_at: unsafe extern "C" fn(u64, *mut u64, *mut c_ulong) -> u64,
    held: unsafe extern "C" fn() -> c_uint,
    rewind: unsafe extern "C" fn(),
    parallel: unsafe extern "C" fn(bool),
    fail: unsafe extern "C" fn(c_int, *const Failed) -> c_int,
    said: unsafe extern "C" fn() -> *const c_char,
    make: unsafe extern "C" fn(u64, u64, bool) -> *mut c_void,
    take: unsafe extern "C" fn(*mut c_void, u64, u32) -> u64,
    take_fixed: unsafe extern "C" fn(*mut c_void, u64, u64, u32) -> u64,
    give: unsafe extern "C" fn(*mut c_void, u64),
    end: unsafe extern "C" fn(*mut c_void),
}

/// The booted driver. There is one in a process.
pub struct Driver {
    library: Library,
    r35: bool,
    /// Whether it has address spaces. nvmap has none.
    has_tables: bool,
}

/// Stands for an entry that nvmap's library does not have.
extern "C" fn missing() -> ! {
    eprintln!("nvmap's library has no such entry");
    std::process::abort()
}

fn inode(fd: RawFd) -> Option<u64> {
    // SAFETY: all bytes of a `stat` may be zero, and fstat fills it.
    let (result, stat) = unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        (libc::fstat(fd, &mut stat), stat)
    };
    (result == 0).then_some(stat.st_ino)
}

impl Driver {
    /// Loads the library and boots the driver as the chip of a board. The library is that of r35 or that of r36.
    pub fn boot(path: &str, board: Board, r35: bool) -> Result<Driver, String> {
        let (driver, handle) = Driver::load(path, r35, true)?;
        let chip = match board {
            Board::Orin => Chip { boot_0: 0x17b0_00a1, big_pages: false },
            Board::Xavier => Chip { boot_0: 0x15b0_00a1, big_pages: true },
        };
        // SAFETY: the type is that of judge.h, and the driver is not booted yet.
        let result = unsafe {
            let boot: unsafe extern "C" fn(*const Chip) -> c_int =
                std::mem::transmute(libc::dlsym(handle, c"judge_boot".as_ptr()));
            boot(&chip)
        };
        if result == 0 { Ok(driver) } else { Err(format!("the driver does not boot: {result}")) }
    }

    /// Loads the library of nvmap, and probes its device on a board with so many bytes of memory.
    pub fn boot_nvmap(path: &str, memory: u64) -> Result<Driver, String> {
        let (driver, handle) = Driver::load(path, false, false)?;
        // SAFETY: the type is that of judge.h, and the driver is not booted yet.
        let result = unsafe {
            let boot: unsafe extern "C" fn(u64) -> c_int =
                std::mem::transmute(libc::dlsym(handle, c"judge_nvmap_boot".as_ptr()));
            boot(memory)
        };
        if result == 0 { Ok(driver) } else { Err(format!("nvmap does not boot: {result}")) }
    }

    fn load(path: &str, r35: bool, has_tables: bool) -> Result<(Driver, *mut c_void), String> {
        let name = CString::new(path).map_err(|_| "a path without zeros")?;
        // SAFETY: the library's constructors do nothing.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY) };
        if handle.is_null() {
            // SAFETY: after a failed dlopen, dlerror gives a text.
            return Err(unsafe { CStr::from_ptr(libc::dlerror()) }.to_string_lossy().into_owned());
        }
        let symbol = |name: &CStr| {
            // SAFETY: the handle is that of the library.
            let at = unsafe { libc::dlsym(handle, name.as_ptr()) };
            match at.is_null() {
                true if !has_tables => Ok(missing as *mut c_void),
                true => Err(format!("{path} has no {name:?}")),
                false => Ok(at),
            }
        };
        macro_rules! function {
            // SAFETY: the types are those of judge.h.
            ($name:expr) => {
                unsafe { std::mem::transmute(symbol($name)?) }
            };
        }
        let library = Library {
            open: function!(c"judge_open"),
            file: function!(c"judge_file"),
            ioctl: function!(c"judge_ioctl"),
            buffer: function!(c"judge_buffer"),
            dup: function!(c"judge_dup"),
            close: function!(c"judge_close"),
            tables: function!(c"judge_tables"),
            buffer_at: function!(c"judge_buffer_at"),
            held: function!(c"judge_held"),
            rewind: function!(c"judge_rewind"),
            parallel: function!(c"judge_parallel"),
            fail: function!(c"judge_fail"),
            said: function!(c"judge_said"),
            make: function!(c"judge_allocator_make"),
            take: function!(c"judge_allocator_take"),
            take_fixed: function!(c"judge_allocator_take_fixed"),
            give: function!(c"judge_allocator_give"),
            end: function!(c"judge_allocator_end"),
        };
        Ok((Driver { library, r35, has_tables }, handle))
    }

    /// How many buffers the driver holds.
    pub fn held(&self) -> u32 {
        // SAFETY: the driver is booted.
        unsafe { (self.library.held)() }
    }

    /// Makes the driver like a booted one, after a program closed everything.
    pub fn rewind(&self) {
        // SAFETY: the driver is booted, and nothing that it has open refers to a buffer.
        unsafe { (self.library.rewind)() }
    }

    /// Tells the driver whether several threads may make calls at once.
    pub fn in_parallel(&self, parallel: bool) {
        // SAFETY: the driver is booted, and no thread is in a call.
        unsafe { (self.library.parallel)(parallel) }
    }

    /// A new run of a program.
    pub fn run(&self) -> Running<'_> {
        Running {
            library: &self.library,
            driver: self,
            made: Mutex::default(),
            memory: Vec::new(),
            buffers: BTreeMap::new(),
        }
    }
}

impl Driver {
    /// The driver's allocator of addresses for a range, with or without big pages.
    pub fn allocator(&self, base: u64, size: u64, big_pages: bool) -> Option<Allocator<'_>> {
        // SAFETY: the driver is booted.
        let made = unsafe { (self.library.make)(base, size, big_pages) };
        (!made.is_null()).then_some(Allocator { library: &self.library, made })
    }
}

/// The driver's descriptors, for who keeps them itself.
pub struct Descriptors(Driver);

impl Driver {
    pub fn descriptors(self) -> Descriptors {
        Descriptors(self)
    }
}

impl Descriptors {
    /// Whether a descriptor is a file of the driver.
    pub fn knows(&self, fd: RawFd) -> bool {
        // SAFETY: the driver is booted, and only looks.
        !unsafe { (self.0.library.file)(fd) }.is_null()
    }

    /// Opens a node by its short name. The error is an errno.
    pub fn open(&self, node: &str) -> Result<OwnedFd, i32> {
        let name = CString::new(node).expect("a name without zeros");
        // SAFETY: the driver is booted, and the name ends with a zero. A descriptor that it gives is new.
        let fd = unsafe { (self.0.library.open)(name.as_ptr()) };
        // SAFETY: nobody else knows the descriptor.
        if fd < 0 { Err(-fd) } else { Ok(unsafe { OwnedFd::from_raw_fd(fd) }) }
    }

    /// Tells the driver that a descriptor is a dma-buf.
    pub fn tell(&self, fd: RawFd, size: u64) {
        // SAFETY: the driver is booted, and makes an object for the descriptor.
        unsafe { (self.0.library.buffer)(fd, size) };
    }

    /// Makes a call. The result is a negative errno if it fails.
    pub fn ioctl(&self, fd: RawFd, request: u32, argument: *mut u8) -> i32 {
        // SAFETY: the driver copies from and to the argument as a kernel does: what is not mapped gives EFAULT.
        unsafe { (self.0.library.ioctl)(fd, request, argument.cast()) as i32 }
    }

    /// Closes a descriptor of a file of the driver, or of a dma-buf.
    pub fn close(&self, fd: OwnedFd) {
        // SAFETY: the descriptor was owned, so nobody else closes it.
        unsafe { (self.0.library.close)(fd.into_raw_fd()) };
    }
}

/// An allocator of addresses of the driver.
pub struct Allocator<'a> {
    library: &'a Library,
    made: *mut c_void,
}

impl Allocator<'_> {
    /// The address, or 0 if there is no room.
    pub fn take(&mut self, size: u64, page_size: u32) -> u64 {
        // SAFETY: the allocator is there until it is dropped.
        unsafe { (self.library.take)(self.made, size, page_size) }
    }

    /// The address, or 0 if it is not free.
    pub fn take_fixed(&mut self, base: u64, size: u64, page_size: u32) -> u64 {
        // SAFETY: the allocator is there until it is dropped.
        unsafe { (self.library.take_fixed)(self.made, base, size, page_size) }
    }

    pub fn give(&mut self, address: u64) {
        // SAFETY: the allocator is there until it is dropped, and it looks for the address.
        unsafe { (self.library.give)(self.made, address) }
    }
}

impl Drop for Allocator<'_> {
    fn drop(&mut self) {
        // SAFETY: nobody uses it after this.
        unsafe { (self.library.end)(self.made) }
    }
}

/// A program that runs on the driver.
pub struct Running<'a> {
    driver: &'a Driver,
    library: &'a Library,
    made: Mutex<BTreeMap<usize, RawFd>>,
    /// A descriptor of each buffer, so that its memory stays until the program ends.
    memory: Vec<(usize, RawFd)>,
    /// The buffers by inode: the step that made each, and its size.
    buffers: BTreeMap<u64, (usize, u64)>,
}

impl Running<'_> {
    /// Makes the step of a number, and looks at the page table afterwards.
    pub fn step(&mut self, number: usize, step: &Step) -> Answer {
        if let Step::Buffer(size) = step {
            let made = self.buffer(number, *size);
            self.note(number, made);
            return Answer::default();
        }
        let mut answer = self.beside_others(number, step);
        if let Step::Ioctl(call) = step
            && self.driver.has_tables
        {
            answer.runs = self.runs(self.raw(call.on));
        }
        answer
    }

    /// The same while other threads make steps. It makes no buffer, and the page table is not looked at.
    pub fn beside_others(&self, number: usize, step: &Step) -> Answer {
        let (answer, made) = match step {
            Step::Open(node) => self.opened(node),
            Step::View(of) => (Answer::default(), self.view(*of)),
            Step::Close(of) => {
                self.close(*of);
                (Answer::default(), None)
            }
            Step::Dup(of) => (Answer::default(), self.dup(*of)),
            Step::Ioctl(call) => self.ioctl(call),
            Step::Fail(of, what) => {
                // SAFETY: the driver is booted; a descriptor that is none of a channel gives an errno.
                let result = unsafe { (self.library.fail)(self.raw(*of), &Failed::of(*what)) };
                // SAFETY: the text ends with a zero, and stays until the next failure.
                let log = unsafe { CStr::from_ptr((self.library.said)()) }.to_string_lossy();
                let said = if result == 0 { said(&log) } else { String::new() };
                (Answer { result, said, ..Answer::default() }, None)
            }
            Step::Read(of, at, count) => (Answer { bytes: self.read(*of, *at, *count), ..Answer::default() }, None),
            Step::Buffer(_) => unreachable!("a buffer is made before the threads start"),
        };
        self.note(number, made);
        answer
    }

    fn note(&self, number: usize, made: Option<RawFd>) {
        self.made.lock().expect("nobody panicked").extend(made.map(|fd| (number, fd)));
    }

    /// Closes everything.
    pub fn finish(mut self) {
        let left: Vec<usize> = self.made.lock().expect("nobody panicked").keys().copied().collect();
        left.into_iter().for_each(|number| self.close(number));
        // SAFETY: the descriptors are the program's own.
        self.memory.drain(..).for_each(|(_, fd)| unsafe {
            libc::close(fd);
        });
    }

    fn raw(&self, step: usize) -> RawFd {
        self.made.lock().expect("nobody panicked").get(&step).copied().unwrap_or(-1)
    }

    fn opened(&self, node: &str) -> (Answer, Option<RawFd>) {
        let name = CString::new(node).expect("a name without zeros");
        // SAFETY: the driver is booted, and the name ends with a zero.
        let fd = unsafe { (self.library.open)(name.as_ptr()) };
        match fd {
            0.. => (Answer::default(), Some(fd)),
            _ => (Answer { result: fd, ..Answer::default() }, None),
        }
    }

    fn buffer(&mut self, number: usize, size: u32) -> Option<RawFd> {
        // SAFETY: these calls make descriptors and touch no memory.
        let (fd, copy) = unsafe {
            let fd = libc::memfd_create(c"buffer".as_ptr(), libc::MFD_CLOEXEC);
            libc::ftruncate(fd, i64::from(size));
            (fd, libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3))
        };
        self.memory.push((number, copy));
        let size = u64::from(size).next_multiple_of(4096);
        self.buffers.insert(inode(fd)?, (number, size));
        self.tell(fd, size)
    }

    fn read(&self, of: usize, at: usize, count: usize) -> Vec<u8> {
        let Some((_, fd)) = self.memory.iter().find(|(step, _)| *step == of) else { return Vec::new() };
        let mut bytes = vec![0; count];
        // SAFETY: the bytes are this function's own.
        let read = unsafe { libc::pread(*fd, bytes.as_mut_ptr().cast(), count, at as libc::off_t) };
        bytes.truncate(usize::try_from(read).unwrap_or(0));
        without_time(bytes)
    }

    fn view(&self, of: usize) -> Option<RawFd> {
        let path = CString::new(format!("/proc/self/fd/{}", self.raw(of))).expect("a path");
        // SAFETY: open makes a descriptor and touches no memory.
        let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        let (_, size) = self.buffers.get(&inode(fd)?)?;
        self.tell(fd, *size)
    }

    /// Tells the driver that a descriptor is a dma-buf.
    fn tell(&self, fd: RawFd, size: u64) -> Option<RawFd> {
        // SAFETY: the driver is booted, and makes an object for the descriptor.
        let result = unsafe { (self.library.buffer)(fd, size) };
        (result == 0).then_some(fd)
    }

    fn dup(&self, of: usize) -> Option<RawFd> {
        // SAFETY: the driver is booted; a closed descriptor gives an errno.
        let fd = unsafe { (self.library.dup)(self.raw(of)) };
        (fd >= 0).then_some(fd)
    }

    fn close(&self, number: usize) {
        let made = self.made.lock().expect("nobody panicked").remove(&number);
        if let Some(fd) = made {
            // SAFETY: the descriptor is the program's own.
            unsafe { (self.library.close)(fd) };
        }
    }

    fn ioctl(&self, call: &Ioctl) -> (Answer, Option<RawFd>) {
        let fd = self.raw(call.on);
        if fd < 0 {
            return (Answer { result: -libc::EBADF, bytes: call.bytes.clone(), ..Answer::default() }, None);
        }
        let make = |request, bytes: &mut [u8]| {
            let argument = value_of(request, bytes).map_or(bytes.as_mut_ptr().cast(), |value| value as *mut c_void);
            // SAFETY: the argument has the size that the request names, and the driver checks what it reaches beyond.
            unsafe { (self.library.ioctl)(fd, request, argument) as i32 }
        };
        play(call, self.driver.r35, |step| self.raw(step), make)
    }

    fn runs(&self, fd: RawFd) -> Vec<Run> {
        let mut entries: Vec<(u64, u64, u64)> = Vec::new();
        unsafe extern "C" fn note(context: *mut c_void, va: u64, size: u64, entry: u64) {
            // SAFETY: the context is the list below.
            unsafe { (*context.cast::<Vec<(u64, u64, u64)>>()).push((va, size, entry)) };
        }
        // SAFETY: the driver is booted, and the list lives until the call returns.
        unsafe { (self.library.tables)(fd, note, (&raw mut entries).cast()) };
        entries.sort_unstable();
        let mut runs = Vec::new();
        for (va, len, entry) in entries {
            let valid = entry & VALID != 0;
            if !valid && entry & VOLATILE == 0 {
                continue;
            }
            let address = (entry & ADDRESS) << 4;
            let (behind, offset) = if valid { self.behind(address) } else { (Behind::Sparse, 0) };
            let l3 = if entry & (L3 | L3 >> 1) != 0 { L3 } else { 0 };
            Run { va, len, behind, offset, entry: entry & !ADDRESS | l3 }.push(&mut runs);
        }
        runs
    }

    fn behind(&self, address: u64) -> (Behind, u64) {
        // A bit of the address asks for the L3 cache.
        let address = address & !(3 << 36);
        if APERTURE.contains(&address) {
            return (Behind::Syncpoints, address - APERTURE.start);
        }
        let (mut start, mut inode) = (0, 0);
        // SAFETY: both are places for the answer.
        if unsafe { (self.library.buffer_at)(address, &mut start, &mut inode) } == 0 {
            return (Behind::Kernel, 0);
        }
        let step = self.buffers.get(&inode).map(|(step, _)| *step);
        (step.map_or(Behind::Kernel, Behind::Buffer), address - start)
    }
}
