//! A cloud: parameters, with the name and namespace that it has in the cluster.

use serde_json::Value as Json;

use crate::parameters::{Parameters, ParametersError};

/// The longest name: names of Pods and labels are made from it.
const LONGEST: usize = 40;
/// The namespace of a cloud that names none.
pub(crate) const NAMESPACE: &str = "openstack";

/// A cloud.
#[derive(Clone, Debug, PartialEq)]
pub struct Cloud {
    /// Its name.
    pub name: String,
    /// Its namespace, which it has for itself.
    pub namespace: String,
    /// Its parameters.
    pub parameters: Parameters,
}

impl Cloud {
    /// The cloud of a document whose parameters have been read. Without a name it is `cloud`, without a namespace
    /// it is in `openstack`.
    ///
    /// # Errors
    /// If name or namespace are no DNS labels.
    pub fn of(document: &Json, parameters: Parameters) -> Result<Self, ParametersError> {
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
        Ok(Self {
            name: field("name", "cloud")?,
            namespace: field("namespace", NAMESPACE)?,
            parameters,
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
