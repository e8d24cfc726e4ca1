//! Machine code that jumps into the middle of an instruction, which has 16 bytes. Every jump, call and return is refused where it stands.

use crate::support::Gpu;
use crate::support::{EXIT, program};
use sm87::{SmFault, run};

/// The instructions that go to their target, by opcode; BSSY only names where lanes meet. The target is the number of bytes from the next instruction, or behind RZ.
const WITH_TARGET: [(&str, u64); 6] = [
    ("BRA", 0x0000_7947),
    ("CALL.REL", 0x0000_7944),
    ("CALL.ABS", 0x0000_7943),
    ("BRX RZ", 0xff00_7949),
    ("CALL.REL RZ", 0xff00_7344),
    ("RET.REL RZ", 0xff00_7950),
];
/// Into the middle of the instruction before, of this one, of the next ones, and far away.
const INSIDE: [i64; 10] = [-28, -24, -20, -12, -8, -4, 4, 8, 12, 0x10_0008];

#[test]
fn no_jump_leads_into_an_instruction() {
    for (name, opcode) in WITH_TARGET {
        for offset in INSIDE {
            let jump = ((offset as u64) << 32 | opcode, 0x000f_ea00_0380_0000 | if offset < 0 { 0x3_ffff } else { 0 });
            let code = program(&[EXIT, jump, EXIT, EXIT]);
            let mut gpu = Gpu { budget: Some(100_000), ..Gpu::default() };
            let mut launch = gpu.launch(&code, [1, 1, 1], [32, 1, 1], &[]);
            launch.code += 16;
            let Err(stopped) = run(&launch) else { panic!("{name} {offset}: it ran") };
            match stopped.fault {
                SmFault::Warp { record, text, .. } => {
                    assert_eq!(record.pc, launch.code, "{name} {offset}: {text}");
                    assert!(text.contains("aligned"), "{name} {offset}: {text}");
                }
                other => panic!("{name} {offset}: {other:?}"),
            }
        }
    }
}

/// The same targets, each at an instruction, lead somewhere: to an end, to the budget's, or to code that is not there.
#[test]
fn whole_instructions_are_reached() {
    for (name, opcode) in WITH_TARGET {
        let code = program(&[EXIT, (0x20_0000_0000 | opcode, 0x000f_ea00_0380_0000), EXIT, EXIT, EXIT]);
        let mut gpu = Gpu { budget: Some(100_000), ..Gpu::default() };
        let mut launch = gpu.launch(&code, [1, 1, 1], [32, 1, 1], &[]);
        launch.code += 16;
        let refused = run(&launch).err().map(|stopped| format!("{:?}", stopped.fault)).unwrap_or_default();
        assert!(!refused.contains("aligned"), "{name}: {refused}");
    }
}
