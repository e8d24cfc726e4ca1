//! The generated structures against what a compiler of C makes of the header.

use crate::header::LAYOUTS;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// A program that prints every size and offset, in the order of [`LAYOUTS`].
fn program() -> String {
    let mut text = "#include <stdio.h>\n#include \"tegrarm.h\"\nint main(void) {\n".to_owned();
    for (name, _, fields) in LAYOUTS {
        writeln!(text, "printf(\"{name} %zu\\n\", sizeof(struct {name}));").unwrap();
        for (field, _) in *fields {
            writeln!(text, "printf(\"{name}.{field} %zu\\n\", offsetof(struct {name}, {field}));").unwrap();
        }
    }
    text + "return 0; }\n"
}

#[test]
fn a_compiler_of_c_gives_the_structures_of_the_header_the_same_layout() {
    let folder = std::env::temp_dir().join(format!("tegrarm-client-layout-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, binary) = (folder.join("layout.c"), folder.join("layout"));
    std::fs::write(&source, program()).unwrap();
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let compiled =
        Command::new(&compiler).arg("-I").arg(&headers).arg(&source).arg("-o").arg(&binary).status().unwrap();
    let said = Command::new(&binary).output();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(compiled.success(), "{compiler} does not compile the header");
    let mut ours = String::new();
    for (name, size, fields) in LAYOUTS {
        writeln!(ours, "{name} {size}").unwrap();
        for (field, offset) in *fields {
            writeln!(ours, "{name}.{field} {offset}").unwrap();
        }
    }
    assert_eq!(ours, String::from_utf8(said.unwrap().stdout).unwrap());
    let header = std::fs::read_to_string(headers.join("tegrarm.h")).unwrap();
    let declared = header.lines().filter(|line| line.starts_with("struct ") && line.ends_with(" {")).count();
    assert_eq!(LAYOUTS.len(), declared, "the structures that the header declares");
}
