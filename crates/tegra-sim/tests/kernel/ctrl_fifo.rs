//! The queues between a program and the domain scheduler. docs/hardware/nvgpu-scheduling.md#nvsched-ctrl-fifo names the
//! node, and its behaviour is that of the driver.

use crate::support::*;
use std::os::fd::{AsFd, OwnedFd};
use tegrarm_abi::nvgpu::ctrl_fifo::*;
use zerocopy::IntoBytes;

fn open(board: &Board) -> Result<File, Errno> {
    File::open(&board.kmd, Node::CtrlFifo, "/dev/nvgpu/igpu0/nvsched_ctrl_fifo")
}

/// Opens the same node for reading only.
fn for_reading(node: &File) -> OwnedFd {
    std::fs::File::open(format!("/proc/self/fd/{}", node.raw())).unwrap().into()
}

type Queue = nvgpu_nvs_ctrl_fifo_ioctl_create_queue_args;

fn create_queue(fifo: &File, number: u32, direction: u32, exclusive: u32) -> Result<Queue, Errno> {
    let mut create = args::<nvgpu_nvs_ctrl_fifo_ioctl_create_queue_args>(|a| {
        (a.queue_num, a.direction, a.access_type) = (number, direction as u8, exclusive as u8);
    });
    fifo.ioctl(NVGPU_NVS_CTRL_FIFO_IOCTL_CREATE_QUEUE, &mut create).map(|()| create)
}

const EVENT: u32 = NVGPU_NVS_CTRL_FIFO_QUEUE_NUM_EVENT;
const CONTROL: u32 = NVGPU_NVS_CTRL_FIFO_QUEUE_NUM_CONTROL;
const UP: u32 = NVGPU_NVS_CTRL_FIFO_QUEUE_DIRECTION_CLIENT_TO_SCHEDULER;
const DOWN: u32 = NVGPU_NVS_CTRL_FIFO_QUEUE_DIRECTION_SCHEDULER_TO_CLIENT;

fn release_queue(fifo: &File, number: u32, direction: u32) -> Result<(), Errno> {
    let mut release = args::<nvgpu_nvs_ctrl_fifo_ioctl_release_queue_args>(|a| {
        (a.queue_num, a.direction) = (number, direction as u8);
    });
    fifo.ioctl(NVGPU_NVS_CTRL_FIFO_IOCTL_RELEASE_QUEUE, &mut release)
}

#[test]
fn rule_9_1_the_control_fifo_is_open_once_per_process_and_on_r36_only() {
    let board = Board::new();
    let fifo = open(&board).unwrap();
    assert_eq!(open(&board).err(), Some(Errno::EEXIST));
    drop(fifo);
    File::open(&board.kmd, Node::CtrlFifo, "/dev/nvhost-nvsched_ctrl_fifo-gpu").unwrap();
    let older = Board::r35();
    assert_eq!(open(&older).err(), Some(Errno::ENOENT));
    let listed = |board: &Board| board.sim.kernel().node_paths().iter().any(|p| p.contains("ctrl_fifo"));
    assert_eq!((listed(&board), listed(&older)), (true, false));
}

#[test]
fn rule_9_1_the_control_fifo_describes_its_scheduler() {
    type Characteristics = nvgpu_nvs_ctrl_fifo_ioctl_query_scheduler_characteristics_args;
    const QUERY: u32 = NVGPU_NVS_CTRL_FIFO_IOCTL_QUERY_SCHEDULER_CHARACTERISTICS;
    let board = Board::new();
    let fifo = open(&board).unwrap();
    let mut query = args::<Characteristics>(|a| a.reserved0 = 1);
    fifo.ioctl(QUERY, &mut query).unwrap();
    assert_eq!((query.domain_scheduler_implementation, query.available_queues), (1, EVENT | CONTROL));
    assert_eq!(query.reserved0, 0, "nothing is read");
    let reader = for_reading(&fifo);
    board.kmd.ioctl(reader.as_fd(), Node::CtrlFifo, QUERY, Arg::Bytes(query.as_mut_bytes())).unwrap();
    assert_eq!(query.available_queues, EVENT);
    let mut event = args::<nvgpu_nvs_ctrl_fifo_ioctl_event>(|a| a.event_mask = 1);
    assert_eq!(fifo.ioctl(NVGPU_NVS_CTRL_FIFO_IOCTL_ENABLE_EVENT, &mut event), Err(Errno::EOPNOTSUPP));
}

#[test]
fn rule_9_1_the_queue_of_events_is_for_everybody_to_read() {
    let board = Board::new();
    let fifo = open(&board).unwrap();
    for (number, direction, access) in
        [(CONTROL, DOWN, 0), (EVENT, UP, 0), (3, DOWN, 1), (EVENT, 2, 1), (EVENT, DOWN, 2)]
    {
        let result = create_queue(&fifo, number, direction, access).err();
        assert_eq!(result, Some(Errno::EINVAL), "{number} {direction} {access}");
    }
    for field in [4 + 2, 8, 12] {
        let mut bytes = [0_u8; 16];
        (bytes[0], bytes[4], bytes[field]) = (EVENT as u8, DOWN as u8, 1);
        let create = NVGPU_NVS_CTRL_FIFO_IOCTL_CREATE_QUEUE;
        let result = board.kmd.ioctl(fifo.as_fd(), Node::CtrlFifo, create, Arg::Bytes(&mut bytes));
        assert_eq!(result, Err(Errno::EINVAL), "the field at {field} is not for the program");
    }
    assert_eq!(release_queue(&fifo, EVENT, DOWN), Err(Errno::EPERM), "not its own");
    let made = create_queue(&fifo, EVENT, DOWN, 0).unwrap();
    assert_eq!(made.queue_size, 65536);
    assert_eq!(create_queue(&fifo, EVENT, DOWN, 0).err(), Some(Errno::EEXIST));
    let queue = board.file(Node::Dmabuf, made.dmabuf_fd);
    let map = |len, prot, offset| queue.mmap(Placement::Anywhere, len, prot, offset).map(drop).err();
    assert_eq!(map(65536, Prot::Read, 0), None);
    assert_eq!(map(65536, Prot::ReadWrite, 0), Some(Errno::EACCES));
    assert_eq!((map(65537, Prot::Read, 0), map(4096, Prot::Read, 4096)), (Some(Errno::EINVAL), Some(Errno::EINVAL)));
    assert_eq!(map_with(&board.space(), queue.raw(), |_| ()).err(), Some(Errno::EINVAL), "no memory for the GPU");
    assert_eq!(
        (release_queue(&fifo, CONTROL, DOWN), release_queue(&fifo, EVENT, UP)),
        (Err(Errno::EPERM), Err(Errno::EPERM))
    );
    assert_eq!(release_queue(&fifo, 7, DOWN), Err(Errno::EOPNOTSUPP));
    release_queue(&fifo, EVENT, DOWN).unwrap();
    create_queue(&fifo, EVENT, DOWN, 0).unwrap();
}

#[test]
fn rule_9_1_one_user_has_the_scheduling_to_itself() {
    let board = Board::new();
    let fifo = open(&board).unwrap();
    let reader = for_reading(&fifo);
    let mut create = args::<nvgpu_nvs_ctrl_fifo_ioctl_create_queue_args>(|a| {
        (a.queue_num, a.direction, a.access_type) = (EVENT, 1, 1)
    });
    let bytes = create.as_mut_bytes();
    let refused =
        board.kmd.ioctl(reader.as_fd(), Node::CtrlFifo, NVGPU_NVS_CTRL_FIFO_IOCTL_CREATE_QUEUE, Arg::Bytes(bytes));
    assert_eq!(refused, Err(Errno::EPERM));
    // Control queues belong to the firmware, which the simulator does not have. A request for one makes the user
    // exclusive nevertheless.
    assert_eq!(create_queue(&fifo, CONTROL, UP, 1).err(), Some(Errno::EOPNOTSUPP));
    assert_eq!(create_queue(&fifo, EVENT, UP, 1).err(), Some(Errno::EOPNOTSUPP));
    assert_eq!(release_queue(&fifo, EVENT, UP), Err(Errno::EOPNOTSUPP), "no EPERM for the exclusive user");
    let made = create_queue(&fifo, EVENT, DOWN, 1).unwrap();
    let queue = board.file(Node::Dmabuf, made.dmabuf_fd);
    drop(queue.mmap(Placement::Anywhere, 65536, Prot::ReadWrite, 0).unwrap());
    release_queue(&fifo, EVENT, DOWN).unwrap();
    drop((fifo, reader));
    // If the node is closed while it has its queue, its exclusive user remains. This is a trap of the driver.
    let fifo = open(&board).unwrap();
    create_queue(&fifo, EVENT, DOWN, 1).unwrap();
    drop(fifo);
    assert_eq!(open(&board).err(), Some(Errno::EEXIST));
}
