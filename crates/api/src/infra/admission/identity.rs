//! Immutability of identity annotations: resources in the cloud are found by identity. Otherwise resources would be
//! created a second time, or never deleted.

use serde_json::Value;

use crate::change::{Change, FieldError};
use crate::names::{
    CLUSTER_IDENTITY_ANNOTATION, MACHINE_IDENTITY_ANNOTATION, POOL_IDENTITY_ANNOTATION, is_uuid,
};

/// Errors for identity annotations changed or removed by an update. Permitted: setting an absent one, replacing an
/// invalid value, and removing the finalizer, even without the annotation.
pub(super) fn check(change: Change<'_>) -> Vec<FieldError> {
    let annotation = |object: &Value, name: &str| {
        let value = object.pointer("/metadata/annotations")?.get(name)?.as_str();
        value.map(str::to_owned)
    };
    let Some(old) = change.old else {
        return Vec::new();
    };
    [
        CLUSTER_IDENTITY_ANNOTATION,
        MACHINE_IDENTITY_ANNOTATION,
        POOL_IDENTITY_ANNOTATION,
    ]
    .into_iter()
        .filter_map(|name| {
            let known = annotation(old, name).filter(|text| is_uuid(text))?;
            if annotation(change.object, name).as_deref() == Some(known.as_str()) {
                return None;
            }
            Some(FieldError::new(
                format!("metadata.annotations[{name}]"),
                format!(
                    "cannot be changed or removed, since what was created in the cloud is found by it: keep {known} \
                     (with `kubectl apply` rather than `kubectl replace`, annotations that a manifest does not \
                     have are kept)"
                ),
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::admission::{Review, validate};

    const ID: &str = "a2b8f4a2-7a53-4d0b-8e4f-0a4f6c1d2e3f";
    const CLUSTER: &str = super::CLUSTER_IDENTITY_ANNOTATION;
    const MACHINE: &str = super::MACHINE_IDENTITY_ANNOTATION;

    fn object(kind: &str, annotations: Value) -> Value {
        let version = match kind {
            "OpenStackFloatingIPPool" => "v1alpha1",
            _ => "v1beta2",
        };
        json!({"apiVersion": format!("infrastructure.cluster.x-k8s.io/{version}"), "kind": kind,
            "metadata": {"name": "o", "annotations": annotations}, "spec": {}})
    }

    /// The paths of the errors of an update.
    fn updating(old: &Value, object: &Value) -> Vec<String> {
        let (old, dry_run) = (Some(old), false);
        let result = validate(Review {
            object,
            old,
            dry_run,
        });
        let errors = result.err().unwrap_or_default();
        errors.into_iter().map(|error| error.path).collect()
    }

    #[test]
    fn identity_annotations_cannot_be_changed_or_removed() {
        for (kind, name) in [
            ("OpenStackCluster", CLUSTER),
            ("OpenStackMachine", CLUSTER),
            ("OpenStackMachine", MACHINE),
            ("OpenStackFloatingIPPool", super::POOL_IDENTITY_ANNOTATION),
        ] {
            let old = object(kind, json!({name: ID, "other": "1"}));
            let path = [format!("metadata.annotations[{name}]")];
            let other = ID.replace('a', "b");
            for annotations in [
                json!({}),
                json!({name: ""}),
                json!({name: other}),
                Value::Null,
            ] {
                assert_eq!(updating(&old, &object(kind, annotations)), path, "{kind}");
            }
        }
    }

    #[test]
    fn an_object_that_is_being_deleted_keeps_its_identity_and_loses_its_finalizers() {
        let mut old = object("OpenStackCluster", json!({CLUSTER: ID}));
        old["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        old["metadata"]["finalizers"] = json!(["a", "b"]);
        let mut new = old.clone();
        new["metadata"]["finalizers"] = json!([]);
        assert_eq!(updating(&old, &new), Vec::<String>::new());
        new["metadata"]["annotations"] = json!({});
        assert_eq!(updating(&old, &new).len(), 1);
    }

    #[test]
    fn identity_annotations_may_be_set_and_repaired_and_others_changed() {
        let with = |annotations| object("OpenStackCluster", annotations);
        for (old, new) in [
            (json!({}), json!({CLUSTER: ID})),
            (json!({CLUSTER: "no identity"}), json!({CLUSTER: ID})),
            (json!({CLUSTER: ID.to_uppercase()}), json!({})),
            (json!({CLUSTER: ID, "a": "1"}), json!({CLUSTER: ID})),
        ] {
            assert_eq!(updating(&with(old), &with(new)), Vec::<String>::new());
        }
    }
}
