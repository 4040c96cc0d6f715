//! Objects that may not be decodable, so that one of them does not fail a watch or a list.
//!
//! A watch or a list of `K` fails as a whole when one object cannot be decoded as `K`, for example because of a number
//! that the schema of a CustomResourceDefinition accepts (kube-apiserver does not enforce `format: int32`). [`Decoded`]
//! decodes any object, and keeps the error and the metadata of one that is not a `K`.

use std::borrow::Cow;

use kube::Resource;
use kube::api::{Api, ListParams, ObjectMeta};
use serde::de::{DeserializeOwned, Error as _};
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

impl<'de, K: Resource + DeserializeOwned> Deserialize<'de> for Decoded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let error = match serde_path_to_error::deserialize(&value) {
            Ok(object) => return Ok(Self(Ok(object))),
            Err(error) => error,
        };
        let metadata = ObjectMeta::deserialize(&value["metadata"]).map_err(D::Error::custom)?;
        let problem = format!("{}: {}", error.path(), error.inner());
        Ok(Self(Err(Undecodable { metadata, problem })))
    }
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
pub async fn list<K>(api: &Api<Decoded<K>>, params: &ListParams) -> kube::Result<Listed<K>>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let mut listed = Listed {
        objects: Vec::new(),
        undecodable: Vec::new(),
    };
    for object in api.list(params).await? {
        match object.0 {
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
