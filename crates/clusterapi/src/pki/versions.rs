//! Versions of Secrets, from a watch of their metadata: the resourceVersions of the Secrets of clusters, since read
//! content is valid as long as the version stays, and the names of all, for callers that wait for a Secret.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use api::names::CLUSTER_NAME_LABEL;
use futures::Stream;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use parking_lot::Mutex;

use super::Purpose;
use crate::remote::{ClusterKey, secret_name};

/// Version of each Secret of a cluster, by name.
pub type Versions = BTreeMap<String, String>;

/// Versions of the Secrets of all clusters, shared by clones.
#[derive(Clone, Debug, Default)]
pub struct SecretVersions {
    seen: Arc<Mutex<HashMap<ClusterKey, Versions>>>,
    listeners: Arc<Mutex<Vec<UnboundedSender<ClusterKey>>>>,
    waiting: Arc<Mutex<Vec<UnboundedSender<SecretName>>>>,
}

/// Created or changed Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretName {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub name: String,
    /// True with a label for the name of a cluster; Secrets of users may have none.
    pub labelled: bool,
}

impl SecretName {
    /// Cluster with a certificate or key of `purpose` under this name.
    pub(crate) fn cluster_of(&self, purpose: Purpose) -> Option<ClusterKey> {
        let cluster = self
            .name
            .strip_suffix(purpose.suffix())?
            .strip_suffix('-')?;
        (!cluster.is_empty()).then(|| ClusterKey::new(self.namespace.clone(), cluster))
    }
}

impl SecretVersions {
    /// Records a Secret.
    pub fn is(&self, secret: &ObjectMeta) {
        let labels = secret.labels.as_ref();
        let touched = SecretName {
            namespace: secret.namespace.clone().unwrap_or_default(),
            name: secret.name.clone().unwrap_or_default(),
            labelled: labels.is_some_and(|labels| labels.contains_key(CLUSTER_NAME_LABEL)),
        };
        let mut waiting = self.waiting.lock();
        waiting.retain(|to| to.unbounded_send(touched.clone()).is_ok());
        drop(waiting);
        if let Some((key, name)) = named(secret) {
            let version = secret.resource_version.clone().unwrap_or_default();
            let mut seen = self.seen.lock();
            let versions = seen.entry(key.clone()).or_default();
            let before = versions.insert(name, version.clone());
            drop(seen);
            if before.is_some_and(|before| before != version) {
                self.report(&key);
            }
        }
    }

    /// Records the deletion of a Secret.
    pub fn is_gone(&self, secret: &ObjectMeta) {
        let Some((key, name)) = named(secret) else {
            return;
        };
        let mut seen = self.seen.lock();
        if let Some(versions) = seen.get_mut(&key) {
            versions.remove(&name);
            if versions.is_empty() {
                seen.remove(&key);
            }
        }
        drop(seen);
        self.report(&key);
    }

    /// Clusters with a changed or deleted Secret from now on.
    pub fn changes(&self) -> impl Stream<Item = ClusterKey> + Send + Unpin + 'static + use<> {
        let (sender, receiver) = unbounded();
        self.listeners.lock().push(sender);
        receiver
    }

    /// All created, changed, or relisted Secrets from now on.
    pub fn touched(&self) -> impl Stream<Item = SecretName> + Send + Unpin + 'static + use<> {
        let (sender, receiver) = unbounded();
        self.waiting.lock().push(sender);
        receiver
    }

    fn report(&self, key: &ClusterKey) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|listener| listener.unbounded_send(key.clone()).is_ok());
    }

    /// Forgets all Secrets before a new watch: deletions in the meantime are not reported.
    pub fn clear(&self) {
        self.seen.lock().clear();
    }

    /// [`Versions`] of a cluster's Secrets.
    pub fn of(&self, cluster: &ClusterKey) -> Versions {
        self.seen.lock().get(cluster).cloned().unwrap_or_default()
    }
}

/// Cluster with its certificates or kubeconfig in the Secret, and the Secret's name.
fn named(secret: &ObjectMeta) -> Option<(ClusterKey, String)> {
    let cluster = secret.labels.as_ref()?.get(CLUSTER_NAME_LABEL)?;
    let name = secret.name.as_deref()?;
    let mut certificates = Purpose::ALL.iter().map(|it| it.secret_name(cluster));
    if name != secret_name(cluster) && !certificates.any(|it| it == name) {
        return None;
    }
    let namespace = secret.namespace.clone().unwrap_or_default();
    Some((ClusterKey::new(namespace, cluster), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, StreamExt as _};

    use super::*;

    fn secret(name: &str, cluster: Option<&str>, version: &str) -> ObjectMeta {
        let label = |it: &str| BTreeMap::from([(CLUSTER_NAME_LABEL.to_owned(), it.to_owned())]);
        ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some("ns".to_owned()),
            resource_version: Some(version.to_owned()),
            labels: cluster.map(label),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn only_certificates_and_kubeconfig_of_the_cluster_in_the_label_count() {
        let (versions, key) = (SecretVersions::default(), ClusterKey::new("ns", "a"));
        versions.is(&secret("a-ca", Some("a"), "1"));
        versions.is(&secret("a-kubeconfig", Some("a"), "2"));
        versions.is(&secret("a-md-0-x7k2p", Some("a"), "3"));
        versions.is(&secret("b-ca", Some("a"), "4"));
        versions.is(&secret("a-etcd", None, "5"));
        let changes = versions.changes();
        let of = |pairs: &[(&str, &str)]| -> Versions {
            let pairs = pairs.iter();
            pairs
                .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
                .collect()
        };
        assert_eq!(
            versions.of(&key),
            of(&[("a-ca", "1"), ("a-kubeconfig", "2")])
        );
        assert_eq!(versions.of(&ClusterKey::new("other", "a")), of(&[]));
        versions.is(&secret("a-ca", Some("a"), "6"));
        versions.is_gone(&secret("a-kubeconfig", Some("a"), "7"));
        assert_eq!(versions.of(&key), of(&[("a-ca", "6")]));
        versions.is_gone(&secret("a-ca", Some("a"), "8"));
        assert!(
            versions.seen.lock().is_empty(),
            "nothing is kept of a cluster that is gone"
        );
        versions.is(&secret("a-ca", Some("a"), "9"));
        versions.clear();
        assert_eq!(versions.of(&key), of(&[]));
        drop(versions);
        // A change and two deletions; not what is new.
        let reported: Vec<_> = changes.collect().now_or_never().unwrap();
        assert_eq!(reported, [key.clone(), key.clone(), key]);
    }

    #[test]
    fn who_waits_for_a_secret_hears_of_it_with_or_without_a_label() {
        let versions = SecretVersions::default();
        let touched = versions.touched();
        versions.is(&secret("a-ca", None, "1"));
        versions.is(&secret("notes", Some("a"), "2"));
        drop(versions);
        let touched: Vec<_> = touched.collect().now_or_never().unwrap();
        let names: Vec<_> = touched
            .iter()
            .map(|it| (it.name.as_str(), it.labelled))
            .collect();
        assert_eq!(names, [("a-ca", false), ("notes", true)]);
        let key = ClusterKey::new("ns", "a");
        assert_eq!(touched[0].cluster_of(Purpose::Cluster), Some(key));
        assert_eq!(touched[0].cluster_of(Purpose::Etcd), None);
        assert_eq!(touched[1].cluster_of(Purpose::Cluster), None);
    }
}
