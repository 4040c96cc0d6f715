//! Cloud: parameters, with name and namespace in the cluster.

use serde_json::Value as Json;

use crate::parameters::{Parameters, ParametersError};

/// Longest name, since names of Pods and labels contain the name of the cloud.
const LONGEST: usize = 40;
/// Default namespace of a cloud.
pub(crate) const NAMESPACE: &str = "openstack";

/// Cloud with its [`Parameters`].
#[derive(Clone, Debug, PartialEq)]
pub struct Cloud {
    /// Name.
    pub name: String,
    /// Namespace, used by this cloud alone.
    pub namespace: String,
    /// [`Parameters`].
    pub parameters: Parameters,
    /// Spec from which the [`Parameters`] were read.
    pub spec: Json,
}

impl Cloud {
    /// Cloud of a document with [`Parameters`] read before. The default name is `cloud`, the default namespace
    /// `openstack`.
    ///
    /// # Errors
    /// If name or namespace are no DNS labels, or the namespace is one of Kubernetes itself.
    pub fn new(document: &Json, parameters: Parameters) -> Result<Self, ParametersError> {
        let field = |field: &str, default: &str| {
            let path = format!("metadata.{field}");
            let reject = |problem: &str| ParametersError {
                path: path.clone(),
                problem: problem.to_owned(),
            };
            let is_object = document.get("kind").is_some();
            match document.pointer(&format!("/metadata/{field}")) {
                Some(Json::String(text)) if is_object => label(text)
                    .then(|| text.clone())
                    .ok_or_else(|| reject("it has to be at most 40 lower case letters, digits and `-`, and begin with a letter")),
                Some(_) if is_object => Err(reject("it has to be a string")),
                _ => Ok(default.to_owned()),
            }
        };
        let namespace = field("namespace", NAMESPACE)?;
        // Nobody makes namespaces of these names, and the objects of the cluster itself are in them.
        if namespace.starts_with("kube-") {
            return Err(ParametersError {
                path: "metadata.namespace".to_owned(),
                problem: "namespaces that begin with `kube-` are those of Kubernetes itself; a cloud needs one for itself".to_owned(),
            });
        }
        Ok(Self {
            name: field("name", "cloud")?,
            namespace,
            parameters,
            spec: match Parameters::prefix(document) {
                "" => document.clone(),
                prefix => document[prefix].clone(),
            },
        })
    }
}

fn label(text: &str) -> bool {
    text.len() <= LONGEST
        && text.starts_with(|letter: char| letter.is_ascii_lowercase())
        && !text.ends_with('-')
        && text
            .chars()
            .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::release::Release;

    #[test]
    fn a_namespace_of_kubernetes_itself_is_refused_with_its_field() {
        let of = |namespace: &str| {
            let document = json!({"apiVersion": "ferrostack.dev/v1alpha1", "kind": "OpenStack",
                "metadata": {"name": "cloud", "namespace": namespace}, "spec": {"release": "2025.1"}});
            Cloud::new(&document, Parameters::from_release(Release::Epoxy))
        };
        for namespace in ["kube-system", "kube-public", "kube-node-lease"] {
            let error = of(namespace).unwrap_err().to_string();
            assert!(
                error.starts_with("metadata.namespace: namespaces that begin with `kube-`"),
                "{error}"
            );
        }
        assert_eq!(of("cubes").unwrap().namespace, "cubes");
    }
}
