//! Kubeadm bootstrap and control plane against an API server in this process, with a provider whose machines process
//! their user data, and a second API server as the workload cluster.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "kubeadm/adoption.rs"]
mod adoption;

#[path = "kubeadm/members.rs"]
mod members;

#[path = "kubeadm/served.rs"]
mod served;

#[path = "kubeadm/certificates.rs"]
mod certificates;

#[path = "kubeadm/coredns.rs"]
mod coredns;

#[path = "kubeadm/external_etcd.rs"]
mod external_etcd;

#[path = "kubeadm/files.rs"]
mod files;

#[path = "kubeadm/world.rs"]
mod world;

#[path = "kubeadm/invalid.rs"]
mod invalid;

#[path = "kubeadm/never_joined.rs"]
mod never_joined;

#[path = "kubeadm/scaling.rs"]
mod scaling;

#[path = "kubeadm/real_etcd.rs"]
mod real_etcd;

#[path = "kubeadm/recovery.rs"]
mod recovery;

#[path = "kubeadm/secrets.rs"]
mod secrets;

#[path = "kubeadm/killing.rs"]
mod killing;

#[path = "kubeadm/labels.rs"]
mod labels;

#[path = "kubeadm/pausing.rs"]
mod pausing;
