//! A simulated OpenStack cloud, and simulated guests that boot kubeadm nodes from their user data.
//!
//! [`cloud`] answers the OpenStack APIs over HTTP; [`guest`] runs what its servers would run;
//! [`world`] is the one-way view that connects the two.

pub mod cloud;
pub mod guest;
pub mod world;
