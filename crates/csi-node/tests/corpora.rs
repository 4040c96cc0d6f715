//! The fuzz targets' seeds, run as ordinary tests.

// The lints allow these in functions marked as tests only; here everything is a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../fuzz/src/frames.rs"]
#[expect(
    unreachable_pub,
    reason = "it is reachable in the fuzz crate, whose file it is"
)]
mod frames;

#[path = "../../../fuzz/src/node.rs"]
#[expect(
    unreachable_pub,
    reason = "it is reachable in the fuzz crate, whose file it is"
)]
mod node;

#[path = "../../../fuzz/src/seeds.rs"]
#[expect(
    unreachable_pub,
    reason = "it is reachable in the fuzz crate, whose file it is"
)]
mod seeds;

use seeds::run;

#[test]
fn disks_of_every_kind_survive_their_seeds() {
    run("node_disk", node::disk);
}

#[test]
fn lines_of_mountinfo_survive_their_seeds() {
    run("node_mounts", node::mounts);
}

#[test]
fn bodies_of_calls_survive_their_seeds() {
    run("grpc_frame", frames::body);
}
