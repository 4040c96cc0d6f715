//! The fuzz targets' seeds, run as ordinary tests.

// The lints allow these in functions marked as tests only; here everything is a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../fuzz/src/clouds.rs"]
#[expect(
    unreachable_pub,
    reason = "it is reachable in the fuzz crate, whose file it is"
)]
mod clouds;

#[path = "../../../fuzz/src/seeds.rs"]
#[expect(
    unreachable_pub,
    reason = "it is reachable in the fuzz crate, whose file it is"
)]
mod seeds;

#[test]
fn files_of_credentials_survive_their_seeds() {
    seeds::run("clouds_yaml", clouds::yaml);
}

#[test]
fn bundles_of_certificates_survive_their_seeds() {
    seeds::run("ca_bundle", clouds::bundle);
}
