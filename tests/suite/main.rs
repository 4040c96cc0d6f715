//! Whole-suite scenarios: the binary as its users run it, against the simulated cloud.
//!
//! ```text
//!   main_job    up, kubectl, scale, replace, delete; the cloud is as before
//!   pods        kubectl's logs and forwarded ports on a workload cluster
//!   services    Services of type LoadBalancer: their addresses answer
//!   bootstrap   a machine that kubeadm refuses says so
//!   kill        the process is killed after every single OpenStack write, of a create and of a delete
//!   templates   the cluster templates of released versions
//!   topology    the published ClusterClass
//!   addons      manifests that a cluster gets from a ClusterResourceSet
//!   health      machines whose kubelet dies are replaced
//!   guests      `simulate guests` on a cloud whose servers run nothing
//!   machines    the same with `--guest-runner`: machines of a program
//!   budget      OpenStack requests per cluster and per worker
//!   durability  backups, of a running `up` and of a stopped one, and `up` on what was restored
//!   manager     `manager` on an API server, with webhooks
//!   csi_plugin  `cinder-csi-plugin`: how it starts and ends, and what is found of it afterwards
//!   keystone_login  `client-keystone-auth`: ways of logging in, tokens that are kept, bad input
//!   keystone_webhook  `k8s-keystone-auth`: how it starts and ends
//!   keystone_up  `up --keystone-auth`: users of the cloud in its clusters
//!   moving      clusters that move to another management cluster
//!   events      what users read when the cloud or a version is in the way
//!   first_hour  what a new user does and reads
//!   openstack   `openstack up`, `status`, `plan` and `delete` on simulated nodes
//!   pages       the commands of README.md and docs/, as they are written there
//!   stopping    `up` that is asked to stop, at its beginning and with clusters
//!   terminal    the picture of `up` in a window that changes its size
//!   completion  names that bash, zsh and fish complete
//!   bad_input   one clear message for each mistake
//!   why         the last cause, through Cluster API to the cloud's own words
//!   words       no debug forms in what users read of a cluster that fails, and of commands that fail
//!   forms       no debug forms in the output of any command that a test here runs
//!   canaries    what others say reaches no terminal raw
//!   secrets     a canary password is in no log, event, status or metric
//! ```
//!
//! Whatever a test's simulated cloud was asked for is in the scenario that compares it with a real one (`coverage`).

// The lints allow these in functions marked as tests only; here everything is a test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

mod addons;
mod bad_input;
mod bootstrap;
mod budget;
mod canaries;
mod cloud;
mod cloud_managers;
mod completion;
mod coverage;
mod csi_plugin;
mod durability;
mod events;
mod first_hour;
mod forms;
mod generate;
mod guests;
mod health;
mod kept;
mod keystone_login;
mod keystone_up;
mod keystone_webhook;
mod kill;
mod machines;
mod main_job;
mod manager;
mod managers;
mod moving;
mod openstack;
mod pages;
mod pods;
mod process;
mod proxies;
mod secrets;
mod services;
mod stopping;
mod templates;
mod terminal;
mod topology;
mod why;
mod words;
