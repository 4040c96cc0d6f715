//! A simulated OpenStack cloud and its servers: either simulated guests that boot kubeadm nodes from user data, or
//! machines that an external program runs.
//!
//! [`cloud`] serves the OpenStack APIs over HTTP; [`guest`] simulates the guests, [`etcd`] included; [`runner`] starts
//! a program for each server; [`nodes`] simulates the nodes of any Kubernetes API server; [`world`] is the one-way view that connects them, [`machine`] has the details that only
//! runners need.

pub mod cloud;
pub mod etcd;
pub mod guest;
mod json;
pub mod machine;
pub mod nodes;
pub mod runner;
pub mod world;
