//! Scheduler hints: annotations of a claim that name other volumes.

use std::collections::BTreeMap;
use std::fmt;

use csi_spec::context;
use futures::future::BoxFuture;
use grpc::{Code, Status};
use openstack::View;

/// Annotation: the volume is placed on the back end of these volumes.
const AFFINITY: &str = "cinder.csi.openstack.org/affinity";
/// Annotation: the volume is placed on another back end than these volumes.
const ANTI_AFFINITY: &str = "cinder.csi.openstack.org/anti-affinity";
/// Parameters with name and namespace of the claim.
const CLAIM: (&str, &str) = (
    "csi.storage.k8s.io/pvc/name",
    "csi.storage.k8s.io/pvc/namespace",
);

/// Access to the PersistentVolumeClaims of a cluster.
pub trait Claims: fmt::Debug + Send + Sync {
    /// Reads the annotations of a claim; `None` if absent. The error is a reason for messages.
    fn annotations<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<BTreeMap<String, String>>, String>>;
}

/// Volumes named by the annotations of a claim, by id or name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    affinity: Vec<String>,
    anti_affinity: Vec<String>,
}

impl Hints {
    /// Reads the claim that the parameters of CreateVolume name.
    ///
    /// # Errors
    /// UNAVAILABLE if the claim cannot be read: a volume created without its hints would stay on the wrong back end. A
    /// deleted claim has no hints, so that a volume begun for it is found and deleted.
    pub(crate) async fn read(
        claims: &dyn Claims,
        parameters: &BTreeMap<String, String>,
    ) -> Result<Self, Status> {
        let (Some(name), Some(namespace)) = (parameters.get(CLAIM.0), parameters.get(CLAIM.1))
        else {
            tracing::warn!(
                "a volume has no scheduler hints: the provisioner does not say for which claim it is; start it with \
                 --extra-create-metadata"
            );
            return Ok(Self::default());
        };
        let annotations = claims.annotations(namespace, name).await.map_err(|why| {
            let message =
                format!("the annotations of claim {namespace}/{name} cannot be read: {why}");
            Status::new(Code::Unavailable, message)
        })?;
        let annotations = annotations.unwrap_or_default();
        Ok(Self {
            affinity: list(&annotations, AFFINITY),
            anti_affinity: list(&annotations, ANTI_AFFINITY),
        })
    }

    /// Hints for the scheduler of Cinder, with ids in place of names.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a volume that does not exist, and for an ambiguous name.
    pub(crate) fn resolved(&self, view: &View) -> Result<BTreeMap<String, Vec<String>>, Status> {
        let mut hints = BTreeMap::new();
        for (hint, annotation, volumes) in [
            ("same_host", AFFINITY, &self.affinity),
            ("different_host", ANTI_AFFINITY, &self.anti_affinity),
        ] {
            let mut ids = Vec::new();
            for volume in volumes {
                let id = id(volume, view).map_err(|why| {
                    let message = format!("annotation {annotation} of the claim: {why}");
                    Status::new(Code::InvalidArgument, message)
                })?;
                // Cinder refuses a repeated id.
                if !ids.contains(&id) {
                    ids.push(id);
                }
            }
            if !ids.is_empty() {
                hints.insert(hint.to_owned(), ids);
            }
        }
        Ok(hints)
    }

    /// Adds the hints to a volume context. A name without a volume by now stays as written.
    pub(crate) fn add_to(&self, pairs: &mut BTreeMap<String, String>, view: &View) {
        for (key, volumes) in [
            (context::AFFINITY, &self.affinity),
            (context::ANTI_AFFINITY, &self.anti_affinity),
        ] {
            let mut ids: Vec<String> = Vec::new();
            for volume in volumes {
                let id = id(volume, view).unwrap_or_else(|_| volume.clone());
                if !ids.contains(&id) {
                    ids.push(id);
                }
            }
            if !ids.is_empty() {
                pairs.insert(key.to_owned(), ids.join(","));
            }
        }
    }
}

/// Elements of an annotation, separated by commas.
fn list(annotations: &BTreeMap<String, String>, key: &str) -> Vec<String> {
    let text = annotations.get(key).map_or("", String::as_str);
    let parts = text.split(',').map(str::trim);
    parts
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Id of a volume, given by id or name.
fn id(volume: &str, view: &View) -> Result<String, String> {
    if let Some(found) = view.volumes.get(volume) {
        return Ok(found.id.clone());
    }
    match view.volumes.named(volume) {
        [one] => Ok(one.id.clone()),
        [] => Err(format!("there is no volume {}", volume.escape_debug())),
        several => Err(format!(
            "{} volumes have the name {}: name one by its id",
            several.len(),
            volume.escape_debug()
        )),
    }
}
