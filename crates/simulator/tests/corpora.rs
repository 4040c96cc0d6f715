//! The fuzz targets' seeds, run as ordinary tests.

// The lints allow these in functions marked as tests only; here everything is a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{fs, path::PathBuf};

#[path = "../../../fuzz/src/cloud.rs"]
#[expect(
    unreachable_pub,
    reason = "it is reachable in the fuzz crate, whose file it is"
)]
mod cloud;

#[path = "../../../fuzz/src/requests.rs"]
#[expect(
    unreachable_pub,
    reason = "it is reachable in the fuzz crate, whose file it is"
)]
mod requests;

/// Runs a target over its seeds, and over each of them cut off and with bytes changed.
fn run(name: &str, target: fn(&[u8])) {
    let seeds = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/seeds")
        .join(name);
    let mut count = 0;
    for entry in fs::read_dir(&seeds).unwrap_or_else(|error| panic!("{}: {error}", seeds.display()))
    {
        let seed = fs::read(entry.unwrap().path()).unwrap();
        target(&seed);
        for i in (0..seed.len()).step_by(seed.len() / 12 + 1) {
            target(&seed[..i]);
            let mut changed = seed.clone();
            changed[i] = changed[i].wrapping_add(1);
            target(&changed);
        }
        count += 1;
    }
    assert!(count > 0, "no seeds in {}", seeds.display());
    target(b"");
    target(b"\xff\xfe");
    target(&b"[".repeat(10_000));
}

#[test]
fn requests_of_every_kind_survive_their_seeds() {
    run("cloud_request", cloud::request);
}

#[test]
fn query_strings_survive_their_seeds() {
    run("cloud_query", cloud::query);
}
