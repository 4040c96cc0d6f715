//! The fuzz targets' seeds, run as ordinary tests.

// The lints allow these in functions marked as tests only; here everything is a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../fuzz/src/targets.rs"]
#[expect(
    unreachable_pub,
    reason = "it is reachable in the fuzz crate, whose file it is"
)]
mod targets;

#[path = "../../../fuzz/src/seeds.rs"]
#[expect(
    unreachable_pub,
    reason = "it is reachable in the fuzz crate, whose file it is"
)]
mod seeds;

use seeds::run;

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
