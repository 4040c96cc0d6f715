//! Memory of the allocator that is free, returned to the operating system. It is the one crate with unsafe code: one call
//! of the C library, which has no safe form (docs/adr/0060).

/// Returns the pages that the allocator holds and nobody uses. It takes milliseconds, in which other threads may wait for
/// memory. Where the allocator is not that of the GNU C library, nothing happens.
pub fn return_unused() {
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code)]
    // SAFETY: malloc_trim takes a number of bytes, no pointer, and may be called by any thread at any time (malloc_trim(3)).
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    /// Bytes of memory of this process that are in no file.
    fn resident() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("RssAnon:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
        kilobytes
            .and_then(|it| it.parse::<usize>().ok())
            .unwrap_or(0)
            * 1024
    }

    #[test]
    fn gaps_between_what_is_in_use_are_returned() {
        // Blocks that are small enough for the heap, of which a few stay, so that the heap cannot just shrink.
        let mut blocks: Vec<_> = (0..20_000).map(|_| vec![1_u8; 4096]).collect();
        let full = resident();
        let mut number = 0;
        blocks.retain(|_| {
            number += 1;
            number % 50 == 0
        });
        let before = resident();
        super::return_unused();
        let after = resident();
        assert!(full > 70 << 20, "{full} bytes of blocks");
        assert!(
            before - after > 40 << 20,
            "{before} bytes before, {after} after {} blocks stayed",
            blocks.len()
        );
    }
}
