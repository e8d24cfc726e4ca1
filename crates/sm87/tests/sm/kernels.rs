//! Executes the output of real compilers and compares every result with the same computation in Rust.

use crate::kernel;
use crate::support::{Arg, Gpu, Noise};
use sm87_num::format::two_to;

#[test]
fn section_7_1_vector_add() {
    let (mut gpu, mut noise) = (Gpu::default(), Noise(1));
    let n = 1000usize;
    let a: Vec<f32> = (0..n).map(|_| noise.float()).collect();
    let b: Vec<f32> = (0..n).map(|_| noise.float()).collect();
    let (da, db, out) = (gpu.upload(&a), gpu.upload(&b), gpu.alloc(4 * n));
    let args = [Arg::Ptr(&out), Arg::Ptr(&da), Arg::Ptr(&db), Arg::Int(n as i32)];
    let stats = gpu.run(&kernel!("vector_add"), [8, 1, 1], [128, 1, 1], &args).unwrap();
    let want: Vec<f32> = a.iter().zip(&b).map(|(x, y)| x + y).collect();
    assert_eq!(out.read::<f32>(n), want);
    assert!(stats.warp_instructions > 32 * 20 && stats.thread_instructions > 1000 * 20);
}

/// The warps of a large grid begin with what all of them execute alike. It counts as if each of them had executed it.
#[test]
fn instructions_of_a_large_grid_are_those_of_its_warps() {
    let mut gpu = Gpu::default();
    let (a, out) = (gpu.upload(&[1.5f32; 40 * 128]), gpu.alloc(4 * 40 * 128));
    let args = [Arg::Ptr(&out), Arg::Ptr(&a), Arg::Ptr(&a), Arg::Int(40 * 128)];
    let mut counts = |blocks: u32| {
        let stats = gpu.run(&kernel!("vector_add"), [blocks, 1, 1], [100, 1, 1], &args).unwrap();
        (stats.warp_instructions, stats.thread_instructions)
    };
    let (one, many) = (counts(1), counts(40));
    assert_eq!(many, (40 * one.0, 40 * one.1));
    assert_eq!(out.read::<f32>(4000), [3.0; 4000]);
}

/// Floats that matter for division: both signs of zero, denormals, limits, infinities, NaN and random numbers.
fn edge_floats(noise: &mut Noise, count: usize) -> Vec<f32> {
    let mut x = vec![0.0, 1.0, f32::MIN_POSITIVE, 1e-45, 1e-40, 3e38, f32::MAX, f32::INFINITY, f32::NAN, 1e-30, 3.0];
    x.extend(x.clone().iter().map(|v| -v));
    while x.len() < count {
        x.push(f32::from_bits(noise.next() as u32));
    }
    x
}

fn same(x: f32, y: f32) -> bool {
    x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan()
}

#[test]
fn division_is_correctly_rounded() {
    let (mut gpu, mut noise) = (Gpu::default(), Noise(2));
    let base = edge_floats(&mut noise, 64);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for x in &base {
        for y in &base {
            a.push(*x);
            b.push(*y);
        }
    }
    let n = a.len();
    let (da, db, out) = (gpu.upload(&a), gpu.upload(&b), gpu.alloc(4 * n));
    let args = [Arg::Ptr(&out), Arg::Ptr(&da), Arg::Ptr(&db), Arg::Int(n as i32)];
    gpu.run(&kernel!("divide"), [n.div_ceil(128) as u32, 1, 1], [128, 1, 1], &args).unwrap();
    for (i, got) in out.read::<f32>(n).into_iter().enumerate() {
        let want = a[i] / b[i];
        assert!(same(got, want), "{:e} / {:e} = {got:e}, not {want:e}", a[i], b[i]);
    }
}

#[test]
fn square_root_is_correctly_rounded() {
    let (mut gpu, mut noise) = (Gpu::default(), Noise(3));
    let a = edge_floats(&mut noise, 2048);
    let n = a.len();
    let (da, out) = (gpu.upload(&a), gpu.alloc(4 * n));
    let args = [Arg::Ptr(&out), Arg::Ptr(&da), Arg::Int(n as i32)];
    gpu.run(&kernel!("square_root"), [16, 1, 1], [128, 1, 1], &args).unwrap();
    for (i, got) in out.read::<f32>(n).into_iter().enumerate() {
        assert!(same(got, a[i].sqrt()), "sqrt {:e} = {got:e}, not {:e}", a[i], a[i].sqrt());
    }
}

#[test]
fn section_7_6_reduction_with_barriers() {
    let (mut gpu, mut noise) = (Gpu::default(), Noise(4));
    let data: Vec<i32> = (0..10_000).map(|_| noise.next() as i32).collect();
    let (input, out) = (gpu.upload(&data), gpu.alloc(16));
    let args = [Arg::Ptr(&out), Arg::Ptr(&input), Arg::Int(10_000)];
    gpu.run(&kernel!("reduce"), [4, 1, 1], [256, 1, 1], &args).unwrap();
    let mut want = [0i32; 4];
    for (i, x) in data.iter().enumerate() {
        want[i / 256 % 4] = want[i / 256 % 4].wrapping_add(*x);
    }
    assert_eq!(out.read::<i32>(4), want);
}

#[test]
fn divergent_loops() {
    let mut gpu = Gpu::default();
    let (out, limit) = (gpu.alloc(4 * 256), 40);
    gpu.run(&kernel!("collatz"), [2, 1, 1], [128, 1, 1], &[Arg::Ptr(&out), Arg::Int(limit)]).unwrap();
    let collatz = |start: u64| {
        let (mut x, mut steps) = (start, 0);
        while x != 1 {
            if x & 1 == 1 {
                x = 3 * x + 1;
                if steps > limit {
                    break;
                }
            } else {
                x >>= 1;
            }
            for k in 0..(x & 3) as i32 {
                if (x >> k) & 4 != 0 {
                    steps += k & 1;
                }
            }
            steps += 1;
        }
        steps
    };
    let want: Vec<i32> = (1..=256).map(collatz).collect();
    assert_eq!(out.read::<i32>(256), want);
}

#[test]
fn recursion() {
    let mut gpu = Gpu::default();
    let out = gpu.alloc(4 * 64);
    let mut kernel = kernel!("fibonacci");
    kernel.stack = 4096;
    gpu.run(&kernel, [1, 1, 1], [64, 1, 1], &[Arg::Ptr(&out)]).unwrap();
    let fib = |n: usize| (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0;
    let want: Vec<i32> = (0..64).map(|t| fib(t & 15)).collect();
    assert_eq!(out.read::<i32>(64), want);
}

#[test]
fn exchange_between_lanes() {
    let (mut gpu, mut noise) = (Gpu::default(), Noise(5));
    let x: Vec<u32> = (0..64).map(|_| noise.next() as u32 % 1000).collect();
    let (input, out) = (gpu.upload(&x), gpu.alloc(4 * 64 * 16));
    gpu.run(&kernel!("warp_ops"), [1, 1, 1], [64, 1, 1], &[Arg::Ptr(&out), Arg::Ptr(&input)]).unwrap();
    let got = out.read::<u32>(64 * 16);
    for t in 0..64usize {
        let (lane, warp) = (t % 32, t / 32 * 32);
        let of = |l: usize| x[warp + l];
        let me = x[t];
        let all = |f: &dyn Fn(u32) -> bool| (0..32).filter(|&l| f(of(l))).fold(0u32, |m, l| m | 1 << l);
        let o = &got[t * 16..t * 16 + 16];
        assert_eq!(o[0], of((t * 7) & 31));
        assert_eq!(o[1], of(if lane >= 3 { lane - 3 } else { lane }));
        assert_eq!(o[2], of(if lane % 16 + 5 < 16 { lane + 5 } else { lane }));
        assert_eq!(o[3], of(lane ^ 9));
        assert_eq!(o[4], all(&|v| v & 1 == 1));
        assert_eq!(o[5], u32::from(all(&|v| v < 1000) == u32::MAX) | u32::from(all(&|v| v == 5) != 0) << 1);
        assert_eq!(o[6], all(&|v| v & 7 == me & 7));
        assert_eq!(o[7], 0u32.wrapping_sub(1).wrapping_add(1));
        assert_eq!(o[8], (0..32).map(of).sum::<u32>());
        assert_eq!(o[9], (0..32).map(|l| of(l) as i32 - 500).max().unwrap() as u32);
        let first = if me == 0 { 0 } else { me.trailing_zeros() + 1 };
        assert_eq!(o[10], me.count_ones() + (me.leading_zeros() << 8) + (first << 16));
        let bytes = (u64::from(!me) << 32 | u64::from(me)).to_le_bytes();
        let pick = [bytes[2], bytes[7], bytes[1], bytes[6]];
        assert_eq!(o[11], me.reverse_bits() ^ u32::from_le_bytes(pick));
        let funnel = |lo: u32, hi: u32| u64::from(hi) << 32 | u64::from(lo);
        let left = ((funnel(me, me * 3) << (t & 31)) >> 32) as u32;
        let right = (funnel(me, me * 5) >> ((t + 7) & 31)) as u32;
        assert_eq!(o[12], left.wrapping_add(right));
        assert_eq!(o[13], if t & 1 == 1 { 0xaaaa_aaaa } else { 0x4444_4444 });
        let (a, b) = (me.to_le_bytes(), (me * 77).to_le_bytes());
        let dot: i32 = (0..4).map(|i| i32::from(a[i] as i8) * i32::from(b[i] as i8)).sum();
        assert_eq!(o[14] as i32, dot + t as i32);
        let (a, b) = (me.wrapping_mul(0x0123_4567).to_le_bytes(), me.wrapping_mul(0x89ab_cdef).to_le_bytes());
        let differences = std::array::from_fn(|i| (i32::from(a[i] as i8) - i32::from(b[i] as i8)).unsigned_abs() as u8);
        assert_eq!(o[15], u32::from_le_bytes(differences));
    }
}

#[test]
fn atomics() {
    let mut gpu = Gpu::default();
    let n = 512u32;
    let (out, wide, sum) = (gpu.alloc(4 * (16 + n as usize)), gpu.alloc(8), gpu.alloc(4));
    gpu.run(&kernel!("atomics"), [4, 1, 1], [128, 1, 1], &[Arg::Ptr(&out), Arg::Ptr(&wide), Arg::Ptr(&sum)]).unwrap();
    let got = out.read::<u32>(16 + n as usize);
    for bin in 0..8 {
        let want: u32 = (0..n).filter(|t| t % 128 % 8 == bin).map(|t| 1 + (t & 1)).sum();
        assert_eq!(got[bin as usize], want);
    }
    assert_eq!(got[8], (n - 1) * 3);
    assert_eq!(got[9] as i32, -(n as i32 - 1));
    assert_eq!(got[10], (0..n).fold(0, |x, t| x ^ t.wrapping_mul(0x9e37_79b9)));
    assert_eq!(got[11], u32::MAX);
    assert_eq!(got[12], n % 100);
    assert_eq!(got[13], (0..n).sum::<u32>());
    assert!((1..=n).contains(&got[14]));
    assert_eq!(wide.read::<u64>(1)[0], u64::from((0..n).sum::<u32>()) << 20);
    assert_eq!(sum.read::<f32>(1)[0], n as f32 / 2.0);
    assert!(got[16..].iter().all(|&x| x == 1));
}

#[test]
fn section_7_7_arrays_in_local_memory() {
    let (mut gpu, mut noise) = (Gpu::default(), Noise(6));
    let input: Vec<i32> = (0..64).map(|_| noise.next() as i32).collect();
    let (din, out) = (gpu.upload(&input), gpu.alloc(4 * 64));
    gpu.run(&kernel!("local_array"), [1, 1, 1], [64, 1, 1], &[Arg::Ptr(&out), Arg::Ptr(&din)]).unwrap();
    let thread = |t: usize| {
        let mut a: Vec<i32> = (0..32).map(|i| input[(i * 5 + t) & 63]).collect();
        let mut bytes = [0u8; 16];
        for i in 0..16 {
            bytes[(input[i].wrapping_add(t as i32) & 15) as usize] = (i + t) as u8;
        }
        let mut s = 0i32;
        for (i, x) in input.iter().enumerate() {
            let k = (x & 31) as usize;
            s = s.wrapping_mul(3).wrapping_add(a[k]);
            let at = ((k as i32).wrapping_add(s) & 31) as usize;
            a[at] ^= s;
            s = s.wrapping_add(bytes[(s.wrapping_add(i as i32) & 15) as usize].into());
        }
        s
    };
    let got = out.read::<i32>(64);
    for (t, x) in got.into_iter().enumerate() {
        assert_eq!(x, thread(t), "thread {t}");
    }
}

#[test]
fn double_precision() {
    let (mut gpu, mut noise) = (Gpu::default(), Noise(7));
    let n = 256usize;
    let number = |noise: &mut Noise| (noise.next() as i64 >> 20) as f64 / f64::from(1 << 20);
    let mut a: Vec<f64> = (0..n).map(|_| number(&mut noise)).collect();
    let mut b: Vec<f64> = (0..n).map(|_| number(&mut noise)).collect();
    for (i, x) in [0.0, -0.0, 1e300, 1e-300, f64::MIN_POSITIVE, 5e-324].into_iter().enumerate() {
        a[i] = x;
        b[i + 16] = if x == 0.0 { 2.5 } else { x };
    }
    let (da, db, out) = (gpu.upload(&a), gpu.upload(&b), gpu.alloc(8 * 6 * n));
    let args = [Arg::Ptr(&out), Arg::Ptr(&da), Arg::Ptr(&db), Arg::Int(n as i32)];
    gpu.run(&kernel!("doubles"), [2, 1, 1], [128, 1, 1], &args).unwrap();
    let got = out.read::<f64>(6 * n);
    for i in 0..n {
        let (x, y, o) = (a[i], b[i], &got[6 * i..6 * i + 6]);
        let want = [
            x / y,
            x.abs().sqrt(),
            x.mul_add(y, x) - y,
            x.min(y) + x.max(-y),
            f64::from(x as f32) + (y as i64) as f64,
            x.floor() + if x < y { y.round_ties_even() } else { y.round_ties_even() * 0.0 },
        ];
        for k in 0..6 {
            assert!(
                o[k] == want[k] || o[k].is_nan() && want[k].is_nan(),
                "{k}: {x:e} {y:e}: {:e} not {:e}",
                o[k],
                want[k]
            );
        }
    }
}

#[test]
fn integer_division() {
    let (mut gpu, mut noise) = (Gpu::default(), Noise(8));
    let n = 256usize;
    let a: Vec<i64> = (0..n).map(|i| (noise.next() >> (i % 60)) as i64 * if i % 3 == 0 { -1 } else { 1 }).collect();
    let b: Vec<i64> =
        (0..n).map(|i| (((noise.next() >> (i * 7 % 62)) as i64) | 1) * if i % 5 == 0 { -1 } else { 1 }).collect();
    let (da, db, out) = (gpu.upload(&a), gpu.upload(&b), gpu.alloc(8 * 4 * n));
    let args = [Arg::Ptr(&out), Arg::Ptr(&da), Arg::Ptr(&db), Arg::Int(n as i32)];
    gpu.run(&kernel!("divide64"), [2, 1, 1], [128, 1, 1], &args).unwrap();
    let got = out.read::<i64>(4 * n);
    for i in 0..n {
        let (x, y) = (a[i], b[i]);
        assert_eq!(got[4 * i], x.wrapping_div(y), "{x} / {y}");
        assert_eq!(got[4 * i + 1], x.wrapping_rem(y), "{x} % {y}");
        assert_eq!(got[4 * i + 2] as u64, x as u64 / y as u64, "{x:#x} / {y:#x}");
        let quotient = (x as i32).wrapping_div((y | 1) as i32) as u32;
        let sum = quotient.wrapping_add(x as u32 % (y | 1) as u32);
        assert_eq!(got[4 * i + 3], i64::from(sum), "{x} {y}");
    }
}

#[test]
fn matrix_product_on_one_and_many_threads() {
    let n = 64usize;
    let mut noise = Noise(9);
    let a: Vec<f32> = (0..n * n).map(|_| noise.float()).collect();
    let b: Vec<f32> = (0..n * n).map(|_| noise.float()).collect();
    let mut results = Vec::new();
    for threads in [1, 3] {
        let mut gpu = Gpu { threads, ..Gpu::default() };
        let (da, db, out) = (gpu.upload(&a), gpu.upload(&b), gpu.alloc(4 * n * n));
        let args = [Arg::Ptr(&out), Arg::Ptr(&da), Arg::Ptr(&db), Arg::Int(n as i32)];
        gpu.run(&kernel!("gemm"), [4, 4, 1], [16, 16, 1], &args).unwrap();
        results.push(out.read::<u32>(n * n));
    }
    assert_eq!(results[0], results[1]);
    for row in 0..n {
        for col in 0..n {
            let want = (0..n).fold(0f32, |s, k| a[row * n + k].mul_add(b[k * n + col], s));
            assert_eq!(f32::from_bits(results[0][row * n + col]), want, "{row} {col}");
        }
    }
}

/// Threads have stacks here that no host can give, so that every start of one fails.
#[test]
fn a_grid_runs_where_the_host_gives_no_threads() {
    let this = std::env::current_exe().expect("a test program");
    let test = "kernels::matrix_product_on_one_and_many_threads";
    let mut alone = std::process::Command::new(this);
    let ended =
        alone.args([test, "--exact", "--test-threads=1"]).env("RUST_MIN_STACK", (1u64 << 50).to_string()).output();
    let ended = ended.expect("the test program starts");
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&ended.stderr));
}

/// A child has none of the threads that helped its parent, and must not wait for them.
#[test]
#[allow(unsafe_code, reason = "a fork")]
fn a_forked_child_has_helpers_of_its_own() {
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, alarm, fork};
    matrix_product_on_one_and_many_threads();
    // SAFETY: the child uses memory and the engine, whose locks are free in a child, and ends without the destructors of its parent.
    let child = match unsafe { fork() }.expect("a child") {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            alarm::set(60);
            let ended = std::panic::catch_unwind(matrix_product_on_one_and_many_threads);
            // SAFETY: nothing is left to do.
            unsafe { nix::libc::_exit(i32::from(ended.is_err())) }
        }
    };
    assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
}

#[test]
fn section_7_8_barriers_with_counts_and_reductions() {
    let mut gpu = Gpu::default();
    let (out, n) = (gpu.alloc(4 * 3 * 128), 50);
    gpu.run(&kernel!("barriers"), [1, 1, 1], [128, 1, 1], &[Arg::Ptr(&out), Arg::Int(n)]).unwrap();
    let got = out.read::<i32>(3 * 128);
    for t in 0..128 {
        assert_eq!(got[3 * t], n);
        assert_eq!(got[3 * t + 1], 2);
        assert_eq!(got[3 * t + 2], if t < 96 { 1 } else { 0 });
    }
}

#[test]
fn section_7_5_generic_pointers() {
    let mut gpu = Gpu::default();
    let values: Vec<i32> = (0..64).map(|i| 1000 + i).collect();
    let (input, out) = (gpu.upload(&values), gpu.alloc(4 * 32));
    gpu.run(&kernel!("generic"), [1, 1, 1], [32, 1, 1], &[Arg::Ptr(&out), Arg::Ptr(&input)]).unwrap();
    let got = out.read::<i32>(32);
    let base = input.read::<i32>(1)[0];
    assert_eq!(base, 1016);
    // The kernel reads the counter in global memory while it counts. The lanes go in order.
    for t in 0..32 {
        let counter = if t & 1 == 1 { t / 2 } else { 1000 + t / 2 };
        let first = if t & 1 == 1 { t * 10 } else { 1000 + t };
        let _ = (counter, first);
        let factor = if t & 4 != 0 { 1 } else { 2 };
        let table = if t & 2 != 0 { 1000 } else { 1016 + 1001 + 1002 + 1003 };
        let rest = got[t as usize] - table * factor;
        // p[i] is read before the atomic, and only lane 0 reads the counter itself.
        assert_eq!(rest, first + counter, "lane {t}");
    }
}

#[test]
fn lanes_that_spin_for_each_other() {
    let mut gpu = Gpu { budget: Some(100_000_000), ..Gpu::default() };
    let (lock, count) = (gpu.alloc(4), gpu.alloc(4));
    gpu.run(&kernel!("spin"), [2, 1, 1], [32, 1, 1], &[Arg::Ptr(&lock), Arg::Ptr(&count)]).unwrap();
    assert_eq!(count.read::<i32>(1), [64]);
}

#[test]
fn asynchronous_copy_and_matrix_load() {
    let (mut gpu, mut noise) = (Gpu::default(), Noise(10));
    let data: Vec<u32> = (0..128).map(|_| noise.next() as u32).collect();
    let (input, out) = (gpu.upload(&data), gpu.alloc(4 * 160));
    gpu.run(&kernel!("async_copy"), [1, 1, 1], [32, 1, 1], &[Arg::Ptr(&out), Arg::Ptr(&input)]).unwrap();
    let got = out.read::<u32>(160);
    for lane in 0..32 {
        for m in 0..4 {
            // Row lane / 4 of matrix m lies at the address that lane 8m + lane / 4 gave.
            assert_eq!(got[m * 32 + lane], data[(m * 8 + lane / 4) * 4 + lane % 4]);
        }
        let half = |row: usize, col: usize| data[row * 4 + col / 2] >> (16 * (col & 1)) & 0xffff;
        let (r, c) = (lane / 4, lane % 4 * 2);
        assert_eq!(got[128 + lane], half(c, r) | half(c + 1, r) << 16);
    }
}

/// An f16 as a number.
fn half(x: u32) -> f32 {
    let (sign, exp, frac) = ((x >> 15 & 1), (x >> 10 & 31) as i32, x & 0x3ff);
    let v = match exp {
        0 => frac as f32 * two_to(-24) as f32,
        _ => (1.0 + frac as f32 / 1024.0) * two_to(exp - 15) as f32,
    };
    if sign == 1 { -v } else { v }
}

#[test]
fn tensor_core() {
    let (mut gpu, mut noise) = (Gpu::default(), Noise(11));
    // The inputs are small integers as halves, so every sum is exact.
    let mut small = || {
        let v = noise.next() % 9;
        [0u32, 0x3c00, 0x4000, 0x4200, 0x4400, 0xbc00, 0xc000, 0xc200, 0xc400][v as usize]
    };
    let a: Vec<Vec<u32>> = (0..16).map(|_| (0..16).map(|_| small()).collect()).collect();
    let b: Vec<Vec<u32>> = (0..16).map(|_| (0..8).map(|_| small()).collect()).collect();
    let (mut fa, mut fb) = (vec![0u32; 128], vec![0u32; 64]);
    for lane in 0..32 {
        let (g, t) = (lane / 4, lane % 4);
        for r in 0..4 {
            let (row, col) = (g + 8 * (r % 2), 2 * t + 8 * (r / 2));
            fa[lane * 4 + r] = a[row][col] | a[row][col + 1] << 16;
        }
        for r in 0..2 {
            let k = 2 * t + 8 * r;
            fb[lane * 2 + r] = b[k][g] | b[k + 1][g] << 16;
        }
    }
    let (da, db, out) = (gpu.upload(&fa), gpu.upload(&fb), gpu.alloc(4 * 128));
    gpu.run(&kernel!("tensor"), [1, 1, 1], [32, 1, 1], &[Arg::Ptr(&out), Arg::Ptr(&da), Arg::Ptr(&db)]).unwrap();
    let got = out.read::<f32>(128);
    for lane in 0..32 {
        for i in 0..4 {
            let (row, col) = (lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2);
            let sum: f32 = (0..16).map(|k| half(a[row][k]) * half(b[k][col])).sum();
            assert_eq!(got[lane * 4 + i], sum + (i + 1) as f32, "{row} {col}");
        }
    }
}

/// An f16 that is a small integer or quarter.
fn to_half(x: f32) -> u32 {
    (0..0x1_0000u32).find(|&h| h & 0x7c00 != 0x7c00 && half(h) == x).unwrap_or_else(|| panic!("{x} is no half"))
}

#[test]
fn packed_halves() {
    let (mut gpu, mut noise) = (Gpu::default(), Noise(12));
    let quarter = |noise: &mut Noise| (noise.next() % 33) as f32 / 4.0 - 4.0;
    let pairs: Vec<[f32; 2]> = (0..64).map(|_| [quarter(&mut noise), quarter(&mut noise)]).collect();
    let packed: Vec<u32> = pairs.iter().map(|p| to_half(p[0]) | to_half(p[1]) << 16).collect();
    let floats: Vec<f32> = (0..64).map(|_| quarter(&mut noise)).collect();
    let (input, singles, out) = (gpu.upload(&packed), gpu.upload(&floats), gpu.alloc(4 * 8 * 32));
    let args = [Arg::Ptr(&out), Arg::Ptr(&input), Arg::Ptr(&singles)];
    gpu.run(&kernel!("halves"), [1, 1, 1], [32, 1, 1], &args).unwrap();
    let got = out.read::<u32>(8 * 32);
    // The results are compared as numbers, because the sign of a zero is checked in the tests of the arithmetic.
    let numbers = |x: u32| [half(x & 0xffff), half(x >> 16)];
    let both = |f: &dyn Fn(usize) -> f32| [f(0), f(1)];
    for t in 0..32 {
        let (x, y, o) = (pairs[t], pairs[t + 32], &got[8 * t..8 * t + 8]);
        assert_eq!(numbers(o[0]), both(&|i| x[i] + y[i]));
        assert_eq!(numbers(o[1]), both(&|i| x[i] * y[i]));
        assert_eq!(numbers(o[2]), both(&|i| x[i] * y[i] + x[i]));
        assert_eq!(numbers(o[4]), both(&|i| x[i].max(y[i])));
        assert_eq!(o[5], to_half(floats[t + 32]) | to_half(floats[t]) << 16);
        let bf16 = |x: f32| x.to_bits() >> 16;
        assert_eq!(o[6], bf16(floats[t + 32]) | bf16(floats[t]) << 16);
        assert_eq!(numbers(o[7]), both(&|i| f32::from(u8::from(x[i] < y[i]))));
    }
}
