//! Escapes whose arguments may have several sizes.
#![allow(unsafe_code)] // looks at the memory around an argument

use crate::common::door::*;
use crate::common::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::escapes::*;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::Errno;
use zerocopy::FromZeros;

fn desktop() -> Desktop {
    Desktop::open(default_release())
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
