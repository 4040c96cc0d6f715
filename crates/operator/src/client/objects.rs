//! Requests for objects of any kind, as JSON.

use api::decode::{Undecoded, decoded};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::Client;
use kube::api::{
    DeleteParams, EvictParams, GetParams, ListMeta, ListParams, Patch, PatchParams, PostParams,
    Request, TypeMeta,
};
use kube::core::request;
use kube::discovery::ApiResource;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::Value;

/// Body of a request, or the error of writing the body.
pub(super) type Body = Result<Value, serde_json::Error>;
/// Answer to a request.
pub(super) type Answer<'a> = BoxFuture<'a, kube::Result<Value>>;

/// Objects of a kind, of one namespace or of all.
#[derive(Clone)]
pub(super) struct Objects {
    pub(super) client: Client,
    pub(super) request: Request,
    pub(super) namespace: Option<String>,
    pub(super) kind: ApiResource,
    /// True if the objects are requested without spec and status.
    pub(super) metadata_alone: bool,
}

/// List whose items are not decoded.
pub(super) struct List {
    pub(super) types: TypeMeta,
    pub(super) metadata: ListMeta,
    pub(super) items: Vec<Value>,
}

type Written = Result<http::Request<Vec<u8>>, request::Error>;

impl Objects {
    pub(super) fn get(&self, name: &str) -> Answer<'_> {
        if self.metadata_alone {
            return self.get_metadata(name);
        }
        self.answer("get", self.request.get(name, &GetParams::default()))
    }

    pub(super) fn get_metadata(&self, name: &str) -> Answer<'_> {
        let request = self.request.get_metadata(name, &GetParams::default());
        self.answer("get_metadata", request)
    }

    pub(super) fn list(&self, params: &ListParams) -> BoxFuture<'_, kube::Result<List>> {
        if self.metadata_alone {
            return self.list_metadata(params);
        }
        self.listed("list", self.request.list(params))
    }

    pub(super) fn list_metadata(&self, params: &ListParams) -> BoxFuture<'_, kube::Result<List>> {
        self.listed("list_metadata", self.request.list_metadata(params))
    }

    pub(super) fn create(&self, params: &PostParams, object: Body) -> Answer<'_> {
        let request = bytes(object).and_then(|object| self.request.create(params, object));
        self.answer("create", request)
    }

    pub(super) fn replace(&self, name: &str, params: &PostParams, object: Body) -> Answer<'_> {
        let request = bytes(object).and_then(|object| self.request.replace(name, params, object));
        self.answer("replace", request)
    }

    pub(super) fn patch(
        &self,
        name: &str,
        params: &PatchParams,
        patch: Result<Patch<Value>, request::Error>,
    ) -> Answer<'_> {
        if self.metadata_alone {
            return self.patch_metadata(name, params, patch);
        }
        let request = patch.and_then(|patch| self.request.patch(name, params, &patch));
        self.answer("patch", request)
    }

    pub(super) fn patch_metadata(
        &self,
        name: &str,
        params: &PatchParams,
        patch: Result<Patch<Value>, request::Error>,
    ) -> Answer<'_> {
        let request = patch.and_then(|patch| self.request.patch_metadata(name, params, &patch));
        self.answer("patch_metadata", request)
    }

    pub(super) fn patch_subresource(
        &self,
        subresource: &str,
        name: &str,
        params: &PatchParams,
        patch: Result<Patch<Value>, request::Error>,
    ) -> Answer<'_> {
        let request = patch.and_then(|patch| {
            self.request
                .patch_subresource(subresource, name, params, &patch)
        });
        self.answer("patch_subresource", request)
    }

    /// Deletes an object. The answer is the object, if it is still there, or a Status.
    pub(super) fn delete(&self, name: &str, params: &DeleteParams) -> Answer<'_> {
        self.answer("delete", self.request.delete(name, params))
    }

    pub(super) fn evict(&self, name: &str, params: &EvictParams) -> Answer<'_> {
        self.answer("evict", self.request.evict(name, params))
    }

    /// Sends `request`. `verb` names the trace, with the same names as in kube.
    fn answer(&self, verb: &'static str, request: Written) -> Answer<'_> {
        async move {
            let mut request = request.map_err(kube::Error::BuildRequest)?;
            request.extensions_mut().insert(verb);
            self.client.request::<Value>(request).await
        }
        .boxed()
    }

    fn listed(&self, verb: &'static str, request: Written) -> BoxFuture<'_, kube::Result<List>> {
        async move {
            let list = self.answer(verb, request).await?;
            self.list_of(list)
        }
        .boxed()
    }

    fn list_of(&self, mut list: Value) -> kube::Result<List> {
        let items = match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items,
            Some(Value::Null) => Vec::new(),
            other => return Err(self.no_list(&other.unwrap_or_default())),
        };
        let text = |field: &str, otherwise: &str| {
            let text = list.get(field).and_then(Value::as_str);
            text.unwrap_or(otherwise).to_owned()
        };
        let types = TypeMeta {
            api_version: text("apiVersion", "v1"),
            kind: text("kind", "List"),
        };
        let metadata = match list.get("metadata") {
            Some(metadata) => self.decoded(metadata)?,
            None => ListMeta::default(),
        };
        Ok(List {
            types,
            metadata,
            items,
        })
    }

    fn no_list(&self, items: &Value) -> kube::Error {
        let problem = decoded::<Vec<Value>>(items).err();
        let problem = problem.map(|it| it.to_string()).unwrap_or_default();
        let text = format!("list of {}: items: {problem}", self.kind.kind);
        kube::Error::SerdeError(serde_json::Error::custom(text))
    }

    /// Returns the content of an answer.
    pub(super) fn decoded<T: DeserializeOwned>(&self, object: &Value) -> kube::Result<T> {
        decoded(object).map_err(|problem| self.undecoded(object, &problem))
    }

    #[cold]
    fn undecoded(&self, object: &Value, problem: &Undecoded) -> kube::Error {
        let text = |field: &str| object["metadata"][field].as_str();
        let kind = &self.kind.kind;
        let name = text("name").unwrap_or("without a name");
        let object = match text("namespace") {
            Some(namespace) => format!("{kind} {namespace}/{name}"),
            None => format!("{kind} {name}"),
        };
        kube::Error::SerdeError(serde_json::Error::custom(format!("{object}: {problem}")))
    }
}

fn bytes(body: Body) -> Result<Vec<u8>, request::Error> {
    let bytes = body.and_then(|body| serde_json::to_vec(&body));
    bytes.map_err(request::Error::SerializeBody)
}
