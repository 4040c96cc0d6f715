//! Simulated OpenStack cloud and its servers: either simulated guests that boot kubeadm nodes from user data, or
//! machines run by an external program.
//!
//! [`cloud`] serves the OpenStack APIs over HTTP; [`guest`] simulates the guests, [`etcd`] included; [`runner`] starts
//! a program for each server; [`nodes`] simulates the nodes of any Kubernetes API server; [`world`] is the one-way view
//! that connects them, and [`machine`] has the details for runners alone.
//!
//! ```
//! use axum::body::Body;
//! use http::Request;
//! use simulator::cloud::{Cloud, Options};
//! use tower::ServiceExt as _;
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let cloud = Cloud::open(Options::default()).await?;
//! let url = "http://cloud.example.org";
//! let request = Request::get(format!("{url}/identity/v3")).body(Body::empty())?;
//! let answer = cloud.router(url).oneshot(request).await?;
//! assert_eq!(answer.status(), 200);
//! // Entries for clouds.yaml, with the passwords of the two users.
//! assert!(cloud.clouds_yaml(url).contains("simulated-admin:"));
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod cloud;
pub mod data_plane;
mod disruption;
pub mod etcd;
pub mod guest;
mod json;
pub mod machine;
pub mod nodes;
pub mod runner;
