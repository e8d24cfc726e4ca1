//! Recordings that somebody has altered: a file of a stranger is replayed, and performed, without harm.

use crate::testing::{SMS, TestKmd, program};
use crate::{Errno, File, Kmd, Node, Placement, Prot, Recorded, Replayed, perform, perform_all};
use serde_json::Value;
use std::io::{self, Write};
use std::sync::Arc;
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_abi::nvmap::{NVMAP_IOC_CREATE, NVMAP_IOC_GET_FD, nvmap_create_handle};
use tegrarm_lock::Mutex;

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A recording of [`program`], with every line changed by `alter`.
fn altered(alter: impl Fn(&mut Value)) -> String {
    let sink = Sink::default();
    let recorder = Recorded::new(Arc::<TestKmd>::default(), sink.clone()).expect("a header");
    program(&(Arc::new(recorder) as Arc<dyn Kmd>), 8192).expect("the test kernel knows the program");
    let text = String::from_utf8(sink.0.lock().clone()).expect("text");
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    lines.iter_mut().for_each(alter);
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Gives the memory behind VSMS_MAPPING's pointer another length, in bytes.
fn with_table(len: usize) -> String {
    altered(|line| {
        if line["name"] == "NVGPU_GPU_IOCTL_VSMS_MAPPING" {
            line["out"]["memory"]["0"]["bytes"] = "ee".repeat(len).into();
        }
    })
}

/// Opens the ctrl node of a replay, up to the call for the SMs' places.
fn ctrl_of(replay: &Arc<Replayed>, asks: bool) -> File {
    let kmd: Arc<dyn Kmd> = replay.clone();
    let ctrl = File::open(&kmd, Node::Ctrl, "/dev/nvgpu/igpu0/ctrl").expect("recorded");
    let mut room = [0u8; 400];
    let mut chars = nvgpu_gpu_get_characteristics {
        gpu_characteristics_buf_size: room.len() as u64,
        gpu_characteristics_buf_addr: room.as_mut_ptr() as u64,
    };
    if asks {
        ctrl.ioctl(NVGPU_GPU_IOCTL_GET_CHARACTERISTICS, &mut chars).expect("recorded");
        let mut number = nvgpu_gpu_num_vsms { num_vsms: 0, reserved: 0 };
        ctrl.ioctl(NVGPU_GPU_IOCTL_NUM_VSMS, &mut number).expect("recorded");
    }
    ctrl
}

#[test]
fn a_longer_table_of_sms_does_not_write_past_the_programs() {
    const ROOM: usize = 6 * SMS;
    for inputs in [true, false] {
        let replay = Replayed::new(with_table(4096).as_bytes()).expect("a recording");
        let replay = Arc::new(if inputs { replay } else { replay.ignoring_inputs() });
        let ctrl = ctrl_of(&replay, true);
        let mut table = [0x11u8; 2 * ROOM];
        let mut map = nvgpu_gpu_vsms_mapping { vsms_map_buf_addr: table.as_mut_ptr() as u64 };
        let result = ctrl.ioctl(NVGPU_GPU_IOCTL_VSMS_MAPPING, &mut map);
        assert_eq!(table[ROOM..], [0x11; ROOM], "what lies after the caller's room");
        match inputs {
            true => {
                assert_eq!((result, table[..ROOM].to_vec()), (Err(Errno::EIO), vec![0x11; ROOM]));
                let text = replay.first_difference().expect("a difference");
                assert!(text.ends_with("memory behind vsms_map_buf_addr: recorded 4096 bytes, room for 24"), "{text}");
            }
            false => assert_eq!((result, table[..ROOM].to_vec()), (Ok(()), vec![0xee; ROOM])),
        }
    }
}

#[test]
fn a_table_of_sms_needs_to_be_asked_for() {
    let text = altered(|line| {
        if line["name"] == "NVGPU_GPU_IOCTL_GET_CHARACTERISTICS" || line["name"] == "NVGPU_GPU_IOCTL_NUM_VSMS" {
            line["on"] = "elsewhere#1".into();
        }
    });
    let replay = Arc::new(Replayed::new(text.as_bytes()).expect("a recording").ignoring_inputs());
    let ctrl = ctrl_of(&replay, false);
    let mut table = [0x11u8; 6 * SMS];
    let mut map = nvgpu_gpu_vsms_mapping { vsms_map_buf_addr: table.as_mut_ptr() as u64 };
    assert_eq!(ctrl.ioctl(NVGPU_GPU_IOCTL_VSMS_MAPPING, &mut map), Err(Errno::EIO));
    assert_eq!(table, [0x11; 6 * SMS]);
    assert!(replay.first_difference().expect("a difference").contains("asks NUM_VSMS and GET_CHARACTERISTICS before"));
}

#[test]
fn the_kernels_own_size_counts_when_calls_are_performed() {
    for len in [0, 1, 23, 25, 100_000] {
        let outcome = perform(with_table(len).as_bytes(), Arc::<TestKmd>::default()).expect("a recording");
        let text = outcome.difference.expect("a difference");
        assert!(text.contains("NVGPU_GPU_IOCTL_VSMS_MAPPING on ctrl#1: memory behind vsms_map_buf_addr"), "{text}");
        assert!(text.contains("now 00010203"), "the kernel's whole table: {text}");
    }
}

#[test]
fn memory_that_the_kernel_only_reads_is_not_written() {
    let line = concat!(
        r#"{"seq":1,"call":"ioctl","on":"foreign-nvmap#1","node":"nvmap","request":"0x40104e18","#,
        r#""in":{"bytes":"00000000020000000100000000000000","memory":{"8":{"bytes":"6162"}}},"#,
        r#""out":{"bytes":"00000000020000000100000000000000","memory":{"8":{"bytes":"7878"}}},"ret":0}"#
    );
    let replay = Replayed::new(format!("{{\"recording\":1}}\n{line}\n").as_bytes()).expect("a recording");
    let name = *b"ab";
    let mut arg = [0u8; 16];
    arg[4] = 2;
    arg[8..].copy_from_slice(&(name.as_ptr() as u64).to_le_bytes());
    let file = std::fs::File::open("/dev/null").expect("a file");
    let fd = std::os::fd::AsFd::as_fd(&file);
    assert_eq!(replay.ioctl(fd, Node::Nvmap, 0x4010_4e18, crate::Arg::Bytes(&mut arg)), Ok(0));
    assert_eq!(std::hint::black_box(name), *b"ab");
}

/// An integer in place of an argument would be the address of one, and a short argument would be read past its end.
#[test]
fn an_argument_of_another_kind_or_size_is_left_out() {
    let target = [0x11u64; 64];
    let made = |alter: &dyn Fn(&mut Value)| {
        let text = altered(|line| {
            if line["name"] == "NVGPU_GPU_IOCTL_NUM_VSMS" {
                alter(line);
            }
        });
        perform_all(text.as_bytes(), Arc::<TestKmd>::default(), |_, _| {}).expect("a recording")
    };
    let honest = made(&|_| {});
    let address = made(&|line| line["in"] = serde_json::json!({ "value": target.as_ptr() as u64 }));
    assert_eq!((address.made, address.left_out), (honest.made - 1, honest.left_out + 1));
    let short = made(&|line| line["in"]["bytes"] = "00".into());
    assert_eq!((short.made, short.left_out), (honest.made - 1, honest.left_out + 1));
    assert_eq!(std::hint::black_box(target), [0x11; 64]);
}

/// Two descriptors of one handle are one memory. The second one was mapped further than the first one was long.
#[test]
fn a_mapping_is_never_longer_than_its_file() {
    let replay = Arc::new(
        Replayed::new(
            altered(|line| {
                if line["call"] == "mmap" {
                    line["len"] = (1 << 20).into();
                } else if line["name"] == "NVMAP_IOC_GET_FD" {
                    line["made"][0]["size"] = 1.into();
                }
            })
            .as_bytes(),
        )
        .expect("a recording")
        .ignoring_inputs(),
    );
    let kmd: Arc<dyn Kmd> = replay.clone();
    let nvmap = File::open(&kmd, Node::Nvmap, "/dev/nvmap").expect("recorded");
    let mut handle = nvmap_create_handle { size: 8192, handle: 0 };
    nvmap.ioctl(NVMAP_IOC_CREATE, &mut handle).expect("recorded");
    nvmap.ioctl(NVMAP_IOC_GET_FD, &mut handle).expect("recorded");
    let dmabuf = File::from_output(&kmd, Node::Dmabuf, handle.size as i32).expect("a file");
    let map = dmabuf.mmap(Placement::Anywhere, 4 << 20, Prot::ReadWrite, 0).expect("recorded");
    let last = (map.addr() + map.len() - 1) as u64;
    assert_eq!(crate::memory::read(last, 1), Ok(vec![0]));
}

/// A call that does not return 0 gives its program no descriptor, whatever the file says. The replay kept what it had made for it.
///
/// Tests beside this one open files, which may get the number again. The file of this replay is told by a size that no other file has.
#[test]
fn a_call_that_fails_leaves_no_descriptor() {
    const SIZE: u64 = 0x5_a3c1;
    for (key, value, errno) in [("err", Value::from("EINVAL"), Errno::EINVAL), ("ret", Value::from(5), Errno::EFAULT)] {
        let text = altered(|line| {
            if line["name"] == "NVMAP_IOC_GET_FD" {
                line[key] = value.clone();
                line["made"][0]["size"] = SIZE.into();
            }
        });
        let kmd: Arc<dyn Kmd> = Arc::new(Replayed::new(text.as_bytes()).expect("a recording").ignoring_inputs());
        let nvmap = File::open(&kmd, Node::Nvmap, "/dev/nvmap").expect("recorded");
        let mut handle = nvmap_create_handle { size: 8192, handle: 0 };
        nvmap.ioctl(NVMAP_IOC_CREATE, &mut handle).expect("recorded");
        assert_eq!(nvmap.ioctl(NVMAP_IOC_GET_FD, &mut handle), Err(errno));
        // The replay keeps a file of the memory for its own use as long as it lives.
        drop((nvmap, kmd));
        for entry in std::fs::read_dir("/proc/self/fd").expect("proc").flatten() {
            let len = std::fs::metadata(entry.path()).map_or(0, |file| file.len());
            assert_ne!(len, SIZE, "{} is open after {errno}", entry.path().display());
        }
    }
}

/// The program took the number that it had left in the field, here 0, for its new descriptor, and closed it: its standard input.
#[test]
fn a_call_that_names_no_descriptor_gives_none() {
    for inputs in [true, false] {
        let text = altered(|line| {
            if line["name"] == "NVMAP_IOC_GET_FD" {
                line["out"].as_object_mut().expect("an output").remove("fds");
            }
        });
        let replay = Replayed::new(text.as_bytes()).expect("a recording");
        let replay = Arc::new(if inputs { replay } else { replay.ignoring_inputs() });
        let kmd: Arc<dyn Kmd> = replay.clone();
        let nvmap = File::open(&kmd, Node::Nvmap, "/dev/nvmap").expect("recorded");
        let mut handle = nvmap_create_handle { size: 8192, handle: 0 };
        nvmap.ioctl(NVMAP_IOC_CREATE, &mut handle).expect("recorded");
        assert_eq!(nvmap.ioctl(NVMAP_IOC_GET_FD, &mut handle), Err(Errno::EIO));
        let text = replay.first_difference().expect("a difference");
        assert!(text.ends_with("fd: the recording names no descriptor"), "{text}");
    }
}

#[test]
fn a_negative_answer_is_no_recorded_call() {
    let text = altered(|line| {
        if line["ret"] == 0 {
            line["ret"] = (-5).into();
        }
    });
    assert!(Replayed::new(text.as_bytes()).is_err());
}
