//! Committed seeds of a target, run as an ordinary test.

use std::fs;
use std::path::PathBuf;

/// Length of the longest line of opening brackets for a target.
const BRACKETS: usize = 100_000;

/// Runs a target over its seeds, and over variants: cut off, repeated, with changed bytes.
///
/// # Panics
/// If the target panics, and without seeds.
pub fn run(name: &str, target: fn(&[u8])) {
    let seeds = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/seeds")
        .join(name);
    let entries =
        fs::read_dir(&seeds).unwrap_or_else(|error| panic!("{}: {error}", seeds.display()));
    let mut count = 0;
    for entry in entries {
        let seed = entry.and_then(|entry| fs::read(entry.path()));
        let seed = seed.unwrap_or_else(|error| panic!("{}: {error}", seeds.display()));
        target(&seed);
        for i in (0..seed.len()).step_by(seed.len() / 16 + 1) {
            target(&seed[..i]);
            let mut changed = seed.clone();
            changed[i] = changed[i].wrapping_add(1);
            target(&changed);
        }
        target(&seed.repeat(2));
        count += 1;
    }
    assert!(count > 0, "no seeds in {}", seeds.display());
    target(b"");
    target(b"\xff\xfe");
    target(&b"[".repeat(BRACKETS));
}
