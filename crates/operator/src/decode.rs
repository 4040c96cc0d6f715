//! Objects that may not be decodable, so that one of them does not fail a watch or a list.
//!
//! A watch or a list of `K` fails as a whole when one object cannot be decoded as `K`, for example because of a number
//! that the schema of a CustomResourceDefinition accepts (kube-apiserver does not enforce `format: int32`). [`Decoded`]
//! decodes any object, and keeps the error and the metadata of one that is not a `K`.

use std::borrow::Cow;

use futures::stream::BoxStream;
use futures::{FutureExt as _, Stream, StreamExt as _};
use kube::Resource;
use kube::api::{Api, ListParams, ObjectMeta};
use kube::core::DynamicResourceScope;
use kube::discovery::ApiResource;
use kube::runtime::watcher::{self, Event};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A `K`, or the error of decoding it.
#[derive(Clone, Debug)]
pub struct Decoded<K>(pub Result<K, Undecodable>);

/// An object that cannot be decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct Undecodable {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// The field and its error.
    pub problem: String,
}

impl<K: DeserializeOwned> Decoded<K> {
    /// # Errors
    /// When the object has no metadata.
    pub(crate) fn of(raw: &Raw) -> Result<Self, serde_json::Error> {
        let error = match serde_path_to_error::deserialize(&raw.value) {
            Ok(object) => return Ok(Self(Ok(object))),
            Err(error) => error,
        };
        let metadata = ObjectMeta::deserialize(&raw.value["metadata"])?;
        let problem = format!("{}: {}", error.path(), error.inner());
        Ok(Self(Err(Undecodable { metadata, problem })))
    }
}

/// An object of any kind as JSON. Watches and lists of all kinds are of this one type, so that kube's part of them is
/// compiled once; only what makes a `K` of it is compiled for each kind.
#[derive(Clone, Debug)]
pub(crate) struct Raw {
    value: Value,
    /// Only names and identity.
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

/// The same objects as those of `api`, as JSON.
fn raw<K: Resource + Clone>(api: &Api<K>, kind: &K::DynamicType) -> Api<Raw> {
    let kind = ApiResource::erase::<K>(kind);
    let client = api.clone().into_client();
    match api.namespace() {
        Some(namespace) => Api::namespaced_with(client, namespace, &kind),
        None => Api::all_with(client, &kind),
    }
}

/// The events of a watch of the objects of `api`.
pub(crate) fn watched<K>(
    api: &Api<K>,
    kind: &K::DynamicType,
    config: watcher::Config,
) -> impl Stream<Item = watcher::Result<Event<Decoded<K>>>> + Send + use<K>
where
    K: Resource + Clone + DeserializeOwned,
{
    let decoded = |raw: Raw| match Decoded::of(&raw) {
        Ok(object) => Ok(object),
        Err(error) => Err(watcher::Error::WatchFailed(kube::Error::SerdeError(error))),
    };
    watched_raw(raw(api, kind), config).map(move |event| {
        Ok(match event? {
            Event::Apply(object) => Event::Apply(decoded(object)?),
            Event::Delete(object) => Event::Delete(decoded(object)?),
            Event::Init => Event::Init,
            Event::InitApply(object) => Event::InitApply(decoded(object)?),
            Event::InitDone => Event::InitDone,
        })
    })
}

fn watched_raw(
    api: Api<Raw>,
    config: watcher::Config,
) -> BoxStream<'static, watcher::Result<Event<Raw>>> {
    kube::runtime::watcher(api, config).boxed()
}

async fn listed_raw(api: Api<Raw>, params: &ListParams) -> kube::Result<Vec<Raw>> {
    Ok(api.list(params).await?.items)
}

impl<K: Resource> Resource for Decoded<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(of: &K::DynamicType) -> Cow<'_, str> {
        K::kind(of)
    }

    fn group(of: &K::DynamicType) -> Cow<'_, str> {
        K::group(of)
    }

    fn version(of: &K::DynamicType) -> Cow<'_, str> {
        K::version(of)
    }

    fn plural(of: &K::DynamicType) -> Cow<'_, str> {
        K::plural(of)
    }

    fn meta(&self) -> &ObjectMeta {
        match &self.0 {
            Ok(object) => object.meta(),
            Err(undecodable) => &undecodable.metadata,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match &mut self.0 {
            Ok(object) => object.meta_mut(),
            Err(undecodable) => &mut undecodable.metadata,
        }
    }
}

/// A list of objects, with those that cannot be decoded.
#[derive(Clone, Debug)]
pub struct Listed<K> {
    /// The decoded objects.
    pub objects: Vec<K>,
    /// The objects that cannot be decoded.
    pub undecodable: Vec<Undecodable>,
}

/// Lists objects. Callers that act on the absence of an object must check [`Listed::undecodable`], too.
///
/// # Errors
/// Those of the API server.
pub async fn list<K>(api: &Api<K>, params: &ListParams) -> kube::Result<Listed<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned,
{
    let mut listed = Listed {
        objects: Vec::new(),
        undecodable: Vec::new(),
    };
    let found = listed_raw(raw(api, &()), params).boxed().await?;
    for object in &found {
        match Decoded::of(object).map_err(kube::Error::SerdeError)?.0 {
            Ok(object) => listed.objects.push(object),
            Err(undecodable) => listed.undecodable.push(undecodable),
        }
    }
    Ok(listed)
}

/// A required object cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{kind} {namespace}/{name} cannot be decoded ({problem}); nothing is done until this field is corrected"
)]
pub struct NotDecoded {
    kind: String,
    namespace: String,
    name: String,
    problem: String,
}

impl NotDecoded {
    /// Fails for the first of `undecodable`, objects of kind `K`, for which `concerns` is true.
    ///
    /// # Errors
    /// When there is one.
    pub fn check<K: Resource<DynamicType = ()>>(
        undecodable: &[Undecodable],
        concerns: impl Fn(&ObjectMeta) -> bool,
    ) -> Result<(), Self> {
        let Some(found) = undecodable.iter().find(|found| concerns(&found.metadata)) else {
            return Ok(());
        };
        Err(Self {
            kind: K::kind(&()).into_owned(),
            namespace: found.metadata.namespace.clone().unwrap_or_default(),
            name: found.metadata.name.clone().unwrap_or_default(),
            problem: found.problem.clone(),
        })
    }
}
