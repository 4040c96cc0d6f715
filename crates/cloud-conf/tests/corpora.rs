//! The fuzz target's seeds, run as ordinary tests.

// The lints allow these in functions marked as tests only; here everything is a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../fuzz/src/conf.rs"]
#[expect(
    unreachable_pub,
    reason = "it is reachable in the fuzz crate, whose file it is"
)]
mod conf;

#[path = "../../../fuzz/src/seeds.rs"]
#[expect(
    unreachable_pub,
    reason = "it is reachable in the fuzz crate, whose file it is"
)]
mod seeds;

#[test]
fn files_of_every_form_survive_their_seeds() {
    seeds::run("cloud_conf", conf::file);
}
