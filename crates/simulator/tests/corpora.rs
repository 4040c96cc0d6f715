//! The fuzz targets' seeds, run as ordinary tests.

// The lints allow these in functions marked as tests only; here everything is a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../fuzz/src/cloud.rs"]
#[expect(
    unreachable_pub,
    reason = "it is reachable in the fuzz crate, whose file it is"
)]
mod cloud;

#[path = "../../../fuzz/src/machines.rs"]
#[expect(
    unreachable_pub,
    reason = "it is reachable in the fuzz crate, whose file it is"
)]
mod machines;

#[path = "../../../fuzz/src/requests.rs"]
#[expect(
    unreachable_pub,
    reason = "it is reachable in the fuzz crate, whose file it is"
)]
mod requests;

#[path = "../../../fuzz/src/seeds.rs"]
#[expect(
    unreachable_pub,
    reason = "it is reachable in the fuzz crate, whose file it is"
)]
mod seeds;

use seeds::run;

#[test]
fn requests_of_every_kind_survive_their_seeds() {
    run("cloud_request", cloud::request);
}

#[test]
fn query_strings_survive_their_seeds() {
    run("cloud_query", cloud::query);
}

#[test]
fn user_data_survive_their_seeds() {
    run("user_data", machines::user_data);
}
