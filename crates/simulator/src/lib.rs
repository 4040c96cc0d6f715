//! A simulated OpenStack cloud, and what runs on its servers: simulated guests that boot kubeadm nodes from their user
//! data, or machines that a program runs.
//!
//! [`cloud`] answers the OpenStack APIs over HTTP; [`guest`] simulates what its servers would run, [`etcd`] included;
//! [`runner`] starts a program for each; [`world`] is the one-way view that connects them, [`machine`] what only runners
//! need.

pub mod cloud;
pub mod etcd;
pub mod guest;
pub mod machine;
pub mod runner;
pub mod world;
