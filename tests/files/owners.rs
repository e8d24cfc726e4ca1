//! Which open file may use which client: RM's rule, for every escape that names a client. And escapes whose arguments may have several
//! sizes.
#![allow(unsafe_code)] // looks at the memory around an argument

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

/// RM accepts the 4 bytes of a handle as the parameters of a client. A caller of the short form may own no more bytes.
#[test]
fn the_parameters_of_a_client_are_one_handle() {
    let d = desktop();
    let pages = raw_mmap(None, 8192, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1);
    let end = pages.mapping().addr() + 4096;
    // SAFETY: the page belongs to this test.
    assert_eq!(unsafe { libc::mprotect(end as *mut libc::c_void, 4096, libc::PROT_NONE) }, 0);
    let written = (end - 4) as *mut u32;
    for class in [NV01_ROOT, NV01_ROOT_NON_PRIV, NV01_ROOT_CLIENT] {
        // SAFETY: the word lies in the first page, which belongs to this test.
        unsafe { written.write(0) };
        let p = d.try_alloc(0, 0, class, written as u64);
        assert_eq!(p.status, NV_OK, "class {class:#x}: nothing behind the handle is touched");
        // SAFETY: the same as for the write.
        assert_eq!(unsafe { written.read() }, p.hObjectNew, "class {class:#x}");
        for (size, wanted) in [(0, NV_OK), (4, NV_OK), (120, NV_OK), (8, NV_ERR_INVALID_PARAM_STRUCT)] {
            let mut room = [0xffu8; 124];
            let mut long = NVOS64_PARAMETERS::new_zeroed();
            (long.hClass, long.pAllocParms, long.paramsSize) = (class, room.as_mut_ptr() as u64, size);
            d.escape(d.ctl, NV_ESC_RM_ALLOC, &mut long).expect("understood");
            assert_eq!(long.status, wanted, "class {class:#x} with {size} bytes");
            if wanted == NV_OK {
                assert_eq!(room[..4], long.hObjectNew.to_le_bytes(), "class {class:#x} with {size} bytes");
                assert!(room[4..].iter().all(|b| *b == 0xff), "class {class:#x}: only the handle is written");
            }
        }
    }
}

/// NVIDIA's driver divides the size by the size of an element. It has no other rule about the size.
#[test]
fn a_list_of_cards_has_any_size_that_holds_one() {
    const CARD: usize = size_of::<nv_ioctl_card_info_t>();
    let d = desktop();
    for len in [CARD, CARD + 1, 2 * CARD - 1, 1000, 1024, 128 * CARD, 0x3fff] {
        let mut bytes = vec![0xff; len];
        d.ioctl(d.ctl, request(NV_ESC_CARD_INFO, len), &mut bytes).unwrap_or_else(|e| panic!("{len} bytes: {e}"));
        let (cards, rest) = bytes.split_at(len - len % CARD);
        assert_eq!(cards.chunks(CARD).filter(|card| card[0] != 0).count(), 1, "{len} bytes");
        assert!(cards[CARD..].iter().all(|b| *b == 0), "{len} bytes: the other elements are zero");
        assert!(rest.iter().all(|b| *b == 0xff), "{len} bytes: what is no whole element is the caller's");
    }
    for len in [0, 1, CARD - 1] {
        assert_eq!(d.ioctl(d.ctl, request(NV_ESC_CARD_INFO, len), &mut [0; CARD]), Err(Errno::EINVAL), "{len} bytes");
    }
}
