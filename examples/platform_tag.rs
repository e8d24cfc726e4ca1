//! Prints the platform tag of a wheel that contains a shared library: `manylinux_2_34_x86_64` for one that needs nothing
//! newer than glibc 2.34. Pip of an older system then refuses the wheel, with a sentence, before the loader would.
//!
//! `platform_tag libtegrarm.so [...]`: the newest that any of them needs.

use goblin::elf::{Elf, header};
use std::error::Error;

/// A version of glibc, and an architecture.
type Platform = ((u32, u32), &'static str);

/// The newest version that symbols of the file ask for, and the file's architecture.
fn needs(bytes: &[u8]) -> Result<Platform, Box<dyn Error>> {
    let elf = Elf::parse(bytes)?;
    let machine = match elf.header.e_machine {
        header::EM_X86_64 => "x86_64",
        header::EM_AARCH64 => "aarch64",
        other => return Err(format!("machine {other}: not one that wheels are made for").into()),
    };
    let versions = elf.verneed.iter().flat_map(|needed| needed.iter().collect::<Vec<_>>());
    let names = versions.flat_map(|needed| needed.iter().collect::<Vec<_>>());
    let glibc = names.filter_map(|version| {
        let (major, minor) = elf.dynstrtab.get_at(version.vna_name)?.strip_prefix("GLIBC_")?.split_once('.')?;
        Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
    });
    Ok((glibc.max().ok_or("it needs no version of glibc")?, machine))
}

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let found = files.iter().map(|path| needs(&std::fs::read(path)?)).collect::<Result<Vec<_>, _>>()?;
    let ((major, minor), machine) = found.iter().max().ok_or("name at least one shared library")?;
    println!("manylinux_{major}_{minor}_{machine}");
    Ok(())
}
