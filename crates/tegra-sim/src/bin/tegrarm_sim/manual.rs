//! Makes man pages and completions from the description of the command line. `make docs` writes them to `packaging`.

use clap::Command;
use clap_complete::{Generator, Shell};
use std::io;
use std::path::Path;

/// The completion for bash names a subcommand in two ways if the program has a dash in its name, so that its options are
/// never found. This is the name that is looked for, and the one that is set.
const TWO_NAMES: (&str, &str) = ("tegrarm__subcmd__sim", "tegrarm__sim");

fn repaired(text: &[u8]) -> String {
    String::from_utf8_lossy(text).replace(TWO_NAMES.0, TWO_NAMES.1)
}

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
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command.clone(), &name, &mut text);
        std::fs::write(completions.join(shell.file_name(&name)), repaired(&text))?;
    }
    clap_mangen::generate_to(command.disable_help_subcommand(true), &pages)
}
