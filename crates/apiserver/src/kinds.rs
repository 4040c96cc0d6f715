//! The served resources: built-in kinds from a table that all servers share, custom kinds from
//! CustomResourceDefinitions.

mod built_in;
pub(crate) mod columns;
pub(crate) mod selectable;
pub(crate) mod shape;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use serde_json::Value;

use crate::schema::Schema;

pub(crate) use built_in::CRD_COLLECTION;

/// A resource: a kind of object and the URL under which it is served.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    /// All versions, the one that discovery prefers first.
    pub(crate) versions: Vec<Version>,
    /// The `apiVersion` in which objects are stored.
    pub(crate) stored: String,
    /// The name of the collection in the store.
    pub(crate) collection: Arc<str>,
    pub(crate) origin: Origin,
    /// The conversion webhook, if the definition names one.
    pub(crate) conversion: Option<Arc<Conversion>>,
}

/// The origin of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    BuiltIn(Traits),
    Custom {
        /// True if `spec.conversion.strategy` is `Webhook`: a webhook or the hooks of the process convert objects.
        converts: bool,
    },
}

/// The conversion webhook of a definition.
#[derive(Debug)]
pub(crate) struct Conversion {
    /// Unique for each compiled definition, so that results of an older webhook are not used.
    pub(crate) id: u64,
    /// `clientConfig`: where the webhook is.
    pub(crate) client_config: Value,
    /// The versions of reviews that it understands, the preferred one first.
    pub(crate) review_versions: Vec<String>,
}

/// Properties of a built-in kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traits {
    /// True if `metadata.generation` is incremented when the spec changes.
    pub(crate) generation: bool,
    /// True for reviews, such as TokenReview: the API server answers and stores no object.
    pub(crate) virtual_: bool,
}

/// One version of a resource.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) name: String,
    /// `group/version`.
    pub(crate) api_version: String,
    pub(crate) served: bool,
    pub(crate) status: bool,
    pub(crate) scale: Option<Scale>,
    /// Further subresources: `eviction`, `token`, `finalize`.
    pub(crate) subresources: Vec<&'static str>,
    pub(crate) columns: Vec<Column>,
    pub(crate) schema: Option<Schema>,
    /// `openAPIV3Schema` of the definition.
    pub(crate) open_api: Option<Value>,
    /// Fields beyond the metadata that field selectors may refer to.
    pub(crate) selectable: Vec<String>,
    /// The warning for clients that use this version.
    pub(crate) warning: Option<String>,
}

/// The field paths of the scale subresource, such as `.spec.replicas`.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    pub(crate) spec: String,
    pub(crate) status: String,
    pub(crate) selector: Option<String>,
}

/// A column of `kubectl get`.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`: how the cell is formatted.
    pub(crate) kind: String,
    /// The type in the column definitions of a table, where it differs.
    pub(crate) declared_kind: Option<String>,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    pub(crate) cell: Cell,
}

/// How the cell is computed.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    /// A JSONPath as a CustomResourceDefinition gives it: `.status.phase`.
    Path(String),
    /// A function of a built-in kind.
    Computed(fn(&Value) -> Value),
    /// A function of a built-in kind and of the current time.
    Aged(fn(&Value, Timestamp) -> Value),
}

impl Resource {
    pub(crate) fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// The Go type of a version; `None` for custom kinds and CustomResourceDefinitions.
    pub(crate) fn shape(&self, version: &str) -> Option<&'static shape::Struct> {
        match self.origin {
            Origin::BuiltIn(_) => shape::of(&self.group, version, &self.kind),
            Origin::Custom { .. } => None,
        }
    }

    /// The version in which objects are stored.
    pub(crate) fn stored_version(&self) -> &Version {
        self.versions
            .iter()
            .find(|v| v.api_version == self.stored)
            .unwrap_or(&self.versions[0])
    }

    pub(crate) fn is_custom(&self) -> bool {
        matches!(self.origin, Origin::Custom { .. })
    }

    pub(crate) fn is_crd(&self) -> bool {
        *self.collection == *CRD_COLLECTION
    }

    /// The key of an object in the collection.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> Arc<str> {
        if self.namespaced {
            format!("{namespace}/{name}").into()
        } else {
            name.into()
        }
    }
}

/// All resources of one server.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
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
    /// Nothing but the built-in kinds.
    pub(crate) fn built_in() -> Self {
        Self {
            custom: BTreeMap::new(),
        }
    }

    pub(crate) fn with(&self, resource: Arc<Resource>) -> Self {
        let mut custom = self.custom.clone();
        custom.insert((resource.group.clone(), resource.plural.clone()), resource);
        Self { custom }
    }

    pub(crate) fn without(&self, group: &str, plural: &str) -> Self {
        let mut custom = self.custom.clone();
        custom.remove(&(group.to_owned(), plural.to_owned()));
        Self { custom }
    }

    pub(crate) fn find(&self, group: &str, plural: &str) -> Option<Arc<Resource>> {
        if let Some(found) = BUILT_IN_BY_NAME.get(&(group, plural)) {
            return Some(Arc::clone(found));
        }
        self.custom
            .get(&(group.to_owned(), plural.to_owned()))
            .cloned()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        BUILT_IN.iter().chain(self.custom.values())
    }

    pub(crate) fn has_group(&self, group: &str) -> bool {
        self.all().any(|resource| resource.group == group)
    }

    /// True if a resource is built in.
    pub(crate) fn has_built_in(group: &str, plural: &str) -> bool {
        BUILT_IN_BY_NAME.contains_key(&(group, plural))
    }

    /// True if a group has built-in kinds.
    pub(crate) fn is_built_in(group: &str) -> bool {
        BUILT_IN.iter().any(|resource| resource.group == group)
    }
}
