//! Memory of a program that links this crate: the allocator, jemalloc, with a background thread for the return of
//! unused memory to the operating system (docs/adr/0060), and pages of the program's own file, unmapped by
//! [`code::release`] (docs/adr/0075). Only this crate has unsafe code: the exported name of the jemalloc settings, and
//! the call of madvise(2) in [`code`].

#[cfg(target_os = "linux")]
pub mod code;

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Settings of jemalloc, zero-terminated. Two arenas, since there are few cores and fragmentation grows with each
/// arena; a background thread returns memory after one second without use. `MALLOC_CONF` in the environment takes
/// precedence.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
// SAFETY: jemalloc reads a pointer to text that ends with a zero byte under this name, and a reference to an array is one.
// No other crate exports the name.
#[used]
#[unsafe(export_name = "malloc_conf")]
static SETTINGS: &[u8; 70] =
    b"narenas:2,background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0\0";

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::{Duration, Instant};

    /// Returns the resident bytes of this process outside of files.
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
    fn gaps_between_what_is_in_use_are_returned_without_being_asked_for() {
        // Of the blocks, which lie one beside the other, a few stay.
        let mut blocks: Vec<_> = (0..20_000).map(|_| vec![1_u8; 4096]).collect();
        let full = resident();
        assert!(full > 70 << 20, "{full} bytes of blocks");
        let mut number = 0;
        blocks.retain(|_| {
            number += 1;
            number % 50 == 0
        });
        let began = Instant::now();
        while resident() + (40 << 20) > full {
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "{full} bytes before, {} after; {} blocks stayed",
                resident(),
                blocks.len()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}
