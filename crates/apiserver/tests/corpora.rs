//! The fuzz targets' seeds, run as ordinary tests.

// The lints allow these in functions marked as tests only; here everything is a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{fs, path::PathBuf};

#[path = "../../../fuzz/src/api.rs"]
#[expect(
    unreachable_pub,
    reason = "it is reachable in the fuzz crate, whose file it is"
)]
mod api;

#[path = "../../../fuzz/src/requests.rs"]
#[expect(
    unreachable_pub,
    reason = "it is reachable in the fuzz crate, whose file it is"
)]
mod requests;

#[path = "../../../fuzz/src/targets.rs"]
#[expect(
    unreachable_pub,
    reason = "it is reachable in the fuzz crate, whose file it is"
)]
mod targets;

/// Runs a target over its seeds, and over each of them cut off, repeated and with bytes changed.
fn run(name: &str, target: fn(&[u8])) {
    let seeds = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/seeds")
        .join(name);
    let mut count = 0;
    for entry in fs::read_dir(&seeds).unwrap_or_else(|error| panic!("{}: {error}", seeds.display()))
    {
        let seed = fs::read(entry.unwrap().path()).unwrap();
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
    target(&b"[".repeat(100_000));
}

#[test]
fn json_merge_and_strategic_patches_survive_their_seeds() {
    run("patch_json", targets::patch_json);
}

#[test]
fn apply_survives_its_seeds() {
    run("patch_apply", targets::patch_apply);
}

#[test]
fn selectors_survive_their_seeds() {
    run("selector", targets::selector);
}

#[test]
fn schemas_survive_their_seeds() {
    run("schema", targets::schema);
}

#[test]
fn requests_of_every_kind_survive_their_seeds() {
    run("api_request", api::request);
}
