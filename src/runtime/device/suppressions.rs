//! Reports about GPU code that the user knows (`TEGRARM_SUPPRESSIONS`): they are neither printed nor counted.

use once_cell::race::OnceBox;
use std::ops::RangeInclusive;
use tegrarm_output::say;

/// The variable that names the file of known reports.
const FILE: &str = "TEGRARM_SUPPRESSIONS";

/// A known report.
#[derive(Debug, Default, PartialEq, Eq)]
struct Suppression {
    /// The kind of the report.
    kind: String,
    /// The kernel or function, the file and the lines of one of its places.
    function: Option<String>,
    file: Option<String>,
    lines: Option<RangeInclusive<u32>>,
}

/// Whether the user knows this report.
pub(super) fn is_known(report: &str) -> bool {
    is_suppressed(suppressions(), report)
}

/// The known reports of this process. A file with a mistake suppresses nothing, and the mistake is told.
fn suppressions() -> &'static [Suppression] {
    static LIST: OnceBox<Vec<Suppression>> = OnceBox::new();
    let read = || {
        let Some(path) = std::env::var_os(FILE).filter(|path| !path.is_empty()) else { return Vec::new() };
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string());
        text.and_then(|text| parse(&text)).unwrap_or_else(|why| {
            say(&format!("{FILE}={}: {why}; nothing is suppressed", path.display()));
            Vec::new()
        })
    };
    LIST.get_or_init(|| Box::new(read()))
}

/// Reads a file of known reports. Each is between braces: its name, the kind of the report, and lines that say where it is.
fn parse(text: &str) -> Result<Vec<Suppression>, String> {
    let (mut list, mut open): (Vec<Suppression>, Option<Vec<&str>>) = (Vec::new(), None);
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        match (line, &mut open) {
            ("", _) => {}
            (comment, _) if comment.starts_with('#') => {}
            ("{", None) => open = Some(Vec::new()),
            ("}", Some(lines)) => {
                list.push(one(lines).map_err(|why| format!("line {number}: {why}"))?);
                open = None;
            }
            (line, Some(lines)) => lines.push(line),
            (line, None) => return Err(format!("line {number}: {line:?} is not between braces")),
        }
    }
    if open.is_some() { Err("the last brace is not closed".to_owned()) } else { Ok(list) }
}

/// The known report that the lines between two braces describe.
fn one(lines: &[&str]) -> Result<Suppression, String> {
    let [_, kind, places @ ..] = lines else { return Err("a name and a kind are missing".to_owned()) };
    if !["memory", "init", "race", "sync", "order", "cpu", "*"].contains(kind) {
        return Err(format!("{kind:?} is no kind of report: memory, init, race, sync, order, cpu, or * for all"));
    }
    let mut known = Suppression { kind: (*kind).to_owned(), ..Suppression::default() };
    for place in places {
        let (what, value) = place.split_once(':').unwrap_or((place, ""));
        let value = value.trim();
        match what.trim() {
            "kernel" if !value.is_empty() => known.function = Some(value.to_owned()),
            "file" if !value.is_empty() => known.file = Some(value.to_owned()),
            "line" => {
                let (first, last) = value.split_once('-').unwrap_or((value, value));
                let number = |n: &str| {
                    n.trim().parse::<u32>().map_err(|_| format!("{value:?} is no line, and no range of lines"))
                };
                known.lines = Some(number(first)?..=number(last)?);
            }
            _ => return Err(format!("{place:?} is none of: kernel: NAME, file: NAME, line: NUMBER")),
        }
    }
    Ok(known)
}

/// Whether one of the known reports is this one.
fn is_suppressed(list: &[Suppression], report: &str) -> bool {
    let kind = report.strip_prefix("tegrarm-check: ").and_then(|rest| rest.split(':').next()).unwrap_or_default();
    let of_kind = |known: &&Suppression| known.kind == "*" || known.kind == kind;
    let mut places = report.lines().skip(1).map(place);
    let candidates: Vec<_> = list.iter().filter(of_kind).collect();
    let anywhere = |known: &&Suppression| known.function.is_none() && known.file.is_none() && known.lines.is_none();
    candidates.iter().any(anywhere) || places.any(|place| candidates.iter().any(|known| known.is_at(&place)))
}

/// The function, the file and the line of an instruction, as far as the line of a report has them.
type Named<'l> = (Option<&'l str>, Option<&'l str>, Option<u32>);

/// Reads `… at pc 0x10 (kernel name+0x10 (file:line)): …`.
fn place(line: &str) -> Named<'_> {
    let rest = [" (kernel ", " (function "].iter().find_map(|what| Some(line.split_once(what)?.1));
    let Some((function, rest)) = rest.and_then(|rest| rest.split_once("+0x")) else { return (None, None, None) };
    let inner = rest.split_once(" (").filter(|(offset, _)| offset.chars().all(|c| c.is_ascii_hexdigit()));
    let at = inner.and_then(|(_, rest)| rest.split_once(")): ")?.0.rsplit_once(':'));
    (Some(function), at.map(|at| at.0), at.and_then(|at| at.1.parse().ok()))
}

impl Suppression {
    /// Whether all that is known of the place is true of this one.
    fn is_at(&self, (function, file, line): &Named<'_>) -> bool {
        let is = |wanted: &Option<String>, found: &Option<&str>| {
            wanted.as_ref().is_none_or(|wanted| found.is_some_and(|found| matches(wanted.as_bytes(), found.as_bytes())))
        };
        let in_lines = self.lines.as_ref().is_none_or(|lines| line.is_some_and(|line| lines.contains(&line)));
        is(&self.function, function) && is(&self.file, file) && in_lines
    }
}

/// Whether a text is as a pattern says, in which `*` stands for any text and `?` for any character.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => (0..=text.len()).any(|from| matches(rest, &text[from..])),
        ([b'?', pattern @ ..], [_, text @ ..]) => matches(pattern, text),
        ([a, pattern @ ..], [b, text @ ..]) => a == b && matches(pattern, text),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "tegrarm-check: race: shared memory at 0x0 is accessed by threads of warps with no barrier between them\n    \
        store by thread (32, 0, 0) of block (0, 0, 0) at pc 0x10 (kernel reverse+0x10 (/some where/reverse.cu:5)): STS [R0], R1\n    \
        earlier load by thread (1, 0, 0) of block (0, 0, 0) at pc 0x20 (function part+0x20 (part.cuh:9)): LDS R0, [R1]\n";

    #[test]
    fn a_known_report_is_known_by_its_kind_and_one_of_its_places() {
        let is_known = |lines: &str| {
            let list =
                parse(&format!("# why\n{{\n  a name\n{lines}\n}}\n")).unwrap_or_else(|why| panic!("{lines}: {why}"));
            is_suppressed(&list, REPORT)
        };
        for known in [
            "race",
            "*",
            "race\nkernel: reverse",
            "*\nkernel: rev*e\nfile: */reverse.cu\nline: 5",
            "race\nkernel: p?rt\nline: 8-10",
            "race\nfile: part.cuh",
            "race\nline: 9",
        ] {
            assert!(is_known(known), "{known}");
        }
        for other in [
            "memory",
            "sync\nkernel: reverse",
            "race\nkernel: revers",
            "race\nkernel: reverse\nline: 9",
            "race\nfile: reverse.cu",
            "race\nline: 6-8",
            "race\nkernel: part\nfile: */reverse.cu",
        ] {
            assert!(!is_known(other), "{other}");
        }
        assert!(!is_suppressed(&[], REPORT));
    }

    #[test]
    fn a_mistake_in_the_file_is_told_with_its_line() {
        for (text, why) in [
            ("race", "line 1: \"race\" is not between braces"),
            ("{\nname\n}", "line 3: a name and a kind are missing"),
            ("{\nname\nspeed\n}", "line 4: \"speed\" is no kind of report"),
            ("{\nname\nrace\nline: x\n}", "line 5: \"x\" is no line"),
            ("{\nname\nrace\nblock: 3\n}", "line 5: \"block: 3\" is none of"),
            ("{\nname\nrace\n", "the last brace is not closed"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.starts_with(why), "{error}");
        }
        assert_eq!(parse("\n# nothing\n"), Ok(Vec::new()));
    }
}
