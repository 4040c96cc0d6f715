//! Objects of any kind.

use std::borrow::Cow;

use kube::Resource;
use kube::api::ObjectMeta;
use kube::core::DynamicResourceScope;
use kube::discovery::ApiResource;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Object of any kind as JSON. Watches and lists of all kinds share this type, so kube's code for them is compiled
/// once; only the conversion to a `K` is compiled for each kind.
#[derive(Clone, Debug)]
pub(crate) struct Raw {
    pub(crate) value: Value,
    /// Only name, namespace, UID and resourceVersion.
    metadata: ObjectMeta,
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let text = |field: &str| value["metadata"][field].as_str().map(str::to_owned);
        let metadata = ObjectMeta {
            name: text("name"),
            namespace: text("namespace"),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            ..ObjectMeta::default()
        };
        Ok(Self { value, metadata })
    }
}

impl Resource for Raw {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(of: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&of.kind)
    }

    fn group(of: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&of.group)
    }

    fn version(of: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&of.version)
    }

    fn api_version(of: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&of.api_version)
    }

    fn plural(of: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&of.plural)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
