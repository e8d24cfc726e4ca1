//! What to tell a program whose memory the kernel refused: whether there is any, and what helps if there is.

use super::gpu::meminfo;
use crate::status::RmError;
use tegrarm_abi::rm::status::NV_ERR_NO_MEMORY;
use tegrarm_kmd::Kmd;

/// A release line of L4T in which nvmap refuses buffers although memory is free, since it has the fix of CVE-2025-33177
/// (docs/hardware/nvmap.md#refusals).
struct Line {
    /// The first number of the release.
    line: u32,
    /// The release that came with the fix.
    since: (u32, u32),
    /// The release in which the fix refuses less, and its JetPack.
    until: (u32, u32),
    jetpack: &'static str,
}

static LINES: [Line; 2] = [
    Line { line: 35, since: (6, 3), until: (6, 4), jetpack: "5.1.6" },
    Line { line: 36, since: (4, 7), until: (5, 0), jetpack: "6.2.2" },
];

impl Line {
    /// Its first release that refuses less, as L4T writes it.
    fn better(&self) -> String {
        match self.until {
            (major, 0) => format!("{}.{major}", self.line),
            (major, minor) => format!("{}.{major}.{minor}", self.line),
        }
    }
}

/// A release of L4T.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct L4t {
    line: u32,
    revision: (u32, u32),
}

impl L4t {
    /// Reads the first line of `/etc/nv_tegra_release`: `# R36 (release), REVISION: 4.7, …`.
    fn of(text: &str) -> Option<L4t> {
        let line = text.trim_start_matches(['#', ' ']).strip_prefix('R')?.split([' ', '(']).next()?.parse().ok()?;
        let revision = text.split("REVISION:").nth(1)?.split(',').next()?.trim();
        let (major, minor) = revision.split_once('.').unwrap_or((revision, "0"));
        Some(L4t { line, revision: (major.parse().ok()?, minor.parse().ok()?) })
    }

    /// The row of the table, if this release is one that refuses more.
    fn row(self) -> Option<&'static Line> {
        LINES.iter().find(|row| row.line == self.line && (row.since..row.until).contains(&self.revision))
    }
}

/// Adds to the error of an allocation of `size` bytes how much memory there is, and, if there is enough, why the kernel may
/// have refused it and what helps. Other errors are not changed.
#[cold]
pub(super) fn explain(kmd: &dyn Kmd, size: u64, error: RmError) -> RmError {
    if error.status != NV_ERR_NO_MEMORY {
        return error;
    }
    let Ok([available, free]) = meminfo(kmd, ["MemAvailable", "MemFree"]) else { return error };
    let release = kmd.read_text("/etc/nv_tegra_release").ok().and_then(|text| L4t::of(&text));
    RmError::new(error.status, format!("{}; {}", error.text, advice(size, available, free, release)))
}

fn advice(size: u64, available: u64, free: u64, release: Option<L4t>) -> String {
    let wanted = format!("{size} bytes are wanted and {available} are available");
    if size > available {
        return format!("{wanted}: free some, or end other programs");
    }
    let cache = format!(
        "free the kernel's page cache as root before the program starts (sync; echo 3 > /proc/sys/vm/drop_caches): \
         without it {free} bytes are free"
    );
    let fix = "the fix of CVE-2025-33177, which refuses buffers although memory is available";
    match release.and_then(|release| Some((release, release.row()?))) {
        Some((L4t { line, revision: (major, minor) }, row)) => format!(
            "{wanted}. L4T {line}.{major}.{minor} has {fix}: update to L4T {} (JetPack {}), or {cache}. Smaller buffers \
             can be had",
            row.better(),
            row.jetpack
        ),
        None => {
            let with =
                LINES.each_ref().map(|row| format!("{}.{}.{}", row.line, row.since.0, row.since.1)).join(" and ");
            format!(
                "{wanted}. L4T {with} have {fix}, and after hours of work memory can be in small pieces: {cache}, or \
                 start the board again. Smaller buffers can be had"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read_as_l4t_writes_them() {
        let of = |text: &str| L4t::of(text).map(|l4t| (l4t.line, l4t.revision));
        assert_eq!(of("# R36 (release), REVISION: 4.7, GCID: 1, BOARD: generic\n"), Some((36, (4, 7))));
        assert_eq!(of("# R35 (release), REVISION: 6.3, GCID: 1"), Some((35, (6, 3))));
        assert_eq!(of("# R40 (release), REVISION: 1, GCID: 1"), Some((40, (1, 0))));
        assert_eq!(of("custom Yocto image"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn only_the_releases_between_the_fix_and_its_repair_are_named() {
        let named = |line, major, minor| L4t { line, revision: (major, minor) }.row().is_some();
        assert!(named(36, 4, 7) && named(36, 4, 9) && named(35, 6, 3));
        assert!(!named(36, 4, 4) && !named(36, 5, 0) && !named(36, 5, 2) && !named(35, 6, 4) && !named(39, 2, 0));
    }

    #[test]
    fn the_sentence_tells_what_helps() {
        let l4t = Some(L4t { line: 36, revision: (4, 7) });
        let told = advice(4 << 30, 5 << 30, 3 << 30, l4t);
        for part in ["L4T 36.4.7", "CVE-2025-33177", "L4T 36.5 (JetPack 6.2.2)", "drop_caches", "3221225472"] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert!(advice(4 << 30, 5 << 30, 3 << 30, None).contains("L4T 35.6.3 and 36.4.7"));
        let too_much = advice(6 << 30, 5 << 30, 3 << 30, l4t);
        assert!(too_much.contains("end other programs") && !too_much.contains("CVE"), "{too_much}");
    }
}
