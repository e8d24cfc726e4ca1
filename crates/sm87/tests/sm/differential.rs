//! Compiles one text with two compilers: `differential/kernels.c` runs as sm_87 code on the engine, and as the C
//! compiler's code on this CPU, with the same inputs. Every word that they write must be the same.

use crate::support::{Arg, Gpu, Kernel, Noise};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

const ITEMS: usize = 5000;

/// The program that the C compiler makes of `kernels.c` on this machine.
static CPU: LazyLock<PathBuf> = LazyLock::new(|| {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sm/differential/kernels.c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("differential-{}", std::process::id()));
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let status = Command::new(compiler)
        .args(["-O1", "-ffp-contract=off", "-fwrapv", "-o"])
        .args([&program, &source])
        .arg("-lm")
        .status()
        .expect("a C compiler, as `cc` or named by CC");
    assert!(status.success());
    program
});

/// A word that tests something: any bits, a small number, a float near one, or an edge value.
fn word(noise: &mut Noise) -> u32 {
    const EDGES: [u32; 20] = [
        0,
        1,
        u32::MAX,
        1 << 31,
        i32::MAX as u32,
        0x3f80_0000,
        0xbf80_0000,
        0x3f7f_ffff,
        0x4f00_0000,
        0x4f80_0000,
        0x5f00_0000,
        0x7f7f_ffff,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x0080_0000,
        0x007f_ffff,
        0x3fe0_0000,
        0x43e0_0000,
        0x7ff0_0000,
    ];
    let x = noise.next();
    let low = x as u32;
    match x >> 60 {
        0..=3 => low,
        4..=6 => EDGES[low as usize % EDGES.len()],
        7..=8 => low % 64,
        9..=10 => (low as i32 >> (x >> 40 & 31)) as u32,
        11..=12 => noise.float().to_bits(),
        // The number is near one, as a single or as the high word of a double.
        13 => low & 0x807f_ffff | (120 + (x >> 40) as u32 % 16) << 23,
        _ => low & 0x800f_ffff | (1010 + (x >> 40) as u32 % 80) << 20,
    }
}

fn on_cpu(name: &str, input: &[u32], sizes: [usize; 2]) -> Vec<u32> {
    let mut child = Command::new(&*CPU)
        .arg(name)
        .args(sizes.map(|n| n.to_string()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let bytes: Vec<u8> = input.iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut pipe = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || pipe.write_all(&bytes).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    output.stdout.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
}

/// The largest allowed difference of numbers, in units in the last place.
#[derive(Clone, Copy)]
enum Within {
    Bits,
    Singles(u64),
    Doubles(u64),
}

impl Within {
    /// The indices of the words that differ too much.
    fn differing(self, got: &[u32], want: &[u32]) -> Vec<usize> {
        // This maps a number's bits to an integer so that the order is the same.
        let single = |x: u32| i64::from(if x >> 31 != 0 { -((x & i32::MAX as u32) as i32) } else { x as i32 });
        let double = |x: &[u32]| {
            let magnitude = i64::from(x[1] & i32::MAX as u32) << 32 | i64::from(x[0]);
            if x[1] >> 31 != 0 { -magnitude } else { magnitude }
        };
        let all = 0..got.len();
        match self {
            Self::Bits => all.filter(|&k| got[k] != want[k]).collect(),
            Self::Singles(most) => all.filter(|&k| single(got[k]).abs_diff(single(want[k])) > most).collect(),
            Self::Doubles(most) => {
                all.step_by(2).filter(|&k| double(&got[k..]).abs_diff(double(&want[k..])) > most).collect()
            }
        }
    }
}

fn compare(name: &str, sizes: [usize; 2], within: Within) {
    let [words_in, words_out] = sizes;
    let (mut gpu, mut noise) = (Gpu::default(), Noise(0xd1ff));
    let input: Vec<u32> = (0..ITEMS * words_in).map(|_| word(&mut noise)).collect();
    // The kernel is recursive, so the compiler could not know its stack size.
    let mut kernel = Kernel::among(include_str!("differential/kernels.hex"), name);
    kernel.stack = 4096;
    let (out, data) = (gpu.alloc(4 * ITEMS * words_out), gpu.upload(&input));
    let args = [Arg::Ptr(&out), Arg::Ptr(&data), Arg::Int(ITEMS as i32)];
    gpu.run(&kernel, [ITEMS.div_ceil(96) as u32, 1, 1], [96, 1, 1], &args).unwrap();
    let got = out.read::<u32>(ITEMS * words_out);
    let want = on_cpu(name, &input, sizes);
    assert_eq!(want.len(), got.len());
    for (i, (got, want)) in got.chunks(words_out).zip(want.chunks(words_out)).enumerate() {
        let from = &input[i * words_in..][..words_in];
        let differing = within.differing(got, want);
        assert!(differing.is_empty(), "{name} {from:#x?}: words {differing:?} of {got:#x?} should be {want:#x?}");
    }
}

macro_rules! kernels {
    ($($name:ident $sizes:expr, $within:expr;)*) => {$(
        #[test]
        fn $name() {
            compare(stringify!($name), $sizes, $within);
        }
    )*};
}

kernels! {
    singles [4, 16], Within::Bits;
    doubles [6, 20], Within::Bits;
    words [4, 20], Within::Bits;
    longs [6, 20], Within::Bits;
    conversions [6, 32], Within::Bits;
    video [4, 13], Within::Bits;
    elementary [2, 14], Within::Singles(5);
    elementary64 [4, 12], Within::Doubles(4);
    crc [4, 2], Within::Bits;
    sorting [4, 16], Within::Bits;
    machine [4, 4], Within::Bits;
    mandelbrot [2, 3], Within::Bits;
    recursion [2, 1], Within::Bits;
}
