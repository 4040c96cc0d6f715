//! Pages of the program's own file in memory.

use std::ffi::c_void;
use std::io;

use rustix::mm::{Advice, madvise};

/// A read-only part of the program's file as it is mapped, all of whose pages are those of the file.
#[derive(Debug)]
struct Mapping {
    /// Address of the first byte.
    start: usize,
    /// Bytes.
    length: usize,
    /// Bytes in memory.
    resident: usize,
}

/// Unmaps the code and the constants of the program that are in memory, and returns the bytes. What is used again is mapped
/// again, from the cache of the kernel, 64 KiB at a time.
///
/// A program that runs for months needs a third of the code that its start has read. For use once, when it serves.
///
/// # Errors
///
/// `/proc/self` is not there, or the kernel refuses.
pub fn release() -> io::Result<usize> {
    let mut released = 0;
    for mapping in mappings()? {
        // SAFETY: the part is mapped privately from a file, without the right to write, and none of its pages differs from the
        // file, so each byte reads after this call as before it. That the file stays as it is, is what the kernel assumes of
        // any program: it maps a page when it is first read.
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

/// The parts of `program` in the format of proc_pid_smaps(5). Those with a page of their own (`Anonymous`) are left out: addresses
/// that the loader has written are in some.
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

/// `55ee63da8000-55ee64b2c000 r-xp 00000000 fe:00 12 /path`: first address, bytes, and what follows.
fn header(line: &str) -> Option<(usize, usize, &str)> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    Some((start, end.checked_sub(start)?, rest))
}

/// True if it is mapped privately, for reading or running alone, from the file of the program.
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
        // What runs here is mapped again, and little else is.
        let resident: usize = mappings().unwrap().iter().map(|it| it.resident).sum();
        assert!(resident > 0);
        let text: Vec<String> = (0..100).map(|number| format!("{number:>5}")).collect();
        assert_eq!(text[99], "   99");
    }
}
