//! Secrets named in classes, and the clouds named in these Secrets.

use std::collections::{BTreeMap, BTreeSet};

use csi_spec::driver::NAME;
use kube::ResourceExt as _;

use super::super::finding::Finding;
use super::super::observed::{Cluster, Named, Observed};
use super::list;

const NAME_OF_SECRET: &str = "-secret-name";
const NAMESPACE_OF_SECRET: &str = "-secret-namespace";
const PREFIX: &str = "csi.storage.k8s.io/";

type Parameters = BTreeMap<String, String>;

/// A Secret of a class: the class, the key with its name, and namespace and name.
struct OfClass {
    object: String,
    key: String,
    secret: (String, String),
}

/// Namespaces and names of all Secrets in classes of the driver. Names that are made for each claim are unknown.
pub(in crate::commands::csi::check) fn of(cluster: &Cluster) -> BTreeSet<(String, String)> {
    named(cluster).into_iter().map(|it| it.secret).collect()
}

fn named(cluster: &Cluster) -> Vec<OfClass> {
    let mut all = Vec::new();
    for class in cluster
        .classes
        .iter()
        .filter(|class| class.provisioner == NAME)
    {
        let parameters = class.parameters.clone().unwrap_or_default();
        of_parameters(
            &format!("StorageClass/{}", class.name_any()),
            &parameters,
            &mut all,
        );
    }
    let ours = cluster.snapshot_classes.iter();
    for class in ours.filter(|class| class.data["driver"] == NAME) {
        let parameters = serde_json::from_value(class.data["parameters"].clone());
        let object = format!("VolumeSnapshotClass/{}", class.name_any());
        of_parameters(&object, &parameters.unwrap_or_default(), &mut all);
    }
    let of_groups = cluster.group_snapshot_classes.iter();
    for class in of_groups.filter(|class| class.data["driver"] == NAME) {
        let parameters = serde_json::from_value(class.data["parameters"].clone());
        let object = format!("VolumeGroupSnapshotClass/{}", class.name_any());
        of_parameters(&object, &parameters.unwrap_or_default(), &mut all);
    }
    all
}

fn of_parameters(object: &str, parameters: &Parameters, all: &mut Vec<OfClass>) {
    for (key, name) in parameters {
        let what = key
            .strip_prefix(PREFIX)
            .and_then(|it| it.strip_suffix(NAME_OF_SECRET));
        let namespace =
            what.and_then(|what| parameters.get(&format!("{PREFIX}{what}{NAMESPACE_OF_SECRET}")));
        let Some(namespace) = namespace else {
            continue;
        };
        let is_known = |text: &str| !text.is_empty() && !text.contains('$');
        if is_known(name) && is_known(namespace) {
            all.push(OfClass {
                object: object.to_owned(),
                key: key.clone(),
                secret: (namespace.clone(), name.clone()),
            });
        }
    }
}

pub(super) fn findings(observed: &Observed) -> Vec<Finding> {
    let all = named(&observed.cluster).into_iter();
    all.filter_map(|it| finding(observed, &it)).collect()
}

fn finding(observed: &Observed, it: &OfClass) -> Option<Finding> {
    let (namespace, name) = &it.secret;
    let field = format!("parameters.{}", it.key);
    let clouds = &observed.clouds;
    match observed.cluster.secrets.get(&it.secret)? {
        Named::Absent => Some(Finding::error(
            &it.object,
            field,
            format!(
                "there is no Secret {name} in {namespace}: the sidecar refuses what the class asks for"
            ),
            "create it, with the name of a cloud of cloud.conf under the key `cloud`",
        )),
        Named::Hidden(why) => Some(Finding::warning(
            &it.object,
            field,
            format!("the Secret {name} in {namespace} is not shown: {why}"),
            "run the command as a user that may get it",
        )),
        Named::Found(cloud) => {
            let wanted = cloud.as_deref().unwrap_or_default();
            if clouds.is_empty() || clouds.contains_key(wanted) {
                return None;
            }
            let names = clouds.keys().map(|name| match name.as_str() {
                "" => "[Global], without a name",
                name => name,
            });
            Some(Finding::error(
                &it.object,
                field,
                format!(
                    "the key `cloud` of the Secret {name} in {namespace} is `{}`, and cloud.conf has {}",
                    wanted.escape_debug(),
                    list(names)
                ),
                "correct the key, or add a section `[Global \"NAME\"]` of that name, and the name to --cloud-name",
            ))
        }
    }
}
