//! Calls of the allocator of GPU addresses, as lines of a file.

use tegra_mm::{Buddy, PageClass};

/// A range of addresses that an allocator has.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub start: u64,
    pub end: u64,
    /// Whether the address space has big pages. The range then begins and ends with an entry of a page directory.
    pub big_pages: bool,
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    Take { size: u64, class: PageClass },
    TakeFixed { base: u64, size: u64, class: PageClass },
    Give { address: u64 },
}

const CLASSES: [(&str, PageClass); 2] = [("small", PageClass::Small), ("big", PageClass::Big)];

fn word(class: PageClass) -> &'static str {
    if class == PageClass::Big { CLASSES[1].0 } else { CLASSES[0].0 }
}

impl Call {
    /// Makes the call on the model's allocator. The result is the address of what was taken, or 0.
    pub fn answer(self, model: &mut Buddy) -> u64 {
        match self {
            Call::Take { size, class } => model.alloc(size, class).unwrap_or(0),
            Call::TakeFixed { base, size, class } => {
                if model.alloc_fixed(base, size, class) {
                    base
                } else {
                    0
                }
            }
            Call::Give { address } => {
                model.free(address);
                0
            }
        }
    }

    pub fn to_line(self) -> String {
        match self {
            Call::Take { size, class } => format!("take {size:x} {}", word(class)),
            Call::TakeFixed { base, size, class } => format!("fixed {base:x} {size:x} {}", word(class)),
            Call::Give { address } => format!("give {address:x}"),
        }
    }

    pub fn from_line(line: &str) -> Option<Call> {
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let class = |text: &str| CLASSES.iter().find(|(name, _)| *name == text).map(|(_, class)| *class);
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["take", size, of] => Some(Call::Take { size: number(size)?, class: class(of)? }),
            ["fixed", base, size, of] => {
                Some(Call::TakeFixed { base: number(base)?, size: number(size)?, class: class(of)? })
            }
            ["give", address] => Some(Call::Give { address: number(address)? }),
            _ => None,
        }
    }
}

impl Range {
    pub fn to_line(self) -> String {
        format!("# {:x} {:x} {}", self.start, self.end, if self.big_pages { "big" } else { "small" })
    }

    pub fn from_line(line: &str) -> Option<Range> {
        let mut words = line.strip_prefix("# ")?.split(' ');
        let mut number = || u64::from_str_radix(words.next()?, 16).ok();
        let (start, end) = (number()?, number()?);
        Some(Range { start, end, big_pages: words.next()? == "big" })
    }
}
