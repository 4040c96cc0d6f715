//! The test bed of the controllers: an API server in this process that knows the suite's kinds, as `ferrostack up`
//! wires it, with what a test does to its objects. A development dependency of the crates with controllers.
//!
//! ```text
//!   rules     conversion and admission of our kinds, which a test can switch off
//!   fake      kinds of providers that only tests have
//!   invalid   objects that break rules, and are stored nevertheless
//!   running   controllers that run, until they are killed
//!   fuse      controllers that are killed at each n-th write
//! ```

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fake;
mod fuse;
mod invalid;
mod rules;
mod running;

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use api::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use apiserver::ApiServer;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{GroupVersionKind, NamespaceResourceScope};
use kube::discovery::ApiResource;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use crate::fake::{fake, fake_definition};
pub use crate::fuse::{Fuse, killed_at_every};
pub use crate::invalid::{Invalid, invalid};
pub use crate::running::Running;

/// The namespace of every test.
pub const NAMESPACE: &str = "default";
/// How long [`eventually`] waits: much longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A management cluster in memory.
pub struct Management {
    /// The API server itself.
    pub server: ApiServer,
    /// A client that may do everything.
    pub client: Client,
    rules: rules::Rules,
}

/// A kind whose objects have a namespace and can be read.
pub trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned
{
}

impl<K> Kind for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
{
}

impl Management {
    /// A server that knows these definitions; those of the suite's groups are converted and admitted by the suite.
    ///
    /// # Panics
    /// When the server refuses one of them.
    pub async fn open(definitions: impl IntoIterator<Item = CustomResourceDefinition>) -> Self {
        let rules = rules::Rules::default();
        let options = apiserver::Options {
            hooks: Arc::new(rules.clone()),
            ..apiserver::Options::default()
        };
        let server = ApiServer::open(options).await.unwrap();
        let client = Client::new(server.in_process(), NAMESPACE);
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        for definition in definitions.into_iter().map(management::converted) {
            api.create(&PostParams::default(), &definition)
                .await
                .unwrap();
        }
        Self {
            server,
            client,
            rules,
        }
    }

    /// Whether admission rejects what breaks a rule: at first it does.
    pub fn enforce(&self, rules: bool) {
        self.rules.enforce(rules);
    }

    /// The objects of a kind.
    #[must_use]
    pub fn api<K: Kind>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Stores an object given as JSON, whatever it is.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn create(&self, object: Value) {
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let types = object.types.clone().unwrap();
        let (group, version) = types.api_version.split_once('/').unwrap_or(("", "v1"));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
        let api = Api::<DynamicObject>::namespaced_with(self.client.clone(), NAMESPACE, &resource);
        api.create(&PostParams::default(), &object).await.unwrap();
    }

    /// Stores objects given as JSON, one after the other.
    ///
    /// # Panics
    /// When one is refused.
    pub async fn apply(&self, objects: impl IntoIterator<Item = Value>) {
        for object in objects {
            self.create(object).await;
        }
    }

    /// Changes an object by a merge patch.
    ///
    /// # Panics
    /// When the patch is refused.
    pub async fn merge<K: Kind>(&self, name: &str, patch: Value) -> K {
        let patch = Patch::Merge(patch);
        self.api::<K>()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap()
    }

    /// Asks for the deletion of an object.
    ///
    /// # Panics
    /// When there is none of that name.
    pub async fn delete<K: Kind>(&self, name: &str) {
        let deleted = self.api::<K>().delete(name, &DeleteParams::default()).await;
        drop(deleted.unwrap());
    }

    /// All objects of a kind.
    ///
    /// # Panics
    /// When the list fails.
    pub async fn list<K: Kind>(&self) -> Vec<K> {
        let list = self.api::<K>().list(&ListParams::default()).await;
        list.unwrap().items
    }
}

/// Repeats `check` until it is content.
///
/// # Panics
/// With the last complaint when patience ends.
pub async fn eventually<T, F>(what: &str, check: impl Fn() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        match check().await {
            Ok(value) => return value,
            Err(seen) if tokio::time::Instant::now() > deadline => {
                panic!("waited in vain for {what}; last seen: {seen}")
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}
