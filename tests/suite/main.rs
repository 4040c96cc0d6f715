//! Whole-suite scenarios: the binary as its users run it, against the simulated cloud.
//!
//! ```text
//!   main_job    up, kubectl, scale, replace, delete; the cloud is as before
//!   bootstrap   a machine that kubeadm refuses says so
//!   kill        the process is killed after every single OpenStack write, of a create and of a delete
//!   templates   the cluster templates of released versions
//!   budget      OpenStack requests per cluster and per worker
//!   bad_input   one clear message for each mistake
//!   secrets     a canary password is in no log, event, status or metric
//! ```

// The lints allow these in functions marked as tests only; here everything is a test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

mod bad_input;
mod bootstrap;
mod budget;
mod cloud;
mod kill;
mod main_job;
mod process;
mod secrets;
mod templates;
