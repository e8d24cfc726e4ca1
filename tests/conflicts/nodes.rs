//! Conflicts C1, C2, C3 and C15: what a frontend finds before it uses a GPU.

use super::*;

/// A Jetson has no nvidia-uvm, and its nvidiactl may belong to the display. The library's nodes are files of its own.
mod c01_device_nodes {
    use super::*;

    #[test]
    fn nodes_are_made_of_real_descriptors_and_never_the_machines_own() {
        let d = desktop();
        let fds = [d.node("/dev/nvidiactl"), d.node("/dev/nvidia0"), d.node("/dev/nvidia-uvm")];
        for fd in fds {
            assert!(tegrarm_kmd::fds::file_id(fd).is_ok(), "a descriptor like any other");
            d.door.close(fd).unwrap();
        }
        for other in ["/dev/nvidia1", "/dev/nvidia-modeset", "/dev/null"] {
            let refused = d.door.open(&|| Ok(d.rm.clone()), other, true).unwrap_err();
            assert_eq!(refused.errno, Errno::ENOENT, "{other}");
        }
        let absent = || Err(tegrarm::status::RmError::new(NV_ERR_GENERIC, "no board"));
        let refused = d.door.open(&absent, "/dev/nvidiactl", true).unwrap_err();
        assert_eq!((refused.errno, refused.sentence.contains("no board")), (Errno::ENODEV, true));
        // The argument is copied, so the caller may change its memory afterwards.
        let mut p = Box::new(NVOS21_PARAMETERS::new_zeroed());
        (p.hRoot, p.hObjectParent, p.hClass) = (d.client, d.device, NV20_SUBDEVICE_0);
        d.escape(d.ctl, NV_ESC_RM_ALLOC, &mut *p).unwrap();
        let handle = p.hObjectNew;
        p.as_mut_bytes().fill(0xff);
        assert_eq!(d.free(handle), NV_OK);
    }
}

/// Layouts follow the driver's version. The library reports the version whose layouts all releases of the frontends
/// know.
mod c02_version {
    use super::*;

    #[test]
    fn the_version_is_one_whose_layouts_every_release_knows() {
        let d = desktop();
        let mut p = NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_V2_PARAMS::new_zeroed();
        assert_eq!(d.control(d.client, NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2, &mut p), NV_OK);
        assert_eq!(&p.driverVersionBuffer[..10], b"570.86.16\0");
        let mut q = nv_ioctl_rm_api_version_t::new_zeroed();
        q.cmd = 0x32;
        d.escape(d.ctl, NV_ESC_CHECK_VERSION_STR, &mut q).unwrap();
        assert_eq!(q.versionString, p.driverVersionBuffer[..64], "the two say the same");
    }
}

/// The chip's host class is not the class for which frontends ask, and frontends would prefer newer classes.
mod c03_classes {
    use super::*;

    #[test]
    fn the_class_list_leads_to_classes_that_work() {
        let d = desktop();
        let mut p = NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS::new_zeroed();
        assert_eq!(d.control(d.device, NV0080_CTRL_CMD_GPU_GET_CLASSLIST, &mut p), NV_OK);
        let mut list = vec![0u32; p.numClasses as usize];
        assert!(list.len() <= 100, "older frontends bring room for 100");
        p.classList = list.as_mut_ptr() as u64;
        assert_eq!(d.control(d.device, NV0080_CTRL_CMD_GPU_GET_CLASSLIST, &mut p), NV_OK);
        for needed in [TURING_USERMODE_A, AMPERE_CHANNEL_GPFIFO_A, AMPERE_COMPUTE_B, AMPERE_DMA_COPY_B] {
            assert!(list.contains(&needed), "{needed:#x}");
        }
        for newer in
            [HOPPER_USERMODE_A, BLACKWELL_CHANNEL_GPFIFO_A, ADA_COMPUTE_A, BLACKWELL_COMPUTE_A, BLACKWELL_DMA_COPY_A]
        {
            assert!(!list.contains(&newer), "{newer:#x} would be preferred");
            assert_eq!(d.try_alloc(d.subdevice, 0, newer, 0).status, NV_ERR_INVALID_CLASS);
        }
    }
}

/// Forked workers inherit open descriptors. `tests/fork.rs`, `ctests/preload.c` and `python/tests/test_preload.py` test
/// two processes.
mod c15_fork {
    use super::*;

    #[test]
    fn handles_of_clients_are_never_used_again() {
        // A child tells its parent's clients from its own by these handles.
        let (one, two) = (desktop(), desktop());
        assert_ne!(one.client, two.client);
        let mut p = NVOS54_PARAMETERS::new_zeroed();
        (p.hClient, p.hObject) = (two.client, two.client);
        one.escape(one.ctl, NV_ESC_RM_CONTROL, &mut p).unwrap();
        assert_eq!(p.status, NV_ERR_INVALID_CLIENT);
    }
}
