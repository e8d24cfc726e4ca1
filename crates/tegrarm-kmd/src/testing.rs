//! A small kernel in memory, and a program that uses it. The wrappers are tested with them.

use crate::{Arg, Errno, File, Kmd, Node, Placement, Prot};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use tegrarm_abi::layout::{AbiStruct, FromBytes, FromZeros, IntoBytes};
use tegrarm_abi::nvgpu::address_space::*;
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_abi::nvgpu::tsg::*;
use tegrarm_abi::nvmap::*;
use tegrarm_lock::Mutex;

/// Answers the ioctls of [`program`]. All other calls give `ENOTTY`.
#[derive(Default)]
pub(crate) struct TestKmd {
    objects: Mutex<Objects>,
}

#[derive(Default)]
struct Objects {
    /// The sizes of buffers, indexed by nvmap handle - 0x8000_0000.
    buffers: Vec<u32>,
    maps: u64,
    open: i64,
}

pub(crate) const SMS: usize = 4;

impl TestKmd {
    /// The number of descriptors that were made and are not closed.
    pub(crate) fn open_fds(&self) -> i64 {
        self.objects.lock().open
    }

    fn file(&self, size: u64) -> Result<OwnedFd, Errno> {
        let fd = memfd_create("test", MFdFlags::MFD_CLOEXEC)?;
        nix::unistd::ftruncate(&fd, size as i64)?;
        self.objects.lock().open += 1;
        Ok(fd)
    }

    fn new_fd(&self, size: u64) -> Result<RawFd, Errno> {
        Ok(self.file(size)?.into_raw_fd())
    }
}

/// Changes the argument in place, as its structure.
fn with<T: AbiStruct>(bytes: &mut [u8], change: impl FnOnce(&mut T) -> Result<(), Errno>) -> Result<i32, Errno> {
    let mut arg = T::read_from_bytes(bytes).map_err(|_| Errno::EINVAL)?;
    change(&mut arg)?;
    bytes.copy_from_slice(arg.as_bytes());
    Ok(0)
}

/// Checks that a descriptor is one of this kernel's.
fn open_fd(fd: RawFd) -> Result<(), Errno> {
    std::fs::metadata(format!("/proc/self/fd/{fd}")).map(|_| ()).map_err(|_| Errno::EBADF)
}

impl Kmd for TestKmd {
    fn name(&self) -> &str {
        "test"
    }

    fn open(&self, path: &str) -> Result<OwnedFd, Errno> {
        match path {
            "/dev/nvmap" | "/dev/nvgpu/igpu0/ctrl" => self.file(0),
            _ => Err(Errno::ENOENT),
        }
    }

    fn ioctl(&self, _fd: BorrowedFd<'_>, node: Node, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        let bytes = match arg {
            Arg::Bytes(bytes) => bytes,
            Arg::Value(handle) if request == NVMAP_IOC_FREE => {
                let known = self.objects.lock().buffers.len() as u64;
                return if (0x8000_0000..0x8000_0000 + known).contains(&handle) { Ok(0) } else { Err(Errno::EINVAL) };
            }
            Arg::Value(_) => return Err(Errno::ENOTTY),
        };
        match (node, request) {
            (Node::Nvmap, NVMAP_IOC_CREATE) => with(bytes, |a: &mut nvmap_create_handle| {
                let buffers = &mut self.objects.lock().buffers;
                a.handle = 0x8000_0000 + buffers.len() as u32;
                buffers.push(a.size);
                Ok(())
            }),
            (Node::Nvmap, NVMAP_IOC_GET_FD) => with(bytes, |a: &mut nvmap_create_handle| {
                let size = self.objects.lock().buffers.get((a.handle - 0x8000_0000) as usize).copied();
                a.size = self.new_fd(size.ok_or(Errno::EBADF)?.into())? as u32;
                Ok(())
            }),
            (Node::Ctrl, NVGPU_GPU_IOCTL_NUM_VSMS) => with(bytes, |a: &mut nvgpu_gpu_num_vsms| {
                a.num_vsms = SMS as u32;
                Ok(())
            }),
            (Node::Ctrl, NVGPU_GPU_IOCTL_VSMS_MAPPING) => with(bytes, |a: &mut nvgpu_gpu_vsms_mapping| {
                let table: Vec<u8> = (0..6 * SMS as u8).collect();
                crate::memory::write(a.vsms_map_buf_addr, &table)
            }),
            (Node::Ctrl, NVGPU_GPU_IOCTL_GET_CHARACTERISTICS) => {
                with(bytes, |a: &mut nvgpu_gpu_get_characteristics| {
                    let all = [0xa5u8; 328];
                    let room = (a.gpu_characteristics_buf_size as usize).min(all.len());
                    crate::memory::write(a.gpu_characteristics_buf_addr, &all[..room])?;
                    a.gpu_characteristics_buf_size = 328;
                    Ok(())
                })
            }
            (Node::Ctrl, NVGPU_GPU_IOCTL_ALLOC_AS) => with(bytes, |a: &mut nvgpu_alloc_as_args| {
                a.as_fd = self.new_fd(0)?;
                Ok(())
            }),
            (Node::Ctrl, NVGPU_GPU_IOCTL_OPEN_CHANNEL) => with(bytes, |a: &mut nvgpu_gpu_open_channel_args| {
                if a.channel_fd != -1 {
                    return Err(Errno::EINVAL);
                }
                a.channel_fd = self.new_fd(0)?;
                Ok(())
            }),
            (Node::As, NVGPU_AS_IOCTL_MAP_BUFFER_EX) => with(bytes, |a: &mut nvgpu_as_map_buffer_ex_args| {
                open_fd(a.dmabuf_fd as i32)?;
                let maps = &mut self.objects.lock().maps;
                *maps += 1;
                a.offset = 0xff_0000_0000 - *maps * 0x1000;
                Ok(())
            }),
            (Node::As, NVGPU_AS_IOCTL_REMAP) => with(bytes, |a: &mut nvgpu_as_remap_args| {
                let ops = crate::memory::read(a.ops, size_of::<nvgpu_as_remap_op>())?;
                let mut op = nvgpu_as_remap_op::read_from_bytes(&ops).map_err(|_| Errno::EINVAL)?;
                open_fd(op.mem_handle as i32)?;
                op.incompr_kind = 7;
                crate::memory::write(a.ops, op.as_bytes())
            }),
            (Node::Tsg, NVGPU_TSG_IOCTL_BIND_CHANNEL) => {
                open_fd(i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])).map(|()| 0)
            }
            _ => Err(Errno::ENOTTY),
        }
    }

    fn close(&self, fd: OwnedFd) {
        self.objects.lock().open -= 1;
        drop(fd);
    }

    fn own_view(&self, _: BorrowedFd<'_>) -> Option<usize> {
        None
    }

    fn read_text(&self, path: &str) -> Result<String, Errno> {
        if path == "/proc/meminfo" { Ok("MemTotal: 1 kB\n".into()) } else { Err(Errno::ENOENT) }
    }

    fn write_text(&self, _path: &str, _text: &str) -> Result<(), Errno> {
        Err(Errno::EACCES)
    }
}

/// The answers that [`program`] got from the kernel. A recording gives the same answers as the kernel itself.
pub(crate) type Learnt = Vec<u64>;

/// Uses every kind of call once. `size` is the size of the buffer that it asks of nvmap. It fails with the first error.
pub(crate) fn program(kmd: &Arc<dyn Kmd>, size: u32) -> Result<Learnt, Errno> {
    let mut learnt = Vec::new();
    learnt.push(kmd.read_text("/proc/meminfo")?.len() as u64);
    learnt.push(u64::from(kmd.write_text("/sys/min_freq", "1").is_err()));
    let nvmap = File::open(kmd, Node::Nvmap, "/dev/nvmap")?;
    let ctrl = File::open(kmd, Node::Ctrl, "/dev/nvgpu/igpu0/ctrl")?;

    let mut room = [0u8; 400];
    let mut chars = nvgpu_gpu_get_characteristics {
        gpu_characteristics_buf_size: room.len() as u64,
        gpu_characteristics_buf_addr: room.as_mut_ptr() as u64,
    };
    ctrl.ioctl(NVGPU_GPU_IOCTL_GET_CHARACTERISTICS, &mut chars)?;
    learnt.push(chars.gpu_characteristics_buf_size);
    learnt.push(room.iter().map(|b| u64::from(*b)).sum());

    let mut number = nvgpu_gpu_num_vsms { num_vsms: 0, reserved: 0 };
    ctrl.ioctl(NVGPU_GPU_IOCTL_NUM_VSMS, &mut number)?;
    learnt.push(number.num_vsms.into());
    let mut table = [0u8; 6 * SMS];
    let mut vsms = nvgpu_gpu_vsms_mapping { vsms_map_buf_addr: table.as_mut_ptr() as u64 };
    ctrl.ioctl(NVGPU_GPU_IOCTL_VSMS_MAPPING, &mut vsms)?;
    learnt.extend(table.map(u64::from));

    let mut space = nvgpu_alloc_as_args::new_zeroed();
    space.va_range_end = 0xff_0000_0000;
    ctrl.ioctl(NVGPU_GPU_IOCTL_ALLOC_AS, &mut space)?;
    let space = File::from_output(kmd, Node::As, space.as_fd)?;

    let mut handle = nvmap_create_handle { size, handle: 0 };
    nvmap.ioctl(NVMAP_IOC_CREATE, &mut handle)?;
    nvmap.ioctl(NVMAP_IOC_GET_FD, &mut handle)?;
    let dmabuf = File::from_output(kmd, Node::Dmabuf, handle.size as i32)?;
    let view = dmabuf.mmap(Placement::Anywhere, 4096, Prot::ReadWrite, 0)?;
    learnt.push(view.len() as u64);

    let mut map = nvgpu_as_map_buffer_ex_args::new_zeroed();
    map.dmabuf_fd = dmabuf.raw() as u32;
    space.ioctl(NVGPU_AS_IOCTL_MAP_BUFFER_EX, &mut map)?;
    learnt.push(map.offset);

    let mut op = nvgpu_as_remap_op::new_zeroed();
    op.mem_handle = dmabuf.raw() as u32;
    let mut remap = nvgpu_as_remap_args { ops: (&raw mut op) as u64, num_ops: 1, _pad0: [0; 4] };
    space.ioctl(NVGPU_AS_IOCTL_REMAP, &mut remap)?;
    learnt.push(op.incompr_kind as u64);
    learnt.push(u64::from(op.mem_handle == dmabuf.raw() as u32));

    let mut channel = nvgpu_gpu_open_channel_args { channel_fd: -1 };
    ctrl.ioctl(NVGPU_GPU_IOCTL_OPEN_CHANNEL, &mut channel)?;
    let channel = File::from_output(kmd, Node::Channel, channel.channel_fd)?;
    // Any file may stand for the group here, because the test kernel checks only the channel.
    let mut bare = channel.raw().to_le_bytes();
    kmd.ioctl(std::os::fd::AsFd::as_fd(&space), Node::Tsg, NVGPU_TSG_IOCTL_BIND_CHANNEL, Arg::Bytes(&mut bare))?;

    nvmap.ioctl_value(NVMAP_IOC_FREE, 0x8000_0000)?;
    let mut unknown = nvgpu_gpu_num_vsms { num_vsms: 1, reserved: 2 };
    learnt.push(u64::from(ctrl.ioctl(NVGPU_GPU_IOCTL_NUM_VSMS ^ 0x40, &mut unknown).is_err()));
    Ok(learnt)
}

/// Takes ownership of a descriptor number that a test got from the kernel.
#[allow(unsafe_code)]
pub(crate) fn adopt(fd: RawFd) -> OwnedFd {
    // SAFETY: the test kernel or a replay has just made the descriptor for the calling test, which uses it nowhere
    // else.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// The number of a descriptor, for comparisons.
pub(crate) fn raw(fd: &OwnedFd) -> RawFd {
    fd.as_raw_fd()
}
