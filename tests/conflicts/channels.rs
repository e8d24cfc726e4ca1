//! Conflicts C6, C11 and C13: channels.

use super::*;

/// RM's ring and USERD lie inside a buffer of the client, and nvgpu's are buffers of their own. nvgpu's buffers are
/// mapped over the client's view.
mod c06_channel_layout {
    use super::*;

    #[test]
    fn rings_and_userd_lie_where_the_client_sees_them() {
        for l4t in L4t::ALL {
            let mut d = Desktop::open(l4t);
            let mut c = d.channels();
            let area = inode_at(c.area_va + AREA - PAGE);
            let pieces: Vec<u64> =
                PLACES.iter().flat_map(|(ring, userd)| [*ring, *userd]).map(|at| inode_at(c.area_va + at)).collect();
            for (i, piece) in pieces.iter().enumerate() {
                assert!(*piece != area && !pieces[..i].contains(piece), "a buffer of its own");
            }
            assert_eq!(
                inode_at(c.area_va + PLACES[0].0 + u64::from(ENTRIES) * 8 - PAGE),
                pieces[0],
                "all 65,536 entries"
            );
            assert_eq!(inode_at(c.area_va + PLACES[0].1 + PAGE), area, "beside the USERD page lies the area");
            let (_push, push_va, push) = d.shared(PAGE);
            let (_semaphore, semaphore_va, semaphore) = d.shared(PAGE);
            for i in 0..2 {
                let words = release(semaphore_va, 0x100 + i as u32);
                words.iter().enumerate().for_each(|(n, word)| push.write_u32(n * 4, *word));
                c.submit(i, push_va, words.len() as u32);
                await_word(&semaphore, 0, 0x100 + i as u32);
            }
            assert_eq!(d.free(c.channels[0]), NV_OK);
            assert_eq!(inode_at(c.area_va), area, "a channel's end uncovers the area");
            assert_eq!(inode_at(c.area_va + PLACES[1].0), pieces[2], "and only its own part");
        }
    }

    #[test]
    fn an_area_that_is_mapped_nowhere_is_refused() {
        let mut d = desktop();
        let mut group = NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS::new_zeroed();
        (group.engineType, group.hVASpace) = (NV2080_ENGINE_TYPE_GR0, d.vaspace);
        let group = d.alloc_with(d.device, KEPLER_CHANNEL_GROUP_A, &mut group);
        let (area, va, cpu) = d.shared(AREA);
        drop(cpu);
        let mut p = NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS::new_zeroed();
        (p.hObjectBuffer, p.gpFifoOffset, p.gpFifoEntries) = (area, va, ENTRIES);
        (p.hUserdMemory[0], p.userdOffset[0]) = (area, PLACES[0].1);
        let before = d.kmd.census();
        let refused = d.try_alloc(group, 0, AMPERE_CHANNEL_GPFIFO_A, &raw mut p as u64);
        assert_eq!(refused.status, NV_ERR_INVALID_OFFSET);
        assert_eq!(d.kmd.census(), before, "nothing stays behind");
        // The mapping may lie at any address, because the library reads the process's map.
        let _elsewhere = d.map_cpu(area, AREA, None);
        assert_eq!(d.try_alloc(group, 0, AMPERE_CHANNEL_GPFIFO_A, &raw mut p as u64).status, NV_OK);
    }

    #[test]
    fn a_ring_shows_in_views_that_are_made_later_and_goes_with_its_channel() {
        let rm = manager(board(default_release()));
        let b = Bringup::open(&rm).unwrap();
        let s = b.s;
        let (ring, userd) = (PLACES[1].0 + u64::from(ENTRIES) * 8 - 4, PLACES[1].1 + 0x10);
        let early = b.area_cpu as u64;
        poke(early + ring, 0x1111);
        poke(early + userd, 0x2222);
        let late = s.map_cpu(&rm, b.area, AREA).unwrap() as u64;
        assert_ne!(late, early);
        assert_eq!((peek(late + ring), peek(late + userd)), (0x1111, 0x2222));
        // This is a view of one page of the area.
        let request = MapRequest { memory: b.area, offset: PLACES[1].1, length: PAGE, at: None, flags: 0 };
        let page = rm.map_memory(s.client, s.device, &request).unwrap() as u64;
        assert_eq!(peek(page + 0x10), 0x2222);
        poke(page + 0x10, 0x3333);
        assert_eq!(peek(early + userd), 0x3333);
        // The area's own pages come back when the channel is freed. Nothing was ever written to them.
        rm.free(s.client, b.channels[1]).unwrap();
        for addr in [early + ring, early + userd, late + ring, late + userd, page + 0x10] {
            assert_eq!(peek(addr), 0, "{addr:#x}");
        }
        s.close(&rm);
    }
}

/// There is no GT200 debugger on a Tegra. The library answers from the kernel's records.
mod c11_debugger {
    use super::*;

    #[test]
    fn a_debugger_answers_from_the_kernels_records() {
        let mut d = desktop();
        let c = d.channels();
        let mut p = NV83DE_ALLOC_PARAMETERS::new_zeroed();
        (p.hAppClient, p.hClass3dObject) = (d.client, c.channels[0]);
        let debugger = d.alloc_with(d.device, GT200_DEBUGGER, &mut p);
        let mut q = NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS::new_zeroed();
        (q.hTargetChannel, q.numSMsToRead) = (c.channels[0], 100);
        assert_eq!(d.control(debugger, NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES, &mut q), NV_OK);
        assert_eq!(q.mmuFault.valid, 0, "nothing has happened");
    }
}

/// Doorbell stores do not pass through the library.
mod c13_ordering {
    use super::*;

    #[test]
    fn submitting_makes_no_call() {
        let kmd = board(L4t::R36);
        let counting = Arc::new(Counting::over(kmd.clone()));
        let mut d = Desktop::over(kmd, Arc::new(manager(counting.clone())));
        let mut c = d.channels();
        let (_push, push_va, push) = d.shared(PAGE);
        let (_semaphore, semaphore_va, semaphore) = d.shared(PAGE);
        let before = counting.calls.load(Ordering::Relaxed);
        for value in 1..=20 {
            let words = release(semaphore_va, value);
            words.iter().enumerate().for_each(|(n, word)| push.write_u32(n * 4, *word));
            c.submit(1, push_va, words.len() as u32);
            await_word(&semaphore, 0, value);
        }
        assert_eq!(counting.calls.load(Ordering::Relaxed), before);
    }
}
