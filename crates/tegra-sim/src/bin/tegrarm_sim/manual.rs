//! Makes man pages and completions from the description of the command line. `make docs` writes them to `packaging`.

use clap::Command;
use clap_complete::Shell;
use std::io;
use std::path::Path;

/// Writes `tegrarm-sim.1`, a page for each command, and the completions.
///
/// # Errors
/// The error of the file system.
pub fn write(command: Command, directory: &Path) -> io::Result<()> {
    let (pages, completions) = (directory.join("man"), directory.join("completions"));
    std::fs::create_dir_all(&pages)?;
    std::fs::create_dir_all(&completions)?;
    let name = command.get_name().to_owned();
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command.clone(), &name, &completions)?;
    }
    clap_mangen::generate_to(command.disable_help_subcommand(true), &pages)
}
