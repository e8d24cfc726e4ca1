//! Controls that change the machine: their effects, and that the effects are undone.

use crate::common::*;
use std::sync::{Arc, Mutex};
use tegra_sim::{Chip, L4t, SimConfig, SimKmd};
use tegrarm_abi::nvgpu::ctrl::NVGPU_GPU_IOCTL_FLUSH_L2;
use tegrarm_abi::rm::ctrl_2080::*;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::{Kmd, Traced};
use zerocopy::FromZeros;

/// Every kernel.
const RELEASES: [L4t; 4] = L4t::ALL;

/// A virtual board of this process for one test only, also when the other tests use the device nodes: a write to its
/// devfreq files takes effect before it returns.
fn simulated(l4t: L4t) -> Arc<SimKmd> {
    let config = SimConfig { mem_total: 512 * MIB, ..SimConfig::new(Chip::AgxOrin).on(l4t) };
    Arc::new(SimKmd::new(config))
}

#[test]
fn perf_boost_raises_the_lowest_clock_until_it_is_cleared_or_the_library_ends() {
    for l4t in RELEASES {
        let kmd = simulated(l4t);
        let read = |name: &str| {
            let paths = kmd.kernel().text_paths();
            let path = paths.iter().find(|p| p.ends_with(name)).expect("devfreq");
            kmd.read_text(path).expect("readable").trim().to_owned()
        };
        let rm = manager(kmd.clone());
        let s = Session::open(&rm).unwrap();
        let boost = |command| {
            let mut params = NV2080_CTRL_PERF_BOOST_PARAMS { flags: command, duration: u32::MAX };
            rm.ask(s.client, s.subdevice, NV2080_CTRL_CMD_PERF_BOOST, &mut params)
        };
        let (min, max) = (read("min_freq"), read("max_freq"));
        assert_ne!(min, max);
        boost(NV2080_CTRL_PERF_BOOST_FLAGS_CMD_BOOST_TO_MAX).unwrap();
        boost(NV2080_CTRL_PERF_BOOST_FLAGS_CMD_BOOST_1LEVEL).unwrap();
        assert_eq!(read("min_freq"), max);
        boost(NV2080_CTRL_PERF_BOOST_FLAGS_CMD_CLEAR).unwrap();
        assert_eq!(read("min_freq"), min);
        assert_eq!(status(boost(3)), NV_ERR_INVALID_ARGUMENT);
        boost(NV2080_CTRL_PERF_BOOST_FLAGS_CMD_BOOST_TO_MAX).unwrap();
        rm.shutdown();
        assert_eq!(read("min_freq"), min);
        // At the end of the process nothing is freed, but the clock is set back.
        let s = Session::open(&rm).unwrap();
        let mut params = NV2080_CTRL_PERF_BOOST_PARAMS { flags: 2, duration: 1 };
        rm.ask(s.client, s.subdevice, NV2080_CTRL_CMD_PERF_BOOST, &mut params).unwrap();
        assert_eq!(read("min_freq"), max);
        rm.at_exit();
        assert_eq!(read("min_freq"), min);
    }
}

#[test]
fn flushing_the_cache_makes_the_kernel_flush_it() {
    /// The first frontend asks for this between benchmarks: write back, invalidate, and the whole cache.
    const USUAL: u32 = 1 << 2 | 1 << 3 | 1 << 4;
    let flushes: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = flushes.clone();
    let kmd = Traced::with_observer(board(default_release()), move |event| {
        if event.request == NVGPU_GPU_IOCTL_FLUSH_L2 {
            assert_eq!(event.result, Ok(0));
            let flags = event.before.iter().find(|f| f.name == "_flags").expect("flags");
            seen.lock().unwrap().push(flags.value.to_string());
        }
    });
    let rm = manager(Arc::new(kmd));
    let s = Session::open(&rm).unwrap();
    let flush = |flags| {
        let mut params = NV2080_CTRL_FB_FLUSH_GPU_CACHE_PARAMS::new_zeroed();
        params.flags = flags;
        rm.ask(s.client, s.subdevice, NV2080_CTRL_CMD_FB_FLUSH_GPU_CACHE, &mut params)
    };
    flush(USUAL).unwrap();
    flush(1 << 2 | 1 << 4).unwrap();
    flush(1 << 5).unwrap();
    assert_eq!(status(flush(1 << 4)), NV_ERR_INVALID_ARGUMENT, "nothing to do with the whole cache");
    // These are the bits of nvgpu for flush, invalidate and FB flush.
    assert_eq!(*flushes.lock().unwrap(), ["3", "1", "4"]);
    s.close(&rm);
}
