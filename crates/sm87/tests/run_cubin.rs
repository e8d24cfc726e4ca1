//! Runs the example that needs only this crate, with cubins that NVIDIA's compilers made.

#[allow(dead_code, reason = "the example's own start")]
#[path = "../examples/run_cubin/main.rs"]
mod run_cubin;

fn run(file: &str, arguments: &str) -> Result<String, String> {
    let file = format!("{}/../../tests/data/cubin/{file}", env!("CARGO_MANIFEST_DIR"));
    let arguments: Vec<String> = [file].into_iter().chain(arguments.split(' ').map(str::to_owned)).collect();
    run_cubin::report(&arguments)
}

/// The body of `vecadd`. The prologue before it is the same in all kernels of this compiler.
const VECADD: &str = "\
  0x0140  MOV R1, c[0x0][0x28]
  0x0150  S2R R6, SR_CTAID.X
  0x0160  S2R R3, SR_TID.X
  0x0170  IMAD R6, R6, c[0x0][0x0], R3
  0x0180  ISETP.GE.U32.AND P0, PT, R6, c[0x0][0x178], PT
  0x0190  @P0 EXIT
  0x01a0  HFMA2.MMA R7, -RZ, RZ, 0, 2.384185791015625e-07
  0x01b0  ULDC.64 UR4, c[0x0][0x118]
  0x01c0  IMAD.WIDE.U32 R4, R6, R7, c[0x0][0x168]
  0x01d0  IMAD.WIDE.U32 R2, R6.reuse, R7.reuse, c[0x0][0x160]
  0x01e0  LDG.E R4, [R4.64]
  0x01f0  LDG.E R3, [R2.64]
  0x0200  IMAD.WIDE.U32 R6, R6, R7, c[0x0][0x170]
  0x0210  FADD R9, R4, R3
  0x0220  STG.E [R6.64], R9
  0x0230  EXIT
  0x0240  BRA 0x240
";

#[test]
fn vecadd_is_listed_and_adds() {
    for file in ["vecadd.nvrtc.cubin", "vecadd.jit.cubin", "vecadd.rdc.cubin", "vecadd.cuda13.cubin"] {
        let out = run(file, "vecadd --grid 2 --block 128 f32x256 f32x256=0.5 f32x256=0 u32=200").unwrap();
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[0], "vecadd:");
        assert_eq!(lines[2], "  0x0010  @P0 BRA 0x140", "{file}");
        assert!(out.contains(VECADD), "{file}: {out}");
        assert!(out.contains("parameter 0: 0 1 2 3 4 5 6 7 ...\n"), "{out}");
        assert!(out.contains("parameter 1: 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5 ...\n"), "{out}");
        assert_eq!(lines.last(), Some(&"parameter 2: 0.5 1.5 2.5 3.5 4.5 5.5 6.5 7.5 ..."), "{file}");
    }
}

#[test]
fn shared_memory_and_barriers() {
    let out = run("shared.nvrtc.cubin", "reduce --grid 4 --block 256 i32x1024 i32x4=0").unwrap();
    assert!(out.ends_with("parameter 1: 32640 98176 163712 229248\n"), "{out}");
    let out = run("shared.nvrtc.cubin", "reverse --block 64 --shared 256 i32x64 i32x64=0").unwrap();
    assert!(out.ends_with("parameter 1: 63 62 61 60 59 58 57 56 ...\n"), "{out}");
}

#[test]
fn a_subroutine_divides() {
    let out = run("divide.nvrtc.cubin", "divide --block 4 i64x4=-1000 i64x4=7 i64x4=0 i64x4=0").unwrap();
    assert!(out.ends_with("parameter 2: -142 -142 -142 -142\nparameter 3: -6 -6 -6 -6\n"), "{out}");
}

#[test]
fn what_cannot_be_run_is_named() {
    for (file, arguments, why) in [
        ("vecadd.nvrtc.cubin", "nothing", "no kernel nothing; there is scale, vecadd"),
        ("vecadd.nvrtc.cubin", "vecadd f32x4", "the kernel takes 4 parameters, not 1"),
        ("vecadd.nvrtc.cubin", "vecadd f32x4 f32x4 f32x4 f64=4", "parameter 3 has 4 bytes, not 8"),
        ("vecadd.nvrtc.cubin", "vecadd f16x4", "neither a number like i32=7 nor a buffer like f32x256"),
        ("vecadd.nvrtc.cubin", "vecadd u32=-1", "\"-1\" does not fit its type"),
        ("vecadd.nvrtc.cubin", "vecadd --grid", "--grid needs a value"),
        ("vecadd.nvrtc.cubin", "vecadd --grid 1,2,3,4", "more than three sizes"),
        ("vecadd.cu", "vecadd", "not an ELF file"),
        ("vecadd.nvrtc.cubin", "vecadd u64=0 u64=0 u64=0 u32=1", "the kernel stopped: Mmu"),
    ] {
        let refused = run(file, arguments).unwrap_err();
        assert!(refused.contains(why), "{arguments}: {refused}");
    }
}
