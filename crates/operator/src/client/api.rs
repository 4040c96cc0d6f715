//! Requests for the objects of one kind.
//!
//! kube's [`Api`](kube::Api) is compiled anew for each kind, with the serde code for its text. Here requests and
//! answers are JSON, which has one type: only the conversion to a `K` is compiled for each kind, once
//! ([`decode`](api::decode)).

use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{
    DeleteParams, DynamicObject, EvictParams, ListParams, ObjectList, PartialObjectMeta, Patch,
    PatchParams, Portforwarder, PostParams, Request,
};
use kube::core::{DynamicResourceScope, NamespaceResourceScope, Status, request};
use kube::discovery::ApiResource;
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::objects::{Answer, Body, Objects};
use super::raw::Raw;

/// Objects of kind `K`, of one namespace or of all. The methods are those of kube's [`Api`](kube::Api), with the same
/// errors; an error about an answer that is no `K` names the object and the field.
pub struct Api<K> {
    objects: Objects,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Api<K> {
    fn clone(&self) -> Self {
        Self {
            objects: self.objects.clone(),
            kind: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Api<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut api = f.debug_struct("Api");
        api.field("path", &self.objects.request.url_path);
        api.finish_non_exhaustive()
    }
}

impl<K: Resource> Api<K> {
    /// Objects of all namespaces, or of a cluster-scoped kind.
    pub fn all_with(client: Client, kind: &K::DynamicType) -> Self {
        Self::new(client, None, kind)
    }

    /// Objects of a namespace.
    pub fn namespaced_with(client: Client, namespace: &str, kind: &K::DynamicType) -> Self
    where
        K: Resource<Scope = DynamicResourceScope>,
    {
        Self::new(client, Some(namespace), kind)
    }

    /// Objects of all namespaces, or of a cluster-scoped kind.
    pub fn all(client: Client) -> Self
    where
        K::DynamicType: Default,
    {
        Self::new(client, None, &K::DynamicType::default())
    }

    /// Objects of a namespace.
    pub fn namespaced(client: Client, namespace: &str) -> Self
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Self::new(client, Some(namespace), &K::DynamicType::default())
    }

    /// Objects of the client's default namespace.
    pub fn default_namespaced(client: Client) -> Self
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        let namespace = client.default_namespace().to_owned();
        Self::namespaced(client, &namespace)
    }

    fn new(client: Client, namespace: Option<&str>, kind: &K::DynamicType) -> Self {
        let objects = Objects {
            client,
            request: Request::new(K::url_path(kind, namespace)),
            namespace: namespace.map(str::to_owned),
            kind: ApiResource::erase::<K>(kind),
            metadata_alone: K::metadata_api(),
        };
        Self {
            objects,
            kind: PhantomData,
        }
    }
}

impl<K> Api<K> {
    /// Returns the namespace of the requests; `None` for all namespaces, or for a cluster-scoped kind.
    pub fn namespace(&self) -> Option<&str> {
        self.objects.namespace.as_deref()
    }

    /// Returns the client of the requests.
    pub fn into_client(self) -> Client {
        self.objects.client
    }

    /// Returns the same objects as kube's own [`Api`](kube::Api), for kube functions that await a condition of an
    /// object.
    #[must_use]
    pub fn kube(&self) -> kube::Api<K>
    where
        K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
    {
        self.of_type()
    }

    /// Returns the same objects as JSON.
    pub(crate) fn raw(&self) -> kube::Api<Raw> {
        self.of_type()
    }

    /// Returns the metadata of the same objects.
    pub(crate) fn raw_metadata(&self) -> kube::Api<PartialObjectMeta<Raw>> {
        self.of_type()
    }

    fn of_type<T>(&self) -> kube::Api<T>
    where
        T: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
    {
        let (client, kind) = (self.objects.client.clone(), &self.objects.kind);
        match self.namespace() {
            Some(namespace) => kube::Api::namespaced_with(client, namespace, kind),
            None => kube::Api::all_with(client, kind),
        }
    }
}

impl<K: DeserializeOwned> Api<K> {
    /// Reads an object.
    ///
    /// # Errors
    /// Errors of the API server, of the connection and of the answer, as with all methods.
    pub async fn get(&self, name: &str) -> kube::Result<K> {
        let object = self.objects.get(name).await?;
        self.objects.decoded(&object)
    }

    /// Reads an object, or returns `None` if no object has the name.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn get_opt(&self, name: &str) -> kube::Result<Option<K>> {
        match present(self.objects.get(name)).await? {
            Some(object) => self.objects.decoded(&object).map(Some),
            None => Ok(None),
        }
    }

    /// Lists the objects.
    ///
    /// # Errors
    /// As [`get`](Self::get). One object that is no `K` fails the whole list; [`crate::decode::list`] skips such
    /// objects.
    pub async fn list(&self, params: &ListParams) -> kube::Result<ObjectList<K>>
    where
        K: Clone,
    {
        let list = self.objects.list(params).await?;
        let objects = list.items.iter().map(|it| self.objects.decoded(it));
        Ok(ObjectList {
            items: objects.collect::<kube::Result<_>>()?,
            types: list.types,
            metadata: list.metadata,
        })
    }

    /// Creates `object`, and returns the stored object.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn create(&self, params: &PostParams, object: &K) -> kube::Result<K>
    where
        K: Serialize,
    {
        let object = self.objects.create(params, json(object)).await?;
        self.objects.decoded(&object)
    }

    /// Replaces the object of this name by `object`, and returns the stored object.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn replace(&self, name: &str, params: &PostParams, object: &K) -> kube::Result<K>
    where
        K: Serialize,
    {
        let object = self.objects.replace(name, params, json(object)).await?;
        self.objects.decoded(&object)
    }

    /// Patches an object, and returns the stored object.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn patch<P: Serialize>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> kube::Result<K> {
        let object = self.objects.patch(name, params, erased(patch)).await?;
        self.objects.decoded(&object)
    }

    /// Patches the status of an object, and returns the stored object.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn patch_status<P: Serialize>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> kube::Result<K> {
        self.patch_subresource("status", name, params, patch).await
    }

    /// Patches a subresource whose answer is the object itself.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn patch_subresource<P: Serialize>(
        &self,
        subresource: &str,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> kube::Result<K> {
        let patch = erased(patch);
        let object = self
            .objects
            .patch_subresource(subresource, name, params, patch)
            .await?;
        self.objects.decoded(&object)
    }
}

impl<K> Api<K> {
    /// Reads the metadata of an object, or returns `None` if no object has the name.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn get_metadata_opt(&self, name: &str) -> kube::Result<Option<PartialObjectMeta<K>>> {
        let object = present(self.objects.get_metadata(name)).await?;
        object.map(|object| self.partial(&object)).transpose()
    }

    /// Lists the metadata of the objects.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn list_metadata(
        &self,
        params: &ListParams,
    ) -> kube::Result<ObjectList<PartialObjectMeta<K>>>
    where
        K: Clone,
    {
        let list = self.objects.list_metadata(params).await?;
        let objects = list.items.iter().map(|it| self.partial(it));
        Ok(ObjectList {
            items: objects.collect::<kube::Result<_>>()?,
            types: list.types,
            metadata: list.metadata,
        })
    }

    /// Patches an object, and returns the metadata of the stored object.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn patch_metadata<P: Serialize>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> kube::Result<PartialObjectMeta<K>> {
        let patch = erased(patch);
        let object = self.objects.patch_metadata(name, params, patch).await?;
        self.partial(&object)
    }

    /// Deletes an object at once, or marks the object as being deleted if finalizers remain.
    ///
    /// # Errors
    /// Errors of the API server and of the connection.
    pub async fn delete(&self, name: &str, params: &DeleteParams) -> kube::Result<()> {
        self.objects.delete(name, params).await.map(drop)
    }

    fn partial(&self, object: &Value) -> kube::Result<PartialObjectMeta<K>> {
        let decoded: PartialObjectMeta<DynamicObject> = self.objects.decoded(object)?;
        Ok(PartialObjectMeta {
            types: decoded.types,
            metadata: decoded.metadata,
            _phantom: PhantomData,
        })
    }
}

impl Api<Pod> {
    /// Evicts a Pod, if the PodDisruptionBudgets allow the eviction now.
    ///
    /// # Errors
    /// As [`get`](Self::get); 429 when a budget forbids the eviction.
    pub async fn evict(&self, name: &str, params: &EvictParams) -> kube::Result<Status> {
        let answer = self.objects.evict(name, params).await?;
        self.objects.decoded(&answer)
    }

    /// Opens connections to ports of a Pod.
    ///
    /// # Errors
    /// Errors of the API server and of the connection.
    pub async fn portforward(&self, name: &str, ports: &[u16]) -> kube::Result<Portforwarder> {
        let client = self.objects.client.clone();
        let pods: kube::Api<Pod> = match self.namespace() {
            Some(namespace) => kube::Api::namespaced(client, namespace),
            None => kube::Api::all(client),
        };
        pods.portforward(name, ports).await
    }
}

fn json<T: Serialize>(object: &T) -> Body {
    serde_json::to_value(object)
}

fn erased<P: Serialize>(patch: &Patch<P>) -> Result<Patch<Value>, request::Error> {
    let (wrap, patch): (fn(Value) -> Patch<Value>, _) = match patch {
        Patch::Apply(patch) => (Patch::Apply, patch),
        Patch::Merge(patch) => (Patch::Merge, patch),
        Patch::Strategic(patch) => (Patch::Strategic, patch),
        _ => return Err(request::Error::Validation("no such patch".to_owned())),
    };
    json(patch).map(wrap).map_err(request::Error::SerializeBody)
}

/// Returns the content of an answer; `None` for a 404 about the object.
async fn present(answer: Answer<'_>) -> kube::Result<Option<Value>> {
    match answer.await {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
