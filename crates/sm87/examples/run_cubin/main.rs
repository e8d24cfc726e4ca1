//! Disassembles a kernel of a cubin and runs it without a driver, a kernel model or a command stream.
//!
//! ```text
//! run_cubin FILE KERNEL [--grid X,Y,Z] [--block X,Y,Z] [--shared BYTES] PARAMETER...
//! ```
//!
//! A parameter is a number with its type (`i32=7`, `f32=1.5`) or a buffer: `f32x256` has 256 numbers that count from 0,
//! and `f32x256=1` has ones. The contents of the buffers are printed after the run.
//!
//! `cargo run -p sm87 --example run_cubin vecadd.cubin vecadd --grid 2 --block 128 f32x256 f32x256=1 f32x256=0 u32=256`

mod cubin;
mod machine;
mod parameter;

use cubin::Kernel;
use machine::Machine;
use parameter::Parameter;
use std::fmt::Write;
use std::process::ExitCode;

/// The size of an instruction in bytes.
const WORD: usize = 16;
/// The count of numbers of a buffer that are printed.
const SHOWN: usize = 8;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match report(&arguments) {
        Ok(text) => print!("{text}"),
        Err(why) => {
            eprintln!("run_cubin: {why}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// The request in the command line.
struct Request {
    file: String,
    kernel: String,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    parameters: Vec<Parameter>,
}

impl Request {
    fn parse(arguments: &[String]) -> Result<Request, String> {
        let mut rest = arguments.iter();
        let mut next = |what: &str| rest.next().cloned().ok_or(format!("{what} is missing"));
        let (file, kernel) = (next("the name of a cubin")?, next("the name of a kernel")?);
        let mut request = Request { file, kernel, grid: [1; 3], block: [1; 3], shared: 0, parameters: Vec::new() };
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--grid" => request.grid = axes(value()?)?,
                "--block" => request.block = axes(value()?)?,
                "--shared" => request.shared = number(value()?)?,
                _ => request.parameters.push(argument.parse()?),
            }
        }
        Ok(request)
    }
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text:?} is no number"))
}

/// One to three sizes. A size that is left out is 1.
fn axes(text: &str) -> Result<[u32; 3], String> {
    let mut sizes = [1; 3];
    for (i, part) in text.split(',').enumerate() {
        *sizes.get_mut(i).ok_or(format!("{text:?} has more than three sizes"))? = number(part)?;
    }
    Ok(sizes)
}

/// All text that the program prints.
pub fn report(arguments: &[String]) -> Result<String, String> {
    let request = Request::parse(arguments)?;
    let bytes = std::fs::read(&request.file).map_err(|why| format!("{}: {why}", request.file))?;
    let kernel = Kernel::read(&bytes, &request.kernel).map_err(|why| format!("{}: {why}", request.file))?;
    let mut machine = Machine::default();
    let buffers: Vec<_> = request.parameters.iter().map(|p| p.contents().map(|bytes| machine.upload(&bytes))).collect();
    let values: Vec<Vec<u8>> = request.parameters.iter().zip(&buffers).map(|(p, b)| p.value(b.as_ref())).collect();
    let bank = kernel.parameter_bank(&values)?;
    let launch = machine.launch(&kernel, bank, request.grid, request.block, request.shared);
    let stats = sm87::run(&launch).map_err(|stopped| format!("the kernel stopped: {:?}", stopped.fault))?;

    let mut out = listing(&request.kernel, &kernel.code);
    writeln!(out, "{} warp instructions, {} thread instructions", stats.warp_instructions, stats.thread_instructions)
        .expect("a string takes everything");
    for (i, (parameter, buffer)) in request.parameters.iter().zip(&buffers).enumerate() {
        let Some(buffer) = buffer else { continue };
        let shown = parameter.show(&buffer.read(), SHOWN).join(" ");
        writeln!(out, "parameter {i}: {shown}").expect("a string takes everything");
    }
    Ok(out)
}

/// The kernel as text, with address 0 for its first instruction.
fn listing(name: &str, code: &[u8]) -> String {
    let mut out = format!("{name}:\n");
    for (i, raw) in code.as_chunks::<WORD>().0.iter().enumerate() {
        let (word, pc) = (u128::from_le_bytes(*raw), (WORD * i) as u64);
        let text = sm87::disassemble(word as u64, (word >> 64) as u64, pc);
        let text = text.as_deref().unwrap_or("unknown");
        writeln!(out, "  {pc:#06x}  {text}").expect("a string takes everything");
    }
    out
}
