//! Files that the user asked for.

use std::error::Error;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Makes a new file for the output of an option.
///
/// # Errors
/// The sentence that names the option and the file.
pub fn create(option: &str, path: &Path) -> Result<File, Box<dyn Error>> {
    File::create(path).map_err(|e| format!("{option} cannot be written to {}: {e}", path.display()).into())
}

/// A file to which lines are written while the program runs. A full disk does not stop the program, but the user is told
/// at the first line that is lost.
pub struct Told {
    option: &'static str,
    file: File,
    said: bool,
}

impl Told {
    /// Makes the file.
    ///
    /// # Errors
    /// That of [`create`].
    pub fn create(option: &'static str, path: &Path) -> Result<Box<Told>, Box<dyn Error>> {
        Ok(Box::new(Told { option, file: create(option, path)?, said: false }))
    }
}

impl Write for Told {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes);
        if let Err(e) = &written
            && e.kind() != ErrorKind::Interrupted
            && !std::mem::replace(&mut self.said, true)
        {
            super::say(format_args!("{} is not complete: {e}", self.option));
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
