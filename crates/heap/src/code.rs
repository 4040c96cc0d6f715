//! Memory pages of the program's own file.

use std::ffi::c_void;
use std::io;

use rustix::mm::{Advice, madvise};

/// Read-only mapping of the program's file in which no page was modified.
#[derive(Debug)]
struct Mapping {
    /// Address of the first byte.
    start: usize,
    /// Length in bytes.
    length: usize,
    /// Bytes in memory.
    resident: usize,
}

/// Unmaps the resident code and constants of the program, and returns their bytes. Pages in use are mapped again, from
/// the page cache of the kernel, 64 KiB at a time.
///
/// A program that runs for months needs only a third of the code read during the start. Call once, when the program
/// serves.
///
/// # Errors
///
/// `/proc/self` is missing, or the kernel refuses.
pub fn release() -> io::Result<usize> {
    let mut released = 0;
    for mapping in mappings()? {
        // SAFETY: the part is mapped privately from a file, without the right to write, and none of its pages differs
        // from the file, so each byte reads after this call as before. The kernel assumes of any program that its file
        // does not change: a page is mapped when first read.
        #[allow(unsafe_code)]
        unsafe {
            madvise(
                mapping.start as *mut c_void,
                mapping.length,
                Advice::LinuxDontNeed,
            )?;
        }
        released += mapping.resident;
    }
    Ok(released)
}

fn mappings() -> io::Result<Vec<Mapping>> {
    let program = std::fs::read_link("/proc/self/exe")?;
    let smaps = std::fs::read_to_string("/proc/self/smaps")?;
    Ok(parse(&smaps, &program.to_string_lossy()))
}

/// Parses the [`Mapping`]s of `program` in the format of proc_pid_smaps(5). Mappings with modified pages (`Anonymous`)
/// are left out: the loader has written addresses into some of those.
fn parse(smaps: &str, program: &str) -> Vec<Mapping> {
    let mut found = Vec::new();
    let mut current: Option<Mapping> = None;
    for line in smaps.lines() {
        if let Some((start, length, rest)) = header(line) {
            current = is_code(rest, program).then_some(Mapping {
                start,
                length,
                resident: 0,
            });
        } else if let Some(size) = kibibytes(line, "Rss:") {
            if let Some(mapping) = &mut current {
                mapping.resident = size * 1024;
            }
        } else if kibibytes(line, "Anonymous:") == Some(0) {
            found.extend(current.take());
        }
    }
    found
}

/// Parses `55ee63da8000-55ee64b2c000 r-xp 00000000 fe:00 12 /path` into first address, length in bytes, and the rest.
fn header(line: &str) -> Option<(usize, usize, &str)> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    Some((start, end.checked_sub(start)?, rest))
}

/// True for a private mapping of the program's file without write permission.
fn is_code(rest: &str, program: &str) -> bool {
    (rest.starts_with("r-xp ") || rest.starts_with("r--p "))
        && rest
            .strip_suffix(program)
            .is_some_and(|before| before.ends_with(' '))
}

fn kibibytes(line: &str, name: &str) -> Option<usize> {
    let number = line.strip_prefix(name)?.strip_suffix("kB")?;
    number.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_to_and_what_is_of_other_files_stays() {
        let part = |header: &str, rss: u32, anonymous: u32| {
            format!(
                "{header}\nSize:  900 kB\nRss:  {rss} kB\nAnonymous:  {anonymous} kB\nVmFlags: rd mr\n"
            )
        };
        let smaps = [
            part("1000-3000 r--p 00000000 fe:00 7      /bin/it", 8, 0),
            part("3000-9000 r-xp 00002000 fe:00 7      /bin/it", 16, 0),
            part("9000-a000 r--p 00008000 fe:00 7      /bin/it", 4, 4),
            part("a000-b000 rw-p 00009000 fe:00 7      /bin/it", 4, 0),
            part("b000-c000 r-xp 00000000 fe:00 8      /usr/bin/it", 4, 0),
            part("c000-d000 r-xs 00000000 fe:00 7      /bin/it", 4, 0),
            part("d000-e000 r--p 00000000 00:00 0 ", 4, 0),
        ]
        .concat();
        let found = parse(&smaps, "/bin/it");
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.start, it.length, it.resident))
            .collect();
        assert_eq!(found, [(0x1000, 0x2000, 8192), (0x3000, 0x6000, 16384)]);
        assert!(parse("", "/bin/it").is_empty());
        assert!(parse("3-1 r-xp 0 fe:00 7 /bin/it\nAnonymous: 0 kB", "/bin/it").is_empty());
    }

    #[test]
    fn a_program_goes_on_without_the_code_that_was_in_memory() {
        let released = release().unwrap();
        assert!(released > 100 << 10, "{released} bytes");
        // Running code is mapped again, and little else is.
        let resident: usize = mappings().unwrap().iter().map(|it| it.resident).sum();
        assert!(resident > 0);
        let text: Vec<String> = (0..100).map(|number| format!("{number:>5}")).collect();
        assert_eq!(text[99], "   99");
    }
}
