//! Installs this program in Kubernetes clusters: CRDs, permissions, webhooks and managers of some or all providers.
//!
//! ```text
//!   names, subset, older, flavors   names, providers, older versions, templates of clusters
//!   manifests                       the objects of a manager, as text
//!   base, chart, repositories       the same as files: for kustomize, for Helm, for clusterctl
//!   monitoring                      manifests to monitor the managers
//!   installed                       providers in a cluster, by the annotations of its CRDs
//!   choice                          the providers to install, from named and existing ones
//!   install, upgrade, uninstall     writes to a cluster
//!   storage                         objects in versions no longer written
//! ```
//!
//! Objects of other programs are never changed: annotations of CRDs name the owner ([`installed`]).

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
