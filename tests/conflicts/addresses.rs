//! Conflicts C4, C5, C7 and C12: addresses of the CPU and of the GPU.

use super::*;

/// The end of the addresses that a client may use.
const VA_END: u64 = 0xff_0000_0000;

/// A frontend maps with its own libc, so the descriptor that it names becomes the memory.
mod c04_cpu_maps {
    use super::*;

    #[test]
    fn what_the_client_maps_itself_is_the_memory() {
        let d = desktop();
        let memory = d.memory(2 * PAGE);
        let views = [d.map_cpu(memory, 2 * PAGE, None), d.map_cpu(memory, 2 * PAGE, None)];
        views[0].write_u32(PAGE as usize, 0xabcd);
        assert_eq!(views[1].read_u32(PAGE as usize), 0xabcd, "after its descriptor was closed");
        let usermode = d.alloc(d.subdevice, TURING_USERMODE_A);
        let pages = [d.map_cpu(usermode, 0x10000, None), d.map_cpu(usermode, 0x10000, None)];
        let inodes = pages.each_ref().map(|p| inode_at(p.mapping().addr() as u64));
        assert_ne!(inodes[0], inodes[1], "a doorbell page takes an open of its own");
        let fd = d.gpu_fd();
        assert_eq!(d.lend(usermode, 0x1000, 0x1000, fd), NV_ERR_INVALID_BASE);
        assert_eq!(d.lend(memory, PAGE, PAGE, fd), NV_ERR_NOT_SUPPORTED, "a descriptor carries no offset");
        d.door.close(fd).unwrap();
    }
}

/// RM promises 2^49 bytes. The space that contains a channel's ring must end below 2^40, below the four gigabytes of
/// the kernel.
mod c05_va_space {
    use super::*;

    #[test]
    fn the_clients_addresses_are_honoured_up_to_the_kernels_own() {
        let _shown = shows(&[NV_ERR_UVM_ADDRESS_IN_USE]);
        let mut d = desktop();
        let mut space = NV_VASPACE_ALLOCATION_PARAMETERS::new_zeroed();
        (space.flags, space.vaBase, space.vaSize) = (0x48, 0x1000, 0x1_ffff_fb00_0000);
        d.alloc_with(d.device, FERMI_VASPACE_A, &mut space);
        assert_eq!((space.vaBase, space.vaBase + space.vaSize), (2 << 20, VA_END), "clamped and written back");
        let (memory, low) = (d.memory(PAGE), d.low_va(PAGE));
        for va in [low, 0x20_0000_0000, 0xfd_0000_0000, 0xfe_3fff_f000, VA_END - PAGE] {
            assert_eq!(d.range(va, PAGE), NV_OK, "{va:#x}");
            assert_eq!(d.map_external(memory, va, PAGE, 0), NV_OK, "{va:#x}");
        }
        assert_eq!(d.range(VA_END, PAGE), NV_ERR_OUT_OF_RANGE, "the kernel's four gigabytes");
        assert_eq!(d.range(VA_END - PAGE, 2 * PAGE), NV_ERR_OUT_OF_RANGE);
        assert_eq!(d.range(0x7fff_1234_5000, PAGE), NV_ERR_OUT_OF_RANGE, "a pointer of the host's");
        assert_eq!(d.range(low + 1, PAGE), NV_ERR_INVALID_ADDRESS);
        assert_eq!(d.range(low, 0), NV_ERR_INVALID_ADDRESS);
        assert_eq!(d.range(low, PAGE), NV_ERR_UVM_ADDRESS_IN_USE);
    }
}

/// RM and UVM both map a buffer at the same address. The hardware has one mapping.
mod c07_uvm {
    use super::*;

    #[test]
    fn mapping_twice_is_one_mapping_in_the_hardware() {
        let kmd = board(L4t::R36);
        let kernels = Arc::new(Counting::over(kmd.clone()));
        let counted = Desktop::over(kmd, Arc::new(manager(kernels.clone())));
        let (memory, va) = (counted.memory(PAGE), 0x30_0000_0000);
        assert_eq!(counted.range(va, PAGE), NV_OK);
        let before = kernels.maps.load(Ordering::Relaxed);
        assert_eq!(counted.map_dma(memory, va, PAGE), NV_OK);
        assert_eq!(kernels.maps.load(Ordering::Relaxed), before, "the device's own space: written down only");
        assert_eq!(counted.map_external(memory, va, PAGE, 0), NV_OK);
        assert_eq!(kernels.maps.load(Ordering::Relaxed), before + 1);
    }
}

/// Shader windows are ranges with which addresses are compared, and they are never mapped. Frontends that choose
/// addresses keep theirs.
mod c12_windows {
    use super::*;

    #[test]
    fn no_address_of_the_clients_is_taken_for_a_window() {
        let d = desktop();
        let memory = d.memory(PAGE);
        for va in [0xfd_0000_0000, 0xfd_3fff_f000, 0xfe_0000_0000, 0xfe_3fff_f000] {
            assert_eq!(d.range(va, PAGE), NV_OK, "{va:#x}");
            assert_eq!(d.map_external(memory, va, PAGE, 0), NV_OK, "{va:#x}");
        }
    }
}
