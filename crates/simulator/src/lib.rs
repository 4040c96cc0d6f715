//! Simulated OpenStack cloud and its servers: either simulated guests that boot kubeadm nodes from user data, or
//! machines run by an external program.
//!
//! [`cloud`] serves the OpenStack APIs over HTTP; [`guest`] simulates the guests, [`etcd`] included; [`runner`] starts
//! a program for each server; [`nodes`] simulates the nodes of any Kubernetes API server; [`world`] is the one-way view
//! that connects them, and [`machine`] has the details for runners alone.

pub mod cloud;
pub mod etcd;
pub mod guest;
mod json;
pub mod machine;
pub mod nodes;
pub mod runner;
pub mod world;
