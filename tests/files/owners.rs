//! Which open file may use which client: RM's rule, for every escape that names a client.

use crate::common::door::*;
use crate::common::*;
use tegrarm::files::escapes::{Args, ESCAPES, EscapeRow, Gate};
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::escapes::*;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::Errno;
use zerocopy::FromZeros;

fn desktop() -> Desktop {
    Desktop::open(default_release())
}

fn register(d: &Nodes, file: i32, control: i32) -> Result<(), Errno> {
    d.escape(file, NV_ESC_REGISTER_FD, &mut nv_ioctl_register_fd_t { ctl_fd: control })
}

/// The escapes whose argument begins with a client, in each of their layouts, with the offset of the status.
fn of_clients() -> impl Iterator<Item = (&'static EscapeRow, usize, usize)> {
    let named = |row: &EscapeRow| {
        row.of_client || matches!(row.nr, NV_ESC_RM_ALLOC | NV_ESC_RM_ALLOC_OBJECT | NV_ESC_RM_CONTROL)
    };
    ESCAPES.iter().filter(move |row| named(row)).flat_map(|row| match row.args {
        Args::Sizes(sizes) => sizes.iter().map(move |(size, at)| (row, *size, at.expect("a status"))),
        _ => panic!("{} has no status", row.name),
    })
}

/// Sends an escape that names `client` and has zeros in all other fields.
fn send(d: &Nodes, fd: i32, (row, size, at): (&EscapeRow, usize, usize), client: u32) -> u32 {
    let mut arg = vec![0u8; size];
    arg[..4].copy_from_slice(&client.to_le_bytes());
    if matches!(row.nr, NV_ESC_RM_ALLOC | NV_ESC_RM_ALLOC_OBJECT) {
        // RM checks the class first.
        arg[12..16].copy_from_slice(&NV20_SUBDEVICE_0.to_le_bytes());
    }
    if row.nr == NV_ESC_RM_ALLOC_CONTEXT_DMA2 {
        arg[12..16].copy_from_slice(&NV01_CONTEXT_DMA.to_le_bytes());
    }
    if row.nr == NV_ESC_RM_DUP_OBJECT {
        // This is the client of the source, which is looked up in the same way.
        arg[12..16].copy_from_slice(&client.to_le_bytes());
    }
    d.ioctl(fd, request(row.nr, size), &mut arg).unwrap_or_else(|e| panic!("{}: {e}", row.name));
    u32::from_le_bytes(arg[at..at + 4].try_into().expect("four bytes"))
}

#[test]
fn a_client_is_used_through_the_file_it_was_allocated_through() {
    let d = desktop();
    let other = d.node("/dev/nvidiactl");
    let (stranger, others_gpu) = (d.node("/dev/nvidia0"), d.node("/dev/nvidia0"));
    register(&d, others_gpu, other).expect("registered");
    let mut seen = 0;
    for call @ (row, size, _) in of_clients() {
        let (own, foreign) = match row.gate {
            Gate::Gpu => (d.gpu, vec![stranger, others_gpu]),
            _ => (d.ctl, vec![other]),
        };
        assert_ne!(send(&d, own, call, d.client), NV_ERR_INVALID_CLIENT, "{} of {size} through its file", row.name);
        for fd in foreign {
            assert_eq!(send(&d, fd, call, d.client), NV_ERR_INVALID_CLIENT, "{} of {size} through another", row.name);
        }
        seen += 1;
    }
    assert!(seen >= 16, "{seen} layouts");
    assert!(d.rm.has_client(d.client));
    for fd in [other, stranger, others_gpu] {
        d.door.close(fd).expect("open until now");
    }
}

/// Each verb has its own status for a client that does not exist, whichever file is used.
#[test]
fn clients_that_do_not_exist_have_the_status_of_the_verb() {
    let d = desktop();
    for call @ (row, ..) in of_clients() {
        let wanted = match row.nr {
            NV_ESC_RM_ALLOC | NV_ESC_RM_ALLOC_OBJECT | NV_ESC_RM_FREE => NV_ERR_INVALID_OBJECT_HANDLE,
            NV_ESC_RM_CONTROL | NV_ESC_RM_DUP_OBJECT | NV_ESC_RM_MAP_MEMORY_DMA => NV_ERR_INVALID_CLIENT,
            _ => continue,
        };
        assert_eq!(send(&d, d.ctl, call, 0xc1df_ffff), wanted, "{}", row.name);
    }
}

#[test]
fn a_registered_file_uses_the_clients_of_its_control_file() {
    let d = desktop();
    let second = d.node("/dev/nvidiactl");
    register(&d, second, d.ctl).expect("a control file may be registered with another");
    let free = ESCAPES.iter().find(|row| row.nr == NV_ESC_RM_FREE).expect("a row");
    let event = d.alloc(d.device, NV01_EVENT);
    let mut p = NVOS00_PARAMETERS::new_zeroed();
    (p.hRoot, p.hObjectOld) = (d.client, event);
    d.escape(second, free.nr, &mut p).expect("understood");
    assert_eq!(p.status, NV_OK);
    // A client that is made through this file belongs to the control file.
    let mut p = NVOS21_PARAMETERS::new_zeroed();
    p.hClass = NV01_ROOT_CLIENT;
    d.escape(second, NV_ESC_RM_ALLOC, &mut p).expect("understood");
    d.door.close(second).expect("open until now");
    assert!(d.rm.has_client(p.hObjectNew), "its control file is open");
}

#[test]
fn what_cannot_be_registered() {
    let d = desktop();
    let (second, third) = (d.node("/dev/nvidiactl"), d.node("/dev/nvidiactl"));
    assert_eq!(register(&d, second, second), Err(Errno::EINVAL), "with itself");
    register(&d, second, d.ctl).expect("registered");
    assert_eq!(register(&d, second, third), Err(Errno::EINVAL), "twice");
    assert_eq!(register(&d, third, second), Err(Errno::EINVAL), "with one that is registered");
    assert_eq!(register(&d, third, d.gpu), Err(Errno::EINVAL), "with a GPU file");
    assert_eq!(register(&d, third, -1), Err(Errno::EINVAL), "with nothing");
    for fd in [second, third] {
        d.door.close(fd).expect("open until now");
    }
}

/// A registered file keeps its control file alive, so the control file's clients live until both are closed.
#[test]
fn clients_end_with_the_last_file_that_uses_them() {
    let d = desktop();
    let ctl = d.node("/dev/nvidiactl");
    let mut p = NVOS21_PARAMETERS::new_zeroed();
    p.hClass = NV01_ROOT_CLIENT;
    d.escape(ctl, NV_ESC_RM_ALLOC, &mut p).expect("understood");
    let gpu = d.node("/dev/nvidia0");
    register(&d, gpu, ctl).expect("registered");
    d.door.close(ctl).expect("open until now");
    assert!(d.rm.has_client(p.hObjectNew), "the GPU's file uses it");
    d.door.close(gpu).expect("open until now");
    assert!(!d.rm.has_client(p.hObjectNew));
}

#[test]
fn only_events_are_allocated_through_a_file_of_the_gpu() {
    let d = desktop();
    let mut p = NVOS21_PARAMETERS::new_zeroed();
    (p.hRoot, p.hObjectParent) = (d.client, d.device);
    for (class, wanted) in [
        (NV01_EVENT, Ok(())),
        (NV01_EVENT_OS_EVENT, Ok(())),
        (NV20_SUBDEVICE_0, Err(Errno::EINVAL)),
        (NV01_ROOT_CLIENT, Err(Errno::EINVAL)),
    ] {
        p.hClass = class;
        p.hObjectNew = 0;
        assert_eq!(d.escape(d.gpu, NV_ESC_RM_ALLOC, &mut p), wanted, "class {class:#x}");
        assert_eq!(p.status, NV_OK, "class {class:#x}");
    }
}
