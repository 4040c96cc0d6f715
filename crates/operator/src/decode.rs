//! Objects that may not be decodable, without failing a whole watch or list.
//!
//! A watch or a list of `K` fails as a whole when one object cannot be decoded as `K`, for example because of a number
//! that the schema of a CustomResourceDefinition accepts (kube-apiserver does not enforce `format: int32`). [`Decoded`]
//! accepts any object, and keeps error and metadata of an object that is not a `K`.

use std::borrow::Cow;
use std::marker::PhantomData;

use api::decode::decoded;
use futures::stream::BoxStream;
use futures::{FutureExt as _, Stream, StreamExt as _, stream};
use kube::Resource;
use kube::api::{ListParams, ObjectMeta, PartialObjectMeta};
use kube::runtime::watcher::{self, Event};
use serde::de::{DeserializeOwned, Error as _};

use crate::client::{Api, Raw};

/// Decoded `K`, or the error of decoding.
#[derive(Clone, Debug)]
pub struct Decoded<K>(pub Result<K, Undecodable>);

/// Object that cannot be decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct Undecodable {
    /// Metadata of the object.
    pub metadata: ObjectMeta,
    /// Field of the problem, with the error.
    pub problem: String,
}

impl<K: DeserializeOwned> Decoded<K> {
    /// # Errors
    /// The object has no metadata.
    pub(crate) fn from_raw(raw: &Raw) -> Result<Self, serde_json::Error> {
        let error = match decoded(&raw.value) {
            Ok(object) => return Ok(Self(Ok(object))),
            Err(error) => error,
        };
        let metadata = decoded(&raw.value["metadata"]).map_err(serde_json::Error::custom)?;
        let problem = format!("{}: {}", error.path(), error.message());
        Ok(Self(Err(Undecodable { metadata, problem })))
    }
}

/// Watches the objects of `api`.
pub(crate) fn watched<K>(
    api: &Api<K>,
    config: watcher::Config,
) -> impl Stream<Item = watcher::Result<Event<Decoded<K>>>> + Send + use<K>
where
    K: Resource + Clone + DeserializeOwned,
{
    let decoded = |raw: Raw| Decoded::from_raw(&raw).map_err(failed);
    watched_raw(api.raw(), config).map(move |event| each(event?, decoded))
}

/// Watches the objects of `api`. The watch begins anew after an object that is no `K`: an object missing from a list
/// would be taken for absent.
pub(crate) fn watched_strictly<K>(
    api: &Api<K>,
    config: watcher::Config,
) -> BoxStream<'static, watcher::Result<Event<K>>>
where
    K: DeserializeOwned + Send + 'static,
{
    let api = api.raw();
    let begun = move || watched_raw(api.clone(), config.clone());
    let strict = |raw: Raw| decoded(&raw.value).map_err(|it| failed(serde_json::Error::custom(it)));
    let events = stream::unfold(None, move |running: Option<BoxStream<'static, _>>| {
        let mut running = running.unwrap_or_else(&begun);
        async move {
            let event: watcher::Result<Event<Raw>> = running.next().await?;
            match event {
                Ok(event) => match each(event, strict) {
                    Ok(event) => Some((Ok(event), Some(running))),
                    Err(error) => Some((Err(error), None)),
                },
                Err(error) => Some((Err(error), Some(running))),
            }
        }
    });
    events.boxed()
}

/// Watches the object of this name; `None` while there is none.
pub(crate) fn watched_object<K>(
    api: &Api<K>,
    name: &str,
) -> BoxStream<'static, watcher::Result<Option<K>>>
where
    K: DeserializeOwned + Send + 'static,
{
    let found = watcher::watch_object(api.raw(), name).boxed();
    let decoded = |raw: Raw| decoded(&raw.value);
    let found = found.map(move |found| match found?.map(decoded).transpose() {
        Ok(object) => Ok(object),
        Err(problem) => Err(failed(serde_json::Error::custom(problem))),
    });
    found.boxed()
}

/// Watches the metadata of the objects of `api`.
pub(crate) fn watched_metadata<K: 'static>(
    api: &Api<PartialObjectMeta<K>>,
    config: watcher::Config,
) -> BoxStream<'static, watcher::Result<Event<PartialObjectMeta<K>>>> {
    let of_kind = |object: PartialObjectMeta<Raw>| {
        Ok(PartialObjectMeta {
            types: object.types,
            metadata: object.metadata,
            _phantom: PhantomData,
        })
    };
    let events = kube::runtime::watcher(api.raw_metadata(), config).boxed();
    events.map(move |event| each(event?, of_kind)).boxed()
}

fn failed(error: serde_json::Error) -> watcher::Error {
    watcher::Error::WatchFailed(kube::Error::SerdeError(error))
}

fn each<A, B>(
    event: Event<A>,
    convert: impl FnOnce(A) -> watcher::Result<B>,
) -> watcher::Result<Event<B>> {
    Ok(match event {
        Event::Apply(object) => Event::Apply(convert(object)?),
        Event::Delete(object) => Event::Delete(convert(object)?),
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(convert(object)?),
        Event::InitDone => Event::InitDone,
    })
}

fn watched_raw(
    api: kube::Api<Raw>,
    config: watcher::Config,
) -> BoxStream<'static, watcher::Result<Event<Raw>>> {
    kube::runtime::watcher(api, config).boxed()
}

async fn listed_raw(api: kube::Api<Raw>, params: &ListParams) -> kube::Result<Vec<Raw>> {
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

/// List of objects, with the ones that cannot be decoded.
#[derive(Clone, Debug)]
pub struct Listed<K> {
    /// Decoded objects.
    pub objects: Vec<K>,
    /// Objects that cannot be decoded.
    pub undecodable: Vec<Undecodable>,
}

/// Lists objects. Callers that act on the absence of an object must also check [`Listed::undecodable`].
///
/// # Errors
/// Errors of the API server.
pub async fn list<K>(api: &Api<K>, params: &ListParams) -> kube::Result<Listed<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned,
{
    let mut listed = Listed {
        objects: Vec::new(),
        undecodable: Vec::new(),
    };
    let found = listed_raw(api.raw(), params).boxed().await?;
    for object in &found {
        match Decoded::from_raw(object)
            .map_err(kube::Error::SerdeError)?
            .0
        {
            Ok(object) => listed.objects.push(object),
            Err(undecodable) => listed.undecodable.push(undecodable),
        }
    }
    Ok(listed)
}

/// Error: a required object cannot be decoded.
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
    /// [`NotDecoded`] with the object and the field.
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
