//! Objects that break a rule of admission and are stored nevertheless, like objects from before the rule.

use api::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, ResourceExt};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{Management, NAMESPACE, eventually};

/// Table of rules, shared with the tests of the crate `api`.
const RULES: &str = include_str!("../../api/src/admission/testdata/rules.yaml");

#[derive(Deserialize)]
struct Table {
    bases: Map<String, Value>,
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    kind: String,
    breaks: Value,
    path: String,
}

/// Object that breaks a rule.
#[derive(Clone, Debug)]
pub struct Invalid {
    /// Object.
    pub object: DynamicObject,
    /// Path of the invalid field.
    pub path: String,
    /// True if the controllers can decode the object.
    pub decodable: bool,
    resource: ApiResource,
}

/// Returns an object of cluster `demo` for each rule of the kinds of `definitions` that breaks the rule.
///
/// # Panics
/// The table cannot be parsed.
#[must_use]
pub fn invalid(definitions: &[CustomResourceDefinition]) -> Vec<Invalid> {
    let Table { bases, rules } = serde_saphyr::from_str(RULES).unwrap();
    let kinds: Vec<_> = definitions
        .iter()
        .map(|d| d.spec.names.kind.as_str())
        .collect();
    let rules = rules.into_iter().enumerate();
    let rules = rules.filter(|(_, rule)| kinds.contains(&rule.kind.as_str()));
    let object = |(index, rule): (usize, Rule)| {
        let mut object = bases[&rule.kind].clone();
        object["metadata"]["name"] = json!(format!("invalid-{index}"));
        object["metadata"]["labels"] = json!({"cluster.x-k8s.io/cluster-name": "demo"});
        apimachinery::patch::merge(&mut object, &rule.breaks).unwrap();
        let version = object["apiVersion"].as_str().unwrap();
        let (group, version) = version.split_once('/').unwrap();
        Invalid {
            resource: ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &rule.kind)),
            object: serde_json::from_value(object.clone()).unwrap(),
            path: rule.path,
            // This number does not fit any field.
            decodable: !rule.breaks.to_string().contains("99999999999"),
        }
    };
    rules.map(object).collect()
}

impl Management {
    /// Stores `objects` although the rules reject them, and returns the stored ones: some break the schema, too.
    ///
    /// # Panics
    /// The rules accept an object.
    pub async fn store_invalid(&self, objects: Vec<Invalid>) -> Vec<Invalid> {
        let mut stored = Vec::new();
        for invalid in objects {
            let Invalid { object, path, .. } = &invalid;
            let api = self.of(&invalid);
            let params = PostParams::default();
            let refused = api.create(&params, object).await.unwrap_err().to_string();
            self.enforce(false);
            if api.create(&params, object).await.is_ok() {
                assert!(refused.contains(path), "{refused}");
                stored.push(invalid);
            }
            self.enforce(true);
        }
        stored
    }

    /// Changes a label of each of `objects`, and waits until controllers have added finalizers to the objects of the
    /// kinds in `finalized`.
    ///
    /// # Panics
    /// An object cannot be changed.
    pub async fn reconcile_invalid(&self, objects: &[Invalid], finalized: &[&str]) {
        for invalid in objects {
            let patch = Patch::Merge(json!({"metadata": {"labels": {"edited": "yes"}}}));
            let api = self.of(invalid);
            let name = invalid.object.name_any();
            api.patch(&name, &PatchParams::default(), &patch)
                .await
                .unwrap();
            if !invalid.decodable || !finalized.contains(&invalid.resource.kind.as_str()) {
                continue;
            }
            eventually("a finalizer", || async {
                let object = api.get(&name).await.unwrap();
                let has = !object.finalizers().is_empty();
                has.then_some(())
                    .ok_or_else(|| format!("{} {name}", invalid.path))
            })
            .await;
        }
    }

    /// Deletes `objects`, and waits until all are removed.
    ///
    /// # Panics
    /// An object is not removed in time.
    pub async fn delete_invalid(&self, objects: &[Invalid]) {
        for invalid in objects {
            let params = DeleteParams::default();
            let deleted = self
                .of(invalid)
                .delete(&invalid.object.name_any(), &params)
                .await;
            assert!(deleted.is_ok(), "{deleted:?}");
        }
        for invalid in objects {
            eventually("the object to go", || async {
                let left = self
                    .of(invalid)
                    .get_opt(&invalid.object.name_any())
                    .await
                    .unwrap();
                left.map_or(Ok(()), |left| Err(format!("{left:#?}")))
            })
            .await;
        }
    }

    fn of(&self, invalid: &Invalid) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), NAMESPACE, &invalid.resource)
    }
}
