//! The fuzz targets' seeds, run as ordinary tests.

// The lints allow these in functions marked as tests only; here everything is a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../fuzz/src/keystone.rs"]
#[expect(
    unreachable_pub,
    reason = "it is reachable in the fuzz crate, whose file it is"
)]
mod keystone;

#[path = "../../../fuzz/src/seeds.rs"]
#[expect(
    unreachable_pub,
    reason = "it is reachable in the fuzz crate, whose file it is"
)]
mod seeds;

use seeds::run;

#[test]
fn reviews_survive_their_seeds() {
    run("keystone_review", keystone::review);
}

#[test]
fn policies_survive_their_seeds() {
    run("keystone_policy", keystone::policy);
}

#[test]
fn configurations_of_what_follows_a_login_survive_their_seeds() {
    run("keystone_sync", keystone::sync);
}

#[test]
fn what_kubectl_says_survives_its_seeds() {
    run("exec_info", keystone::exec_info);
}
