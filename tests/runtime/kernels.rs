//! The runtime's answers about kernels, through the C functions: attributes, parameters, occupancy, refused launches
//! with the number of the wrong parameter, and the stack of threads.
#![cfg(feature = "sim")]
#![allow(unsafe_code)] // calls what C calls

use crate::common::{cubin, last_sentence, launch_config, note, open_c_device, shows};
use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};
use std::time::Duration;
use tegrarm::capi::runtime::device::*;
use tegrarm::capi::runtime::kernels::*;
use tegrarm::capi::runtime::launch::*;
use tegrarm::capi::runtime::launch_now::*;
use tegrarm::capi::runtime::limits::*;
use tegrarm::capi::runtime::modules::*;
use tegrarm::capi::runtime::opaque::{tegrarm_device, tegrarm_kernel};
use tegrarm::capi::runtime::queues::*;
use tegrarm::runtime::launch::{Dim3, Launch, Limits, most_dynamic_shared, most_threads};
use tegrarm_abi::rm::status::*;
use tegrarm_images::cubin::{Cubin, Kernel};

const STACK: u32 = tegrarm_limit::TEGRARM_LIMIT_STACK_SIZE as u32;
const HEAP: u32 = tegrarm_limit::TEGRARM_LIMIT_HEAP_SIZE as u32;
const PRINTF: u32 = tegrarm_limit::TEGRARM_LIMIT_PRINTF_SIZE as u32;

fn kernel(device: *mut tegrarm_device, file: &str, name: &str) -> *mut tegrarm_kernel {
    let (image, name) = (cubin(file), CString::new(name).unwrap());
    let (mut module, mut kernel) = (null_mut(), null_mut());
    // SAFETY: all pointers point to variables of this function.
    unsafe {
        assert_eq!(tegrarm_module_load(device, image.as_ptr().cast(), image.len(), &mut module), NV_OK);
        assert_eq!(tegrarm_module_kernel(module, name.as_ptr(), &mut kernel), NV_OK, "{}", last_sentence());
    }
    kernel
}

fn attributes(kernel: *mut tegrarm_kernel) -> tegrarm_kernel_attributes {
    // SAFETY: zero is a valid value of every field.
    let mut a: tegrarm_kernel_attributes = unsafe { std::mem::zeroed() };
    a.size = size_of::<tegrarm_kernel_attributes>();
    // SAFETY: the size field has the size of the structure.
    assert_eq!(unsafe { tegrarm_kernel_attributes(kernel, &mut a) }, NV_OK, "{}", last_sentence());
    a
}

/// The attributes agree with those that the compiler's own tool reports. They are in a file beside the cubin.
#[test]
fn attributes_are_those_of_the_cubin() {
    let _shown = shows(&[NV_ERR_INVALID_INDEX]);
    let device = open_c_device();
    let all: serde_json::Value = serde_json::from_slice(&cubin("described.json")).unwrap();
    for (name, kernels) in
        [("vecadd", ["vecadd", "scale"]), ("shared", ["reduce", "mixed"]), ("calls", ["array", "direct"])]
    {
        let told = &all[format!("{name}.nvrtc")];
        for k in kernels {
            let (told, handle) = (&told["kernels"][k], kernel(device, &format!("{name}.nvrtc.cubin"), k));
            let a = attributes(handle);
            let number = |key: &str| told[key].as_u64().unwrap();
            assert_eq!(u64::from(a.registers), number("registers"), "{k}");
            assert_eq!(u64::from(a.shared_size), number("shared"), "{k}");
            assert_eq!((a.code_size, u64::from(a.parameter_size)), (number("size"), number("parameter_size")), "{k}");
            let parameters = told["parameters"].as_array().unwrap();
            assert_eq!(a.parameters as usize, parameters.len(), "{k}");
            assert_eq!(a.code_address % 128, 0, "{k}");
            assert!(a.stack_size <= a.local_size && a.size == size_of_val(&a), "{k}");
            for (index, wanted) in parameters.iter().enumerate() {
                let (mut offset, mut size) = (0, 0);
                // SAFETY: both pointers point to variables of this function.
                let status = unsafe { tegrarm_kernel_parameter(handle, index as u32, &mut offset, &mut size) };
                assert_eq!(status, NV_OK);
                assert_eq!(
                    [u64::from(offset), u64::from(size)],
                    [1, 2].map(|i| wanted[i].as_u64().unwrap()),
                    "{k} {index}"
                );
            }
            // SAFETY: NULL is allowed.
            let beyond = unsafe { tegrarm_kernel_parameter(handle, a.parameters, null_mut(), null_mut()) };
            assert_eq!(note(beyond), NV_ERR_INVALID_INDEX);
        }
    }
    assert_eq!(attributes(kernel(device, "calls.jit.cubin", "recursive")).stack_size, TEGRARM_STACK_UNKNOWN);
    tegrarm_device_close(device);
}

/// A program that was compiled with a shorter structure gets the fields that it knows, and no byte behind them is
/// changed.
#[test]
fn structures_of_another_age_are_filled_as_far_as_they_go() {
    let device = open_c_device();
    let k = kernel(device, "vecadd.nvrtc.cubin", "vecadd");
    let mut old = [usize::MAX; 4];
    old[0] = 16;
    // SAFETY: the size field says that there are 16 bytes, and there are more.
    assert_eq!(unsafe { tegrarm_kernel_attributes(k, old.as_mut_ptr().cast()) }, NV_OK);
    assert_eq!((old[0], old[1] as u32, old[2..].to_vec()), (16, attributes(k).registers, vec![usize::MAX; 2]));
    old[0] = 4;
    // SAFETY: the same as above.
    assert_eq!(unsafe { tegrarm_kernel_attributes(k, old.as_mut_ptr().cast()) }, NV_ERR_INVALID_PARAM_STRUCT);
    // SAFETY: NULL is refused.
    assert_eq!(unsafe { tegrarm_kernel_attributes(k, null_mut()) }, NV_ERR_INVALID_POINTER);
    tegrarm_device_close(device);
}

/// The numbers are those of CUDA's occupancy calculator for compute capability 8.7.
#[test]
fn blocks_at_once_are_what_the_limits_allow() {
    let cubin = Cubin::parse(&cubin("vecadd.nvrtc.cubin"), 87).unwrap();
    let any = Kernel { max_threads: None, required_block: None, ..cubin.kernels()[0].clone() };
    let with = |registers, shared| Kernel { registers, shared, ..any.clone() };
    let blocks = |kernel: &Kernel, threads, dynamic_shared| {
        let launch = Launch { grid: Dim3::new(1, 1, 1), block: Dim3::new(threads, 1, 1), dynamic_shared };
        launch.check(kernel, &Limits::ORIN, kernel.local_memory()).unwrap();
        launch.blocks_at_once(kernel, &Limits::ORIN)
    };
    for (registers, shared, threads, dynamic, wanted) in [
        (16, 0, 32, 0, 16), // limited by blocks
        (32, 0, 256, 0, 6), // warps: 48 / 8
        (32, 0, 1024, 0, 1),
        (33, 0, 256, 0, 6),  // 12 warps in each part of an SM
        (128, 0, 256, 0, 2), // registers: 4 warps in each part
        (255, 0, 256, 0, 1),
        (168, 0, 96, 0, 4),        // 3 warps in each part
        (32, 48 << 10, 128, 0, 3), // shared memory: 49 KiB of 164
        (32, 0, 128, 163 << 10, 1),
        (32, 1000, 128, 1000, 12), // 2048 + 1024 bytes: 53; warps decide
    ] {
        assert_eq!(
            blocks(&with(registers, shared), threads, dynamic),
            wanted,
            "{registers} {shared} {threads} {dynamic}"
        );
    }
    let threads = |registers| most_threads(&with(registers, 0), &Limits::ORIN);
    assert_eq!([16, 64, 65, 128, 168, 255].map(threads), [1024, 1024, 896, 512, 384, 256]);
    let bounded = Kernel { max_threads: Some(96), ..with(16, 0) };
    assert_eq!(most_threads(&bounded, &Limits::ORIN), 96);
    // The largest dynamic size is accepted, and one unit more is refused.
    for shared in [0, 1, 128, 1000, 48 << 10] {
        let (kernel, most) = (with(32, shared), most_dynamic_shared(&with(32, shared), &Limits::ORIN));
        let launch = |dynamic_shared| Launch { grid: Dim3::new(1, 1, 1), block: Dim3::new(32, 1, 1), dynamic_shared };
        assert!(launch(most).check(&kernel, &Limits::ORIN, 4096).is_ok(), "{shared} {most}");
        assert!(launch(most + 1).check(&kernel, &Limits::ORIN, 4096).is_err(), "{shared} {most}");
    }
}

#[test]
fn wrong_arguments_are_refused_with_the_number_of_the_parameter() {
    let device = open_c_device();
    let k = kernel(device, "vecadd.nvrtc.cubin", "vecadd");
    let (nothing, count) = (0u64, 0u32);
    let pointer = (&raw const nothing).cast::<c_void>();
    let mut arguments = [pointer, pointer, pointer, (&raw const count).cast()];
    let (one, warp) = ([1u32, 1, 1], [32u32, 1, 1]);
    let launch = |arguments: &[*const c_void], count, grid: &[u32; 3]| {
        // SAFETY: all pointers point to variables of this function, and NULL pointers are refused.
        unsafe { tegrarm_launch(null_mut(), k, &launch_config(*grid, warp), arguments.as_ptr(), count, null_mut()) }
    };
    let checked = |param_sizes: *const usize, count, flags, grid: &[u32; 3]| {
        let config = tegrarm_launch_config { param_sizes, flags, ..launch_config(*grid, warp) };
        // SAFETY: the same as above.
        unsafe { tegrarm_launch(null_mut(), k, &config, arguments.as_ptr(), count, null_mut()) }
    };
    assert_eq!(launch(&arguments, 3, &one), NV_ERR_INVALID_ARGUMENT);
    assert!(
        last_sentence().contains("3 arguments for 4 parameters; parameter 3 is the first without one"),
        "{}",
        last_sentence()
    );
    assert_eq!(launch(&arguments, 5, &one), NV_ERR_INVALID_ARGUMENT);
    assert!(last_sentence().contains("there is no parameter 4"), "{}", last_sentence());

    let right = [8usize, 8, 8, 4];
    for (index, wrong) in [(0, 4), (3, 8), (2, usize::MAX), (1, 0)] {
        let mut sizes = right;
        sizes[index] = wrong;
        assert_eq!(checked(sizes.as_ptr(), 4, 0, &one), NV_ERR_INVALID_ARGUMENT);
        assert!(
            last_sentence().contains(&format!("argument {index} has {wrong} bytes, the parameter {}", right[index])),
            "{}",
            last_sentence()
        );
    }
    assert_eq!(checked(null(), 4, 0, &one), NV_OK, "without sizes nothing is compared");
    assert_eq!(checked(right.as_ptr(), 3, 0, &one), NV_ERR_INVALID_ARGUMENT);
    assert_eq!(checked(right.as_ptr(), 4, 2, &one), NV_ERR_INVALID_ARGUMENT, "an unknown flag");
    assert_eq!(checked(right.as_ptr(), 4, 0, &one), NV_OK, "{}", last_sentence());

    // A cooperative launch has all its blocks running at once: as many as the SMs have room for, and not one more.
    let mut each = 0;
    // SAFETY: both pointers point to variables of this function.
    assert_eq!(unsafe { tegrarm_kernel_occupancy(k, warp.as_ptr(), 0, &mut each) }, NV_OK);
    assert_eq!(each, 16);
    // SAFETY: the same as above.
    let refused = unsafe { tegrarm_kernel_occupancy(k, [2048u32, 1, 1].as_ptr(), 0, &mut each) };
    assert_eq!(refused, NV_ERR_INVALID_ARGUMENT);
    let most = each * 16;
    assert_eq!(checked(right.as_ptr(), 4, TEGRARM_LAUNCH_COOPERATIVE, &[most, 1, 1]), NV_OK, "{}", last_sentence());
    assert_eq!(checked(right.as_ptr(), 4, TEGRARM_LAUNCH_COOPERATIVE, &[most + 1, 1, 1]), NV_ERR_INVALID_ARGUMENT);
    assert!(last_sentence().contains("room for 16 each"), "{}", last_sentence());
    assert_eq!(checked(right.as_ptr(), 4, 0, &[most + 1, 1, 1]), NV_OK);

    arguments[2] = null();
    assert_eq!(launch(&arguments, 4, &one), NV_ERR_INVALID_POINTER);
    assert!(last_sentence().contains("kernel_params[2] is NULL"), "{}", last_sentence());
    tegrarm_device_close(device);
}

/// A structure of a later version, which has more fields than this one.
#[repr(C)]
struct Later<T> {
    known: T,
    more: [u64; 2],
}

#[test]
fn a_configuration_of_a_later_version_is_taken_if_it_asks_for_nothing_new() {
    let device = open_c_device();
    let k = kernel(device, "vecadd.nvrtc.cubin", "vecadd");
    let (nothing, count) = (0u64, 0u32);
    let pointer = (&raw const nothing).cast::<c_void>();
    let arguments = [pointer, pointer, pointer, (&raw const count).cast()];
    let launch = |size, more| {
        let known = tegrarm_launch_config { size, ..launch_config([1, 1, 1], [32, 1, 1]) };
        let config = Later { known, more: [0, more] };
        // SAFETY: all pointers point to variables of this function, and the size is at most that of the longer structure or refused.
        unsafe { tegrarm_launch(null_mut(), k, (&raw const config).cast(), arguments.as_ptr(), 4, null_mut()) }
    };
    let own = size_of::<tegrarm_launch_config>();
    assert_eq!(own, 56, "no field may move");
    for (size, more, wanted) in [
        (own, 1, NV_OK), // what lies behind it is no part of it
        (own + 16, 0, NV_OK),
        (own + 16, 1, NV_ERR_LIB_RM_VERSION_MISMATCH),
        (own - 1, 0, NV_ERR_INVALID_PARAM_STRUCT),
        (0, 0, NV_ERR_INVALID_PARAM_STRUCT),
        (usize::MAX, 0, NV_ERR_INVALID_PARAM_STRUCT),
    ] {
        assert_eq!(launch(size, more), wanted, "{size} {more}: {}", last_sentence());
    }
    // The other structures that the library reads keep the same rule.
    // SAFETY: zero is a valid value of every field.
    let mut options = unsafe { std::mem::zeroed::<Later<tegrarm_queue_options>>() };
    (options.known.size, options.more[1]) = (size_of_val(&options), 1);
    let mut queue = null_mut();
    // SAFETY: both pointers point to variables of this function.
    let status = unsafe { tegrarm_queue_create(device, (&raw const options).cast(), &mut queue) };
    assert_eq!(status, NV_ERR_LIB_RM_VERSION_MISMATCH);
    // SAFETY: NULL is refused.
    let status = unsafe { tegrarm_launch(null_mut(), k, null(), arguments.as_ptr(), 4, null_mut()) };
    assert_eq!((status, last_sentence().as_str()), (NV_ERR_INVALID_POINTER, "config is NULL"));
    tegrarm_device_close(device);
}

/// Every queue takes a cooperative launch, and no queue one of another priority than its own.
#[test]
fn a_launch_is_cooperative_and_has_a_priority_on_every_queue() {
    let device = open_c_device();
    let k = kernel(device, "vecadd.nvrtc.cubin", "vecadd");
    let (nothing, count) = (0u64, 0u32);
    let pointer = (&raw const nothing).cast::<c_void>();
    let arguments = [pointer, pointer, pointer, (&raw const count).cast()];
    // SAFETY: zero is a valid value of every field.
    let mut options = unsafe { std::mem::zeroed::<tegrarm_queue_options>() };
    (options.size, options.priority) = (size_of::<tegrarm_queue_options>(), 3);
    let (mut own, mut high) = (null_mut(), null_mut());
    // SAFETY: all pointers point to variables of this function.
    unsafe {
        assert_eq!(tegrarm_device_queue(device, &mut own), NV_OK);
        assert_eq!(tegrarm_queue_create(device, &options, &mut high), NV_OK, "{}", last_sentence());
    }
    let mut fence = 0;
    let mut launch = |queue, grid, flags, priority, reserved| {
        let config = tegrarm_launch_config { flags, priority, reserved, ..launch_config([grid, 1, 1], [32, 1, 1]) };
        // SAFETY: all pointers point to variables of this function.
        let status = unsafe { tegrarm_launch(queue, k, &config, arguments.as_ptr(), 4, &mut fence) };
        (status, fence >> 48)
    };
    for (queue, number, priorities) in [(null_mut(), 0, [0, 1]), (own, 0, [0, 1]), (high, 1, [0, 3])] {
        for priority in 0..5 {
            let wanted = if priorities.contains(&priority) { NV_OK } else { NV_ERR_INVALID_ARGUMENT };
            let (status, of) = launch(queue, 256, TEGRARM_LAUNCH_COOPERATIVE, priority, 0);
            assert_eq!(status, wanted, "queue {number}, priority {priority}: {}", last_sentence());
            assert!(status != NV_OK || of == number);
        }
        assert_eq!(launch(queue, 257, TEGRARM_LAUNCH_COOPERATIVE, 0, 0).0, NV_ERR_INVALID_ARGUMENT);
        assert!(last_sentence().contains("257 blocks in a cooperative launch"), "{}", last_sentence());
        assert_eq!(launch(queue, 1, 0, 0, 1).0, NV_ERR_INVALID_ARGUMENT, "a reserved field");
        assert_eq!(launch(queue, 257, 0, 0, 0), (NV_OK, number));
    }
    assert_eq!(launch(high, 1, 0, 1, 0).0, NV_ERR_INVALID_ARGUMENT);
    assert!(last_sentence().contains("the queue has TEGRARM_PRIORITY_HIGH (3)"), "{}", last_sentence());
    let nobody = std::ptr::without_provenance_mut(0x1234);
    assert_eq!(launch(nobody, 1, 0, 0, 0).0, NV_ERR_OBJECT_NOT_FOUND);
    tegrarm_device_close(device);
}

/// A launch that takes nothing but stores: of sizes that the kernel had before, and nothing else.
#[test]
fn a_launch_now_does_all_or_nothing() {
    let _shown = shows(&[NV_ERR_BUSY_RETRY]);
    let (device, other) = (open_c_device(), open_c_device());
    let k = kernel(device, "vecadd.nvrtc.cubin", "vecadd");
    let (nothing, count) = (0u64, 0u32);
    let pointer = (&raw const nothing).cast::<c_void>();
    let arguments = [pointer, pointer, pointer, (&raw const count).cast()];
    let sizes = |grid| tegrarm_launch_sizes { grid_dim: [grid, 1, 1], block_dim: [32, 1, 1], shared_mem_bytes: 0 };
    let (two, three) = (sizes(2), sizes(3));
    let mut fence = 0u64;
    let mut now = |device, k, sizes: *const tegrarm_launch_sizes, arguments: *const *const c_void| {
        let before = fence;
        // SAFETY: all pointers are NULL or point to variables of this function.
        let status = note(unsafe { tegrarm_launch_now(device, k, sizes, arguments, &mut fence) });
        assert_eq!(status == NV_OK, fence != before);
        (status, fence)
    };
    let again = NV_ERR_BUSY_RETRY;
    assert_eq!(now(device, k, &two, arguments.as_ptr()).0, again, "it has never been launched");
    // A kernel has eight images of a launch at first, and the first launch of each writes it.
    let (config, mut first) = (launch_config([2, 1, 1], [32, 1, 1]), 0);
    for _ in 0..8 {
        // SAFETY: all pointers point to variables of this function.
        let status = unsafe { tegrarm_launch(null_mut(), k, &config, arguments.as_ptr(), 4, &mut first) };
        assert_eq!(status, NV_OK, "{}", last_sentence());
        assert_eq!(tegrarm_wait(device, first, TEGRARM_WAIT_FOREVER), NV_OK);
    }
    assert_eq!(now(device, k, &two, arguments.as_ptr()), (NV_OK, first + 1));
    for (device, k, sizes, arguments) in [
        (device, k, &raw const three, arguments.as_ptr()),
        (device, k, null(), arguments.as_ptr()),
        (device, k, &raw const two, null()),
        (device, k, &raw const two, [pointer, null(), pointer, pointer].as_ptr()),
        (other, k, &raw const two, arguments.as_ptr()),
        (null_mut(), k, &raw const two, arguments.as_ptr()),
        (device, null_mut(), &raw const two, arguments.as_ptr()),
        (device, std::ptr::without_provenance_mut(0x1234), &raw const two, arguments.as_ptr()),
    ] {
        assert_eq!(now(device, k, sizes, arguments).0, again);
    }
    assert_eq!(now(device, k, &two, arguments.as_ptr()), (NV_OK, first + 2));
    // SAFETY: NULL as the place of the fence is allowed, and the others point to variables of this function.
    assert_eq!(unsafe { tegrarm_launch_now(device, k, &two, arguments.as_ptr(), null_mut()) }, NV_OK);
    assert_eq!((tegrarm_device_close(other), tegrarm_device_close(device)), (NV_OK, NV_OK));
    assert_eq!(now(device, k, &two, arguments.as_ptr()).0, again, "the device is closed");
}

#[test]
fn the_stack_is_what_the_limit_says() {
    let device = open_c_device();
    let stack = || {
        let mut value = 0;
        // SAFETY: the pointer points to a variable of this function.
        assert_eq!(unsafe { tegrarm_device_limit(device, STACK, &mut value) }, NV_OK);
        value
    };
    let first = stack();
    let k = kernel(device, "calls.jit.cubin", "recursive");
    let run = || {
        let numbers = Box::new([20i32; 32]);
        let mut buffer = null_mut();
        let (mut pointer, mut address, mut fence) = (null_mut(), 0, 0);
        // SAFETY: all pointers point to variables of this function, and the buffer has 256 bytes.
        unsafe {
            use tegrarm::capi::runtime::buffers::*;
            assert_eq!(tegrarm_buffer_alloc(device, 256, 0, &mut buffer), NV_OK);
            assert_eq!(tegrarm_buffer_address(buffer, &mut pointer, &mut address), NV_OK);
            std::ptr::copy_nonoverlapping(numbers.as_ptr(), pointer.cast(), 32);
            let out = address + 128;
            let arguments = [(&raw const address).cast::<c_void>(), (&raw const out).cast()];
            let config = launch_config([1, 1, 1], [4, 1, 1]);
            let status = tegrarm_launch(null_mut(), k, &config, arguments.as_ptr(), 2, &mut fence);
            assert_eq!(status, NV_OK, "{}", last_sentence());
            assert_eq!(
                tegrarm_wait(device, fence, Duration::from_secs(60).as_nanos() as u64),
                NV_OK,
                "{}",
                last_sentence()
            );
            let found = pointer.cast::<i32>().add(32).read();
            assert_eq!(tegrarm_buffer_free(buffer), NV_OK);
            found
        }
    };
    assert_eq!(tegrarm_device_set_limit(device, STACK, 4000), NV_OK, "{}", last_sentence());
    assert!((4000..4032).contains(&stack()), "{}", stack());
    assert_eq!(run(), 6765);
    let large = stack();
    // The same limit can be set again. A smaller limit is accepted but never falls below the first one, and a kernel
    // gets the memory that it needs.
    assert_eq!((tegrarm_device_set_limit(device, STACK, large), stack()), (NV_OK, large));
    assert_eq!((tegrarm_device_set_limit(device, STACK, 0), stack()), (NV_OK, first));
    assert_eq!(run(), 6765);
    for absurd in [1 << 24, 1 << 32, 1 << 46, u64::MAX] {
        assert_eq!(tegrarm_device_set_limit(device, STACK, absurd), NV_ERR_INVALID_ARGUMENT, "{absurd:#x}");
    }
    let before = stack();
    assert_eq!(tegrarm_device_set_limit(device, STACK, (1 << 24) - 4096), NV_ERR_NO_MEMORY, "more than the board has");
    assert_eq!((stack(), run()), (before, 6765));

    let mut heap = 1;
    // SAFETY: the pointer points to a variable of this function, or is NULL, which is refused.
    unsafe {
        assert_eq!((tegrarm_device_limit(device, HEAP, &mut heap), heap), (NV_OK, 8 << 20));
        assert_eq!(tegrarm_device_limit(device, HEAP, null_mut()), NV_ERR_INVALID_POINTER);
        assert_eq!(tegrarm_device_limit(device, 3, &mut heap), NV_ERR_INVALID_ARGUMENT);
    }
    let set = |limit, value| {
        let mut now = 0;
        let status = tegrarm_device_set_limit(device, limit, value);
        // SAFETY: the pointer points to a variable of this function.
        assert_eq!(unsafe { tegrarm_device_limit(device, limit, &mut now) }, NV_OK);
        (status, now)
    };
    assert_eq!(set(HEAP, 0), (NV_OK, 0));
    assert_eq!(set(HEAP, (1 << 20) - 1), (NV_OK, 1 << 20), "whole pages");
    assert_eq!(set(PRINTF, 100_000), (NV_OK, 1 << 17), "a power of two");
    assert_eq!(set(HEAP, 1 << 46), (NV_ERR_INVALID_ARGUMENT, 1 << 20));
    assert_eq!(set(PRINTF, 1 << 46), (NV_ERR_INVALID_ARGUMENT, 1 << 17));
    assert_eq!(tegrarm_device_set_limit(device, 3, 0), NV_ERR_INVALID_ARGUMENT);
    tegrarm_device_close(device);
}
