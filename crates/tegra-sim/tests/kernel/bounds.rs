//! Lists and texts whose length a program chooses. A page of zeros is enough for the longest of them, so that the simulator has bounds where
//! the driver has none, and names them.

use crate::support::*;
use tegra_kernel::rule;
use tegrarm_abi::nvgpu::debugger::*;

/// The number of elements that no list may have.
const TOO_MANY: u32 = (1 << 20) + 1;
const TOO_LONG: u32 = (64 << 20) + 4;

fn named(bound: &str) {
    let rule = rule::take().unwrap_or_default();
    assert!(rule.contains(bound), "{rule:?}");
}

#[test]
fn a_remap_has_an_end() {
    let board = Board::new();
    let space = board.space();
    for count in [TOO_MANY, u32::MAX] {
        // The memory is not looked at: it is not there.
        let mut remap = args::<nvgpu_as_remap_args>(|a| (a.ops, a.num_ops) = (8, count));
        assert_eq!(space.ioctl(NVGPU_AS_IOCTL_REMAP, &mut remap), Err(Errno::ENOMEM));
        named(&format!("{count} operations: the simulator reads at most 1048576"));
        assert_eq!(remap.num_ops, 0, "none is done");
    }
    let mut remap = args::<nvgpu_as_remap_args>(|a| (a.ops, a.num_ops) = (8, TOO_MANY - 1));
    assert_eq!(space.ioctl(NVGPU_AS_IOCTL_REMAP, &mut remap), Err(Errno::EFAULT));
}

#[test]
fn a_list_of_caches_has_an_end() {
    let board = Board::new();
    let list = |nr: u32| {
        let mut list = args::<nvmap_cache_op_list>(|a| (a.handles, a.offsets, a.sizes, a.nr) = (8, 8, 8, nr));
        board.nvmap.ioctl(NVMAP_IOC_CACHE_LIST, &mut list)
    };
    assert_eq!(list(TOO_MANY), Err(Errno::ENOMEM));
    named("1048577 handles: the simulator reads at most 1048576");
    assert_eq!((list(u32::MAX / 4 + 1), list(u32::MAX)), (Err(Errno::EINVAL), Err(Errno::EINVAL)), "the driver's own");
    assert_eq!(list(TOO_MANY - 1), Err(Errno::EFAULT));
}

#[test]
fn a_debugger_copies_so_many_bytes_at_a_time() {
    let board = Board::new();
    let rig = board.rig();
    let session = File::open(&board.kmd, Node::Debugger, "/dev/nvgpu/igpu0/dbg").unwrap();
    let mut bind = args::<nvgpu_dbg_gpu_bind_channel_args>(|a| a.channel_fd = rig.channel.raw() as u32);
    session.ioctl(NVGPU_DBG_GPU_IOCTL_BIND_CHANNEL, &mut bind).unwrap();
    let access = |size: u32, count: u32| {
        let op = nvgpu_dbg_gpu_va_access_entry { gpu_va: 0, data: 8, size, valid: 0, reserved: [0; 3] };
        let mut access = args::<nvgpu_dbg_gpu_va_access_args>(|a| {
            (a.ops_buf, a.count, a.cmd) =
                ((&raw const op) as u64, count, NVGPU_DBG_GPU_IOCTL_ACCESS_GPUVA_CMD_READ as u8);
        });
        session.ioctl(NVGPU_DBG_GPU_IOCTL_ACCESS_GPU_VA, &mut access)
    };
    for size in [TOO_LONG, u32::MAX] {
        assert_eq!(access(size, 1), Err(Errno::ENOMEM));
        named(&format!("{size} bytes: the simulator copies at most 67108864 at a time"));
    }
    assert_eq!(access(TOO_LONG - 4, 1), Err(Errno::EINVAL), "nothing is mapped there");
    assert_eq!(access(4, u32::MAX), Err(Errno::ENOMEM), "the driver's own");
}

#[test]
fn only_so_many_tags_have_labels() {
    const LABELS: u32 = 1 << 16;
    let board = Board::new();
    let label = |tag: u32, text: &[u8]| {
        let mut label =
            args::<nvmap_set_tag_label>(|a| (a.tag, a.len, a.addr) = (tag, text.len() as u32, text.as_ptr() as u64));
        board.nvmap.ioctl(NVMAP_IOC_SET_TAG_LABEL, &mut label)
    };
    for tag in 0..LABELS {
        assert_eq!(label(tag, b"a"), Ok(()), "{tag}");
    }
    assert_eq!(label(LABELS, b"a"), Err(Errno::ENOMEM));
    named("65536 tags have labels");
    assert_eq!((label(7, b"another"), label(7, b""), label(LABELS, b"a")), (Ok(()), Ok(()), Ok(())));
}
