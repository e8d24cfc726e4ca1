//! `TEGRARM_REPORT=1` prints the calls that a program asked for and was refused, once, when the program ends. Each
//! refusal is logged once.
#![allow(unsafe_code)]

use std::process::{Command, Output};
use tegrarm::capi::files::*;
use tegrarm::capi::library::*;
use tegrarm::capi::objects::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::ctrl_83de::*;
use tegrarm_abi::rm::ctrl_2080::*;
use tegrarm_abi::rm::escapes::*;
use tegrarm_abi::rm::status::*;
use tegrarm_abi::rm::uvm::*;

/// This variable is set in the processes that the tests start. It says how they must end.
const ROLE: &str = "TEGRARM_TEST_REPORT_ROLE";

fn alloc(client: u32, parent: u32, class: u32) -> (u32, u32) {
    let mut handle = 0;
    // SAFETY: the handle belongs to this function, and there are no parameters.
    let status = unsafe { rm_alloc(client, parent, &raw mut handle, class, std::ptr::null_mut(), 0) };
    (status, handle)
}

fn control(client: u32, object: u32, cmd: u32) -> u32 {
    let mut word = 0u32;
    // SAFETY: the parameters are 4 bytes of this function.
    unsafe { rm_control(client, object, cmd, (&raw mut word).cast(), 4) }
}

/// Makes the calls that a frontend for newer GPUs tries before it uses older interfaces.
fn ask_for_too_much() {
    let (_, client) = alloc(0, 0, NV01_ROOT_CLIENT);
    let (_, device) = alloc(client, client, NV01_DEVICE_0);
    let (status, subdevice) = alloc(client, device, NV20_SUBDEVICE_0);
    assert_eq!(status, NV_OK);
    for _ in 0..3 {
        assert_eq!(alloc(client, device, ADA_COMPUTE_A).0, NV_ERR_INVALID_CLASS);
    }
    assert_eq!(alloc(client, device, 0xbeef).0, NV_ERR_INVALID_CLASS);
    assert_eq!(alloc(client, subdevice, GF100_PROFILER).0, NV_ERR_NOT_SUPPORTED);
    for _ in 0..2 {
        assert_eq!(control(client, subdevice, NV2080_CTRL_CMD_GPU_PROMOTE_CTX), NV_ERR_INSUFFICIENT_PERMISSIONS);
    }
    assert_eq!(control(client, subdevice, NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO), NV_ERR_NOT_SUPPORTED);
    assert_eq!(control(client, subdevice, 0x2080_7777), NV_ERR_NOT_SUPPORTED);
    assert_eq!(control(client, subdevice, 0xbeef_0001), NV_ERR_NOT_SUPPORTED);
    // SAFETY: NULL is allowed as the configuration.
    assert_eq!(unsafe { tegrarm_init(std::ptr::null()) }, NV_ERR_INVALID_STATE, "initialised already");
}

fn ioctl(fd: i32, request: u64, arg: &mut [u8]) -> i32 {
    rm_ioctl(fd, request, arg.as_mut_ptr().cast())
}

fn escape(nr: u32, size: usize) -> u64 {
    3 << 30 | (size as u64) << 16 | 0x46 << 8 | u64::from(nr)
}

/// Makes the calls that a frontend tries on the device nodes before it uses older interfaces.
fn ask_the_nodes_for_too_much() {
    let open = |path: &std::ffi::CStr| {
        // SAFETY: the path is NUL-terminated.
        let fd = unsafe { rm_open(path.as_ptr(), libc::O_RDWR) };
        assert!(fd >= 0);
        fd
    };
    let (ctl, gpu, uvm) = (open(c"/dev/nvidiactl"), open(c"/dev/nvidia0"), open(c"/dev/nvidia-uvm"));
    let mut arg = [0; 4096];
    for _ in 0..2 {
        assert_eq!(ioctl(gpu, escape(NV_ESC_RM_I2C_ACCESS, size_of::<NVOS_I2C_ACCESS_PARAMS>()), &mut arg), 0);
        assert_eq!(arg[std::mem::offset_of!(NVOS_I2C_ACCESS_PARAMS, status)], NV_ERR_NOT_SUPPORTED as u8);
    }
    assert_eq!(ioctl(ctl, escape(NV_ESC_RM_EXPORT_OBJECT_TO_FD, 48), &mut arg), -1, "whatever its size");
    assert_eq!(ioctl(ctl, escape(0x99, 8), &mut arg), -1);
    assert_eq!(ioctl(gpu, escape(NV_ESC_RM_FREE, 16), &mut arg), -1);
    let export = size_of::<nv_ioctl_export_to_dma_buf_fd_t>();
    assert_eq!(ioctl(gpu, escape(NV_ESC_EXPORT_TO_DMABUF_FD, export), &mut arg), 0);
    let status = std::mem::offset_of!(nv_ioctl_export_to_dma_buf_fd_t, status);
    assert_eq!(arg[status], NV_ERR_NOT_SUPPORTED as u8);
    arg.fill(0);
    // A wrong size is a mistake of the caller and not a missing feature, so it is not in the report.
    assert_eq!(ioctl(ctl, escape(NV_ESC_RM_FREE, 20), &mut arg), -1);
    arg[std::mem::offset_of!(NVOS32_PARAMETERS, function)] = 9;
    assert_eq!(ioctl(ctl, escape(NV_ESC_RM_VID_HEAP_CONTROL, size_of::<NVOS32_PARAMETERS>()), &mut arg), 0);
    arg.fill(0);
    // A call before UVM_INITIALIZE is not in the report.
    assert_eq!(ioctl(uvm, u64::from(UVM_MAP_EXTERNAL_SPARSE), &mut arg), 0);
    assert_eq!(ioctl(uvm, u64::from(UVM_INITIALIZE), &mut [0; 64]), 0);
    for _ in 0..3 {
        assert_eq!(ioctl(uvm, u64::from(UVM_MAP_EXTERNAL_SPARSE), &mut arg), 0);
    }
    assert_eq!(arg[std::mem::offset_of!(UVM_MAP_EXTERNAL_SPARSE_PARAMS, rmStatus)], NV_ERR_NOT_SUPPORTED as u8);
    assert_eq!(ioctl(uvm, u64::from(UVM_TOOLS_FLUSH_EVENTS), &mut arg), -1);
    assert_eq!(ioctl(uvm, 0x1234, &mut arg), -1);
    for fd in [ctl, gpu, uvm] {
        assert_eq!(rm_close(fd), 0);
    }
}

/// Runs only `test` of this program, in a process of its own.
fn child(test: &str, role: &str, report: Option<&str>) -> Output {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args([test, "--exact", "--nocapture"]).env(ROLE, role);
    command.env("TEGRARM_BACKEND", "sim").env("TEGRARM_LOG", "warn").env_remove("TEGRARM_REPORT");
    if let Some(value) = report {
        command.env("TEGRARM_REPORT", value);
    }
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The lines between the report's heading and the other output of the process.
fn reported(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = text
        .lines()
        .skip_while(|l| !l.starts_with("libtegrarm: "))
        .take_while(|l| l.starts_with("lib") || l.starts_with("  "));
    lines.map(|l| l.trim().to_owned()).collect()
}

#[test]
fn a_program_that_ends_says_what_it_did_not_get() {
    if let Ok(role) = std::env::var(ROLE) {
        ask_for_too_much();
        if role == "shutdown" {
            assert_eq!(tegrarm_shutdown(), NV_OK);
        }
        return;
    }
    let test = "a_program_that_ends_says_what_it_did_not_get";
    let expected = [
        "libtegrarm: asked for and refused:",
        "1 x class GF100_PROFILER (0x90cc): the older profiler: MAXWELL_PROFILER_DEVICE has its counters and power features; \
         tinygrad and LibreCUDA do not make one, and gVisor's nvproxy lets only profilers make one",
        "1 x class unknown (0xbeef): it is not in the class table",
        "3 x class ADA_COMPUTE_A (0xc9c0): a class of another GPU generation; ga10b does not accept it",
        "2 x control NV2080_CTRL_CMD_GPU_PROMOTE_CTX (0x2080012b): only the kernel may do this: nvgpu does not pass it to user space",
        "1 x control unknown, of NV20_SUBDEVICE_0 (0x20807777): it is not in the control table",
        "1 x control NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO (0x83de0328): it belongs to: debugger",
        "1 x control unknown, of class 0xbeef (0xbeef0001): it is not in the control table",
    ];
    for role in ["exit", "shutdown"] {
        let output = child(test, role, Some("1"));
        assert_eq!(reported(&output), expected, "{role}");
        check_log(&output, &expected);
    }
    for silent in [None, Some("0")] {
        assert_eq!(reported(&child(test, "exit", silent)), Vec::<String>::new());
    }
}

/// Checks that each line of the report was logged once.
fn check_log(output: &Output, expected: &[&str]) {
    let log = String::from_utf8_lossy(&output.stderr);
    for line in &expected[1..] {
        let (what, why) = line.split_once(" x ").and_then(|(_, rest)| rest.split_once("): ")).expect("what and why");
        assert_eq!(log.matches(&format!("{what}) is refused: {why}")).count(), 1, "{what}) is logged once");
    }
}

#[test]
fn refused_escapes_and_uvm_calls_are_told_by_name() {
    if std::env::var_os(ROLE).is_some() {
        return ask_the_nodes_for_too_much();
    }
    let expected = [
        "libtegrarm: asked for and refused:",
        "2 x escape NV_ESC_RM_FREE (0x29): it belongs to /dev/nvidiactl",
        "2 x escape NV_ESC_RM_I2C_ACCESS (0x39): a Tegra does not have this",
        "1 x escape NV_ESC_RM_VID_HEAP_CONTROL (0x4a): function 9; there are ALLOC_SIZE (2), FREE (3), INFO (5) and ALLOC_OS_DESCRIPTOR (27)",
        "1 x escape NV_ESC_RM_EXPORT_OBJECT_TO_FD (0x5c): no exports between processes",
        "1 x escape unknown (0x99): it is not in the escape table",
        "1 x escape NV_ESC_EXPORT_TO_DMABUF_FD (0xd9): no exports between processes",
        "1 x UVM call UVM_TOOLS_FLUSH_EVENTS (0x43): nvgpu reports no page events and no migrations that tools could watch",
        "3 x UVM call UVM_MAP_EXTERNAL_SPARSE (0x4a): no compute frontend maps sparsely",
        "1 x UVM call unknown (0x1234): it is not in the UVM table",
    ];
    let output = child("refused_escapes_and_uvm_calls_are_told_by_name", "exit", Some("1"));
    assert_eq!(reported(&output), expected);
    check_log(&output, &expected);
}

#[test]
fn a_program_that_got_everything_hears_so() {
    if std::env::var_os(ROLE).is_some() {
        assert_eq!(alloc(0, 0, NV01_ROOT_CLIENT).0, NV_OK);
        return;
    }
    let output = child("a_program_that_got_everything_hears_so", "exit", Some("1"));
    assert_eq!(reported(&output), ["libtegrarm: nothing was refused"]);
}
