//! Served resources: built-in kinds from a table common to all servers, custom kinds from CustomResourceDefinitions.

mod built_in;
pub(crate) mod columns;
pub mod selectable;
pub mod shape;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use serde_json::Value;

use crate::schema::Schema;

pub use built_in::CRD_COLLECTION;

/// Resource: a kind of object and its URL.
#[derive(Debug)]
pub struct Resource {
    /// API group, empty for core.
    pub group: String,
    /// Lower-case plural name, as in URLs.
    pub plural: String,
    /// Lower-case singular name.
    pub singular: String,
    /// Kind.
    pub kind: String,
    /// Kind of a list: `PodList`.
    pub list_kind: String,
    /// Short names for command lines: `po`.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// True if objects live in namespaces.
    pub namespaced: bool,
    /// All versions, in the order of discovery.
    pub versions: Vec<Version>,
    /// `apiVersion` of stored objects.
    pub stored: String,
    /// Name of the collection in the store.
    pub collection: Arc<str>,
    /// Built-in or custom.
    pub origin: Origin,
    /// Conversion webhook, if the definition names one.
    pub conversion: Option<Arc<Conversion>>,
}

/// Origin of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Kind of Kubernetes itself.
    BuiltIn(Traits),
    /// Kind of a CustomResourceDefinition.
    Custom {
        /// True if `spec.conversion.strategy` is `Webhook`: a webhook or the hooks of the process convert objects.
        converts: bool,
    },
}

/// Conversion webhook of a definition.
#[derive(Debug)]
pub struct Conversion {
    /// Unique id for each compiled definition, so that results of an older webhook are not used.
    pub id: u64,
    /// `clientConfig`: address of the webhook.
    pub client_config: Value,
    /// Versions of ConversionReview that the webhook accepts, the preferred one first.
    pub review_versions: Vec<String>,
}

/// Properties of a built-in kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// True if `metadata.generation` is incremented when the spec changes.
    pub generation: bool,
    /// True for reviews, such as TokenReview: the API server answers and stores no object.
    pub virtual_: bool,
}

/// One version of a resource.
#[derive(Debug)]
pub struct Version {
    /// Name, such as `v1`.
    pub name: String,
    /// `group/version`.
    pub api_version: String,
    /// False for a version that is only stored, and not served.
    pub served: bool,
    /// True if the status subresource is enabled.
    pub status: bool,
    /// Scale subresource.
    pub scale: Option<Scale>,
    /// Further subresources: `eviction`, `token`, `finalize`.
    pub subresources: Vec<&'static str>,
    pub(crate) columns: Vec<Column>,
    /// Compiled [`Schema`] of a custom kind.
    pub schema: Option<Schema>,
    /// `openAPIV3Schema` of the definition.
    pub open_api: Option<Value>,
    /// Fields for field selectors, besides the metadata.
    pub selectable: Vec<String>,
    /// Warning for clients that use this version.
    pub warning: Option<String>,
}

/// Field paths of the scale subresource, such as `.spec.replicas`.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Path of the replicas in the spec.
    pub spec: String,
    /// Path of the replicas in the status.
    pub status: String,
    /// Path of the label selector of the replicas, as text.
    pub selector: Option<String>,
}

/// Column of `kubectl get`.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Type for formatting the cell: `string`, `integer`, `number`, `boolean` or `date`.
    pub(crate) kind: String,
    /// Type in the column definitions of a table, where it differs from the formatting.
    pub(crate) declared_kind: Option<String>,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    pub(crate) cell: Cell,
}

/// Computation of a cell.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    /// JSONPath from a CustomResourceDefinition: `.status.phase`.
    Path(String),
    /// Function of a built-in kind.
    Computed(fn(&Value) -> Value),
    /// Function of a built-in kind and of the current time.
    Aged(fn(&Value, Timestamp) -> Value),
}

impl Resource {
    /// Returns the [`Version`] of a name, served or not.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// Returns the Go type of a version; `None` for custom kinds and CustomResourceDefinitions.
    pub fn shape(&self, version: &str) -> Option<&'static shape::Struct> {
        match self.origin {
            Origin::BuiltIn(_) => shape::of(&self.group, version, &self.kind),
            Origin::Custom { .. } => None,
        }
    }

    /// Returns the [`Version`] of stored objects.
    pub fn stored_version(&self) -> &Version {
        self.versions
            .iter()
            .find(|v| v.api_version == self.stored)
            .unwrap_or(&self.versions[0])
    }

    /// True for a kind of a CustomResourceDefinition.
    pub fn is_custom(&self) -> bool {
        matches!(self.origin, Origin::Custom { .. })
    }

    /// True for the resource of CustomResourceDefinitions itself.
    pub fn is_crd(&self) -> bool {
        *self.collection == *CRD_COLLECTION
    }

    /// Returns the key of an object in the collection.
    pub fn key(&self, namespace: &str, name: &str) -> Arc<str> {
        if self.namespaced {
            format!("{namespace}/{name}").into()
        } else {
            name.into()
        }
    }
}

/// All resources of one server.
#[derive(Clone, Debug)]
pub struct Registry {
    custom: BTreeMap<(String, String), Arc<Resource>>,
}

static BUILT_IN: LazyLock<Vec<Arc<Resource>>> = LazyLock::new(built_in::all);
static BUILT_IN_BY_NAME: LazyLock<HashMap<(&'static str, &'static str), Arc<Resource>>> =
    LazyLock::new(|| {
        BUILT_IN
            .iter()
            .map(|r| ((r.group.as_str(), r.plural.as_str()), Arc::clone(r)))
            .collect()
    });

impl Registry {
    /// Creates a registry of the built-in kinds.
    pub fn built_in() -> Self {
        Self {
            custom: BTreeMap::new(),
        }
    }

    /// Returns the registry with a custom [`Resource`] added or replaced.
    pub fn with(&self, resource: Arc<Resource>) -> Self {
        let mut custom = self.custom.clone();
        custom.insert((resource.group.clone(), resource.plural.clone()), resource);
        Self { custom }
    }

    /// Returns the registry without a custom kind.
    pub fn without(&self, group: &str, plural: &str) -> Self {
        let mut custom = self.custom.clone();
        custom.remove(&(group.to_owned(), plural.to_owned()));
        Self { custom }
    }

    /// Returns the [`Resource`] of a group and a plural name.
    pub fn find(&self, group: &str, plural: &str) -> Option<Arc<Resource>> {
        if let Some(found) = BUILT_IN_BY_NAME.get(&(group, plural)) {
            return Some(Arc::clone(found));
        }
        self.custom
            .get(&(group.to_owned(), plural.to_owned()))
            .cloned()
    }

    /// Returns all resources, the built-in ones first.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        BUILT_IN.iter().chain(self.custom.values())
    }

    /// True if a group has resources.
    pub fn has_group(&self, group: &str) -> bool {
        self.all().any(|resource| resource.group == group)
    }

    /// True if a resource is built in.
    pub fn has_built_in(group: &str, plural: &str) -> bool {
        BUILT_IN_BY_NAME.contains_key(&(group, plural))
    }

    /// True if a group has built-in kinds.
    pub fn is_built_in(group: &str) -> bool {
        BUILT_IN.iter().any(|resource| resource.group == group)
    }
}
