//! Installs this program in Kubernetes clusters: kinds, permissions, webhooks and managers of some or all providers.
//!
//! ```text
//!   names, subset, older, flavors   names, providers, versions before those of today, templates of clusters
//!   manifests                       the objects of a manager, as text
//!   base, chart, repositories       the same as files: for kustomize, for Helm, for clusterctl
//!   monitoring                      what watches the managers
//!   installed                       what a cluster has, by the annotations of its definitions
//!   choice                          the providers to install, from what is named and what is there
//!   install, upgrade, uninstall     writes to a cluster
//!   storage                         objects in versions that are not written any more
//! ```
//!
//! Nothing of another program is changed: definitions say whose they are ([`installed`]).

pub mod base;
pub mod chart;
pub mod choice;
pub mod flavors;
pub mod install;
pub mod installed;
pub mod manifests;
pub mod monitoring;
pub mod names;
pub mod older;
pub mod repositories;
pub mod storage;
pub mod subset;
pub mod uninstall;
pub mod upgrade;
