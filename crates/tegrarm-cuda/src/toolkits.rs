//! What NVIDIA's wheels and toolkits have for PTX: where nvJitLink is, and ptxas, which runs as a process of its own.

use once_cell::race::OnceBox;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where packages of Python are installed, as far as this process has to do with Python.
fn sites() -> Vec<PathBuf> {
    let mut sites = Vec::new();
    // A Python program has loaded something from its site-packages, and its first argument is in its environment.
    if let Ok(maps) = std::fs::read_to_string("/proc/self/maps") {
        for line in maps.lines() {
            for name in ["/site-packages/", "/dist-packages/"] {
                if let (Some(start), Some(end)) = (line.find('/'), line.find(name)) {
                    sites.push(PathBuf::from(&line[start..end + name.len()]));
                }
            }
        }
    }
    let first = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let first = String::from_utf8_lossy(first.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned();
    let environments =
        [std::env::var_os("VIRTUAL_ENV").map(PathBuf::from), Path::new(&first).ancestors().nth(2).map(Path::to_owned)];
    for prefix in environments.into_iter().flatten() {
        let versions = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
        sites.extend(versions.map(|version| version.path().join("site-packages")).filter(|path| path.is_dir()));
    }
    // The wheel of tegrarm lies beside those of NVIDIA.
    sites.extend(
        crate::api::own_path()
            .iter()
            .flat_map(|path| path.ancestors())
            .filter(|path| path.ends_with("site-packages"))
            .map(Path::to_owned),
    );
    sites.sort();
    sites.dedup();
    sites
}

/// Folders of the wheels, by their places in a folder of packages, and then those of each toolkit.
fn folders(of_wheels: &[&str], of_toolkits: &[&str]) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        sites().iter().flat_map(|site| of_wheels.iter().map(|place| site.join(place))).collect();
    let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    for home in homes.chain([PathBuf::from("/usr/local/cuda")]) {
        folders.extend(of_toolkits.iter().map(|place| home.join(place)));
    }
    folders
}

/// The folders in which nvJitLink may be.
pub fn libraries() -> Vec<PathBuf> {
    // A toolkit has lib64, and the wheels of CUDA 13, which CUDA_HOME may name, have lib.
    folders(&["nvidia/cu13/lib", "nvidia/nvjitlink/lib"], &["lib64", "lib"])
}

/// The first ptxas that can be run: of the wheels, Triton's among them, of a toolkit, or in a folder of `PATH`.
pub fn ptxas() -> Option<&'static Path> {
    static FOUND: OnceBox<Option<PathBuf>> = OnceBox::new();
    let look = || {
        let near = folders(&["nvidia/cu13/bin", "nvidia/cuda_nvcc/bin", "triton/backends/nvidia/bin"], &["bin"]);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = near.into_iter().chain(std::env::split_paths(&path).filter(|folder| folder.is_absolute()));
        let runs =
            |path: &PathBuf| path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
        all.map(|folder| folder.join("ptxas")).find(runs)
    };
    FOUND.get_or_init(|| Box::new(look())).as_deref()
}

/// A folder for the files of one compilation, which ends with them.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch, Error> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            let name = format!("tegrarm-ptx-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let path = std::env::temp_dir().join(name);
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Scratch(path)),
                // Another process had this number, and left its folder.
                Err(why) if why.kind() == ErrorKind::AlreadyExists => {}
                Err(why) => return Err(why),
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Compiles one PTX. Returns the machine code, and what ptxas says.
pub fn assemble(ptxas: &Path, ptx: &[u8], arguments: &[String], arch: &str) -> (Option<Vec<u8>>, String) {
    match run(ptxas, ptx, arguments, arch) {
        Ok(result) => result,
        Err(why) => (None, why.to_string()),
    }
}

fn run(ptxas: &Path, ptx: &[u8], arguments: &[String], arch: &str) -> Result<(Option<Vec<u8>>, String), Error> {
    let scratch = Scratch::new()?;
    let (input, output) = (scratch.0.join("module.ptx"), scratch.0.join("module.cubin"));
    std::fs::write(&input, ptx)?;
    // nvJitLink and ptxas have the same options, and one of them by two names.
    let arguments = arguments.iter().map(|argument| if argument == "-verbose" { "-v" } else { argument });
    let mut command = Command::new(ptxas);
    command.arg(format!("-arch=sm_{arch}")).args(arguments).arg("-o").arg(&output).arg(&input);
    let done = command.stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    Ok(if done.status.success() { (Some(std::fs::read(&output)?), said) } else { (None, said) })
}
