//! The committed seeds of a target, run as an ordinary test.

use std::fs;
use std::path::PathBuf;

/// The longest line of opening brackets that a target gets.
const BRACKETS: usize = 100_000;

/// Runs a target over its seeds, and over each of them cut off, repeated and with bytes changed.
///
/// # Panics
/// When the target does, and when it has no seeds.
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
