//! Conflicts C8, C9, C10 and C14: memory, its owners and its lifetime.

use super::*;

fn describe(rm: &Rm, s: &Session, pages: &Pages, len: u64) -> tegrarm::status::RmResult<u32> {
    let request = MemoryRequest {
        class: NV01_MEMORY_SYSTEM_OS_DESCRIPTOR,
        flags: 0x4000_1010,
        address: pages.at,
        limit: len - 1,
    };
    rm.alloc_memory(s.client, s.device, 0, &request).map(|(handle, _)| handle)
}

/// Contiguity and page size have no meaning behind an SMMU. The CPU attribute is fixed before a client asks for it.
mod c08_attributes {
    use super::*;

    #[test]
    fn memory_is_there_when_its_allocation_says_so() {
        let d = desktop();
        let mut p = NV_MEMORY_ALLOCATION_PARAMS::new_zeroed();
        (p.size, p.attr, p.attr2, p.flags) = (1 << 40, 0x1000_0000, 5, 0x1_c101);
        let refused = d.try_alloc(d.device, 0, NV01_MEMORY_LOCAL_USER, &raw mut p as u64);
        assert_eq!(refused.status, NV_ERR_NO_MEMORY, "the one status that frontends answer by freeing");
        (p.size, p.alignment) = (8 * MIB, 2 * MIB);
        assert_eq!(
            d.try_alloc(d.device, 0, NV01_MEMORY_LOCAL_USER, &raw mut p as u64).status,
            NV_OK,
            "contiguity is ignored"
        );
    }

    #[test]
    fn the_cpu_attribute_follows_the_first_cpu_mapping_of_an_unused_buffer() {
        for l4t in releases(&RELEASES) {
            let faulty = Arc::new(Faulty::new(board(l4t)));
            let rm = Rm::new(faulty.clone(), CacheMode::WriteCombine);
            let s = Session::open(&rm).unwrap();
            let plain = |size| {
                let mut params = NV_MEMORY_ALLOCATION_PARAMS::new_zeroed();
                params.size = size;
                rm.make_with(s.client, s.device, NV01_MEMORY_LOCAL_USER, &mut params).unwrap()
            };
            let cost_of_map = |memory| {
                faulty.count(CallKind::Any);
                s.map_cpu(&rm, memory, MIB).unwrap();
                faulty.calls()
            };
            assert_eq!(cost_of_map(plain(MIB)), 5, "CREATE, ALLOC with the other attribute, FREE, GET_FD, mmap");
            assert_eq!(cost_of_map(s.memory(&rm, MIB).unwrap()), 2, "GET_FD, mmap: the client named the attribute");
            let used = plain(MIB);
            s.map_gpu(&rm, used, MIB).unwrap();
            assert_eq!(cost_of_map(used), 1, "mmap: the GPU may have written to it already");
            let twice = plain(MIB);
            cost_of_map(twice);
            assert_eq!(cost_of_map(twice), 1, "mmap: it has the attribute");
            s.close(&rm);
        }
    }
}

/// A frontend registers its own pages: fresh pages are exchanged in place, and others are pinned.
mod c09_own_pages {
    use super::*;

    #[test]
    fn own_pages_are_exchanged_when_fresh_and_pinned_otherwise() {
        let mut d = desktop();
        let va = d.low_va(16 * PAGE);
        let anonymous = raw_mmap(Some(va), 16 * PAGE, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1);
        anonymous.write_u32(5 * PAGE as usize, 0xfeed);
        let before = inode_at(va);
        assert_eq!(d.own_pages(va, 16 * PAGE, 0x1001), (NV_OK, 0x1001), "the client's own handle");
        assert_ne!(inode_at(va), before, "exchanged in place");
        assert_eq!(anonymous.read_u32(5 * PAGE as usize), 0xfeed, "contents and all");
        assert_eq!(d.range(va, 16 * PAGE), NV_OK);
        assert_eq!(d.map_external(0x1001, va, 16 * PAGE, 0), NV_OK);

        let mut path = std::env::temp_dir();
        path.push(format!("tegrarm-c09-{}", std::process::id()));
        let file = std::fs::File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        file.set_len(4 * PAGE).unwrap();
        let at = d.low_va(4 * PAGE);
        let backed = raw_mmap(Some(at), 4 * PAGE, libc::MAP_SHARED, file.as_raw_fd());
        backed.write_u32(0, 0xbeef);
        let inode = inode_at(at);
        assert_eq!(d.own_pages(at, 4 * PAGE, 0x1002).0, NV_OK);
        assert_eq!(inode_at(at), inode, "a file stays mapped");
        std::fs::remove_file(path).unwrap();
        let high = raw_mmap(None, 4 * PAGE, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1);
        let high_va = high.mapping().addr() as u64;
        let inode = inode_at(high_va);
        assert_eq!(d.own_pages(high_va, 4 * PAGE, 0x1003).0, NV_OK);
        assert_eq!(inode_at(high_va), inode, "pages the GPU cannot have at their address are nobody's staging buffer");
        assert_eq!(d.range(high_va, 4 * PAGE), NV_ERR_OUT_OF_RANGE);
        assert_eq!(d.own_pages(va + 8, PAGE, 0).0, NV_ERR_NOT_SUPPORTED);
        assert_eq!(d.own_pages(va, 0, 0).0, NV_ERR_INVALID_LIMIT);
        assert_eq!(d.uvm_free(va, 16 * PAGE), NV_OK, "such objects are never freed by handle");
    }

    #[test]
    fn fresh_anonymous_shared_pages_are_exchanged_in_place() {
        for l4t in releases(&RELEASES) {
            let kmd = board(l4t);
            let rm = manager(kmd.clone());
            let s = Session::open(&rm).unwrap();
            let len = 2 * MIB;
            // tinygrad has its first staging buffer at this address.
            let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
            let pages = Pages::new(0x20_0600_0000, len as usize, prot, flags, -1);
            assert_eq!(pages.file(), "/dev/zero (deleted)");
            poke(pages.at, 0xabcd);
            poke(pages.at + len - 4, 0xef01);
            let used = kmd.held(|c| c.memory);
            let memory = describe(&rm, &s, &pages, len).unwrap();
            assert!(pages.file().contains("dmabuf"), "{}", pages.file());
            assert_eq!((peek(pages.at), peek(pages.at + len - 4)), (0xabcd, 0xef01), "contents stay");
            kmd.assert_held(|c| c.memory, used, len, "the buffer");
            s.map_gpu(&rm, memory, len).unwrap();
            assert_eq!(status(s.map_cpu(&rm, memory, len)), NV_ERR_NOT_SUPPORTED, "the client has its pointer");
            s.close(&rm);
            // The range belongs to the client and stays when the object is freed.
            poke(pages.at, 0x55);
            assert_eq!((peek(pages.at), peek(pages.at + len - 4)), (0x55, 0xef01));
        }
    }

    #[test]
    fn other_pages_are_pinned_as_they_are() {
        let kmd = simulated(default_release());
        let rm = manager(kmd.clone());
        let s = Session::open(&rm).unwrap();
        let path = std::env::temp_dir().join(format!("tegrarm-conflicts-{}", std::process::id()));
        let file = std::fs::File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.set_len(2 * PAGE).unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let backed = Pages::new(0, 2 * PAGE as usize, both, libc::MAP_SHARED, fd);
        let private = Pages::anonymous(2 * PAGE as usize, libc::MAP_PRIVATE);
        // These pages lie above every GPU address, so they cannot have the same address on the GPU, and an exchange
        // would gain nothing.
        let high = Pages::anonymous(2 * PAGE as usize, libc::MAP_SHARED);
        for pages in [&backed, &private, &high] {
            poke(pages.at + 8, 0x77);
            let before = pages.file();
            let memory = describe(&rm, &s, pages, 2 * PAGE).unwrap();
            assert_eq!(pages.file(), before, "left in place");
            s.map_gpu(&rm, memory, 2 * PAGE).unwrap();
            rm.free(s.client, memory).unwrap();
            assert_eq!(peek(pages.at + 8), 0x77);
        }
        let read_only = Pages::new(0, PAGE as usize, libc::PROT_READ, libc::MAP_SHARED, fd);
        assert_eq!(status(describe(&rm, &s, &read_only, PAGE)), NV_ERR_INVALID_ADDRESS);
        let misaligned = Pages { at: private.at + 1, len: 0 };
        assert_eq!(status(describe(&rm, &s, &misaligned, PAGE)), NV_ERR_NOT_SUPPORTED);
        std::mem::forget(misaligned);
        s.close(&rm);
    }
}

/// A client makes two notifiers of 48 MiB that it never uses.
mod c10_notifiers {
    use super::*;

    #[test]
    fn notifiers_cost_a_page_until_somebody_looks() {
        let mut d = desktop();
        let before = d.kmd.held(|c| c.memory);
        let notifiers = [d.notifier(), d.notifier()];
        let costs = |d: &Desktop, bytes, why| d.kmd.assert_held(|c| c.memory, before, bytes, why);
        costs(&d, 2 * PAGE, "two of them");
        let va = 0x40_0000_0000;
        for (i, notifier) in notifiers.iter().enumerate() {
            let va = va + i as u64 * 48 * MIB;
            assert_eq!(d.range(va, 48 * MIB), NV_OK);
            assert_eq!(d.map_dma(*notifier, va, 48 * MIB), NV_OK);
            assert_eq!(d.map_external(*notifier, va, 48 * MIB, 0), NV_OK);
        }
        costs(&d, 2 * PAGE, "mapped, not touched");
        let ctl = d.node("/dev/nvidiactl");
        assert_eq!(d.lend(notifiers[0], 0, 48 * MIB, ctl), NV_OK);
        let view = raw_mmap(None, 48 * MIB, libc::MAP_SHARED, ctl);
        d.door.close(ctl).unwrap();
        costs(&d, 48 * MIB + PAGE, "one of them is looked at");
        // The view shows what the GPU writes at its address: the mapping that was made before got memory.
        let mut c = d.channels();
        let (_push, push_va, push) = d.shared(PAGE);
        let words = release(va + 40 * MIB, 0x77);
        words.iter().enumerate().for_each(|(n, word)| push.write_u32(n * 4, *word));
        c.submit(0, push_va, words.len() as u32);
        await_word(&view, 40 << 20, 0x77);
    }

    #[test]
    fn a_notifier_costs_a_page_until_somebody_needs_all_of_it() {
        let kmd = board(default_release());
        let rm = manager(kmd.clone());
        let s = Session::open(&rm).unwrap();
        let size = 48 * MIB;
        let before = kmd.held(|c| c.memory);
        let costs = |bytes, why: &str| kmd.assert_held(|c| c.memory, before, bytes, why);
        let notifier = || {
            let mut params = NV_MEMORY_ALLOCATION_PARAMS::new_zeroed();
            (params.size, params.type_) = (size, NVOS32_TYPE_NOTIFIER);
            let handle = rm.make_with(s.client, s.device, NV01_MEMORY_SYSTEM, &mut params).unwrap();
            assert_eq!(params.limit, size - 1, "it says it has what was asked for");
            handle
        };
        let mapped = notifier();
        costs(PAGE, "one page");
        s.map_gpu(&rm, mapped, size).unwrap();
        costs(PAGE, "the GPU sees one page and nothing behind it");
        let cpu = s.map_cpu(&rm, mapped, size).unwrap() as u64;
        costs(size, "all of it, and the page goes: no channel writes to it");
        for offset in [0, size / 2, size - 4] {
            assert_eq!(peek(cpu + offset), 0);
            poke(cpu + offset, 0x1234);
            assert_eq!(peek(cpu + offset), 0x1234);
        }
        rm.free(s.client, mapped).unwrap();
        costs(0, "nothing left");
        let original = notifier();
        let copy = rm.dup_object(s.client, s.device, 0, s.client, original).unwrap();
        costs(PAGE, "two handles of one content");
        rm.free(s.client, original).unwrap();
        let cpu = s.map_cpu(&rm, copy, size).unwrap() as u64;
        poke(cpu + size - 4, 1);
        costs(size, "all of it");
        s.close(&rm);
        costs(0, "nothing left");
        // A whole bring-up has one such notifier.
        let b = Bringup::open(&rm).unwrap();
        let used = kmd.held(|c| c.memory).zip(before).map_or(0, |(now, before)| now - before);
        assert!(used < 48 * MIB, "{used:#x}");
        b.s.close(&rm);
    }

    /// A channel's notifier is one page when the channel starts to use it. It grows when the client maps it, and the
    /// CPU still sees what the kernel writes there.
    #[test]
    fn a_live_channels_notifier_grows_under_it() {
        let kmd = simulated(default_release());
        let rm = manager(kmd.clone());
        let b = Bringup::open(&rm).unwrap();
        let (s, size) = (b.s, 48 * MIB);
        let before = kmd.kernel().census().memory;
        let used = || kmd.kernel().census().memory - before;
        let view = s.map_cpu(&rm, b.notifier, size).unwrap() as u64;
        assert_eq!(used(), size, "all of it, beside the page that the kernel knows");
        let second = s.map_cpu(&rm, b.notifier, PAGE).unwrap() as u64;
        // An NvNotification has the time stamp, info32 at 8, info16, and the status at 14.
        assert_eq!((peek(view + 8), peek(view + size - 4)), (0, 0));
        poke(view + size - 4, 0x600d);
        poke(view + PAGE, 0x600e);
        // The entry points to four words of commands at an address where nothing is mapped.
        let entry = 0x12_3456_7000_u64 | 4 << 42;
        let (ring, userd) = (b.area_cpu as u64 + PLACES[0].0, b.area_cpu as u64 + PLACES[0].1);
        poke(ring, entry as u32);
        poke(ring + 4, (entry >> 32) as u32);
        poke(userd + 0x8c, 1);
        std::sync::atomic::fence(Ordering::SeqCst);
        poke(b.doorbell as u64 + 0x90, b.tokens[0]);
        while peek(view + 12) >> 16 != 0xffff {
            std::thread::yield_now();
        }
        const MMU_FAULT: u32 = 31;
        assert_eq!((peek(view + 8), peek(second + 8)), (MMU_FAULT, MMU_FAULT));
        let late = s.map_cpu(&rm, b.notifier, size).unwrap() as u64;
        assert_eq!(peek(late + 8), MMU_FAULT, "a view that is made afterwards shows it too");
        assert_eq!((peek(late + PAGE), peek(late + size - 4)), (0x600e, 0x600d), "the rest is the client's");
        s.close(&rm);
        assert_eq!(kmd.kernel().census().memory, 0, "nothing stays");
    }
}

/// RM_FREE comes before UVM_FREE, and there are thousands of buffers. The library therefore keeps handles and not
/// descriptors.
mod c14_lifetime {
    use super::*;

    #[test]
    fn memory_outlives_its_handle_until_uvm_lets_go() {
        let mut d = desktop();
        let mut c = d.channels();
        let (_push, push_va, push) = d.shared(PAGE);
        let (semaphore, semaphore_va, view) = d.shared(PAGE);
        let handles = d.kmd.held(|c| c.handles as u64);
        assert_eq!(d.free(semaphore), NV_OK);
        d.kmd.assert_held(|c| c.handles as u64, handles, 0, "UVM has a reference of its own");
        let words = release(semaphore_va, 0x14);
        words.iter().enumerate().for_each(|(n, word)| push.write_u32(n * 4, *word));
        c.submit(0, push_va, words.len() as u32);
        await_word(&view, 0, 0x14);
        assert_eq!(d.uvm_free(semaphore_va + PAGE, PAGE), NV_ERR_INVALID_ADDRESS);
        assert_eq!(d.uvm_free(semaphore_va, PAGE), NV_OK);
        assert_eq!(d.kmd.held(|c| c.handles as u64), handles.map(|h| h - 1));
        assert_eq!(d.map_external(semaphore, semaphore_va, PAGE, 0), NV_ERR_INVALID_ADDRESS, "no range any more");
    }

    #[test]
    fn buffers_are_held_by_handle_not_by_descriptor() {
        let kmd = board(L4t::R36);
        let counting = Arc::new(Counting::over(kmd.clone()));
        let d = Desktop::over(kmd.clone(), Arc::new(manager(counting.clone())));
        let base = 0x50_0000_0000;
        let files = kmd.held(|c| c.files as u64);
        for i in 0..2000 {
            let (memory, va) = (d.memory(PAGE), base + i * PAGE);
            assert_eq!(d.range(va, PAGE), NV_OK);
            assert_eq!(d.map_external(memory, va, PAGE, 0), NV_OK);
        }
        let open = counting.made.load(Ordering::Relaxed) - counting.closed.load(Ordering::Relaxed);
        assert!(open <= 20, "{open} descriptors for 2000 buffers");
        let more = kmd.held(|c| c.files as u64).zip(files).map_or(0, |(now, before)| now - before);
        assert!(more <= 20, "{more} files");
        assert!(kmd.census().is_none_or(|c| c.handles >= 2000));
    }

    #[test]
    fn thousands_of_live_buffers_hold_no_descriptors() {
        const ROLE: &str = "TEGRARM_TEST_CONFLICTS_ROLE";
        if std::env::var_os(ROLE).is_some() {
            return hold_thousands_of_buffers();
        }
        // The test needs a process of its own, because it uses up the descriptors that the simulator may use.
        let mut child = std::process::Command::new(std::env::current_exe().expect("this program"));
        child
            .args(["memory::c14_lifetime::thousands_of_live_buffers_hold_no_descriptors", "--exact", "--nocapture"])
            .env(ROLE, "1");
        let output = child.output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn hold_thousands_of_buffers() {
        const BUFFERS: u64 = 20_000;
        /// The usual limit of open descriptors.
        const LIMIT: u64 = 1024;
        let limit = libc::rlimit { rlim_cur: LIMIT, rlim_max: LIMIT };
        // SAFETY: the call only reads the structure.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
        let held = || std::fs::read_dir("/proc/self/fd").expect("proc").count();
        let rm = manager(simulated(default_release()));
        let s = Session::open(&rm).unwrap();
        let mut made = Vec::new();
        for i in 0..BUFFERS {
            let memory = s.memory(&rm, PAGE).unwrap_or_else(|e| panic!("buffer {i}: {e}"));
            s.map_gpu(&rm, memory, PAGE).unwrap_or_else(|e| panic!("buffer {i}: {e}"));
            made.push(memory);
            if i == 1000 {
                assert!(held() < 700, "{} descriptors after a thousand buffers", held());
            }
        }
        assert!(held() < 700, "{} descriptors for {BUFFERS} buffers", held());
        // Every one of them is still a buffer of its own and can be mapped.
        let views: Vec<u64> = made.iter().step_by(997).map(|m| s.map_cpu(&rm, *m, PAGE).unwrap() as u64).collect();
        views.iter().for_each(|at| poke(*at, *at as u32));
        assert!(views.iter().all(|at| peek(*at) == *at as u32));
        s.close(&rm);
        assert!(held() < 100, "{} descriptors when they are freed", held());
    }
}
