//! Test bed of the controllers: an API server in the process with the suite's kinds, wired as by `ferrostack up`, and
//! operations on the objects. A development dependency of the crates with controllers.
//!
//! - `rules`: conversion and admission of our kinds, which a test can disable
//! - [`fake()`]: kinds of providers for tests
//! - [`invalid()`]: objects that break rules, and are stored nevertheless
//! - [`Running`]: running controllers, which a test can kill
//! - [`Fuse`]: controllers that are killed at each n-th write
//! - [`line()`]: a connection to a cloud that a test can cut
//! - [`Capo`]: the state left by the Go provider in cloud and management cluster

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod capo;
mod fake;
mod fuse;
mod guard;
mod invalid;
mod line;
mod rules;
mod running;

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

// The allocator of the program: the tests parse and copy JSON, which takes libc's twice as long.
use heap as _;

use api::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use apiserver::{ApiServer, Kubelet};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{GroupVersionKind, NamespaceResourceScope};
use kube::discovery::ApiResource;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

pub use crate::capo::Capo;
pub use crate::fake::{fake, fake_definition};
pub use crate::fuse::{Fuse, killed_at_every, written_at_rest};
pub use crate::guard::{Asked, Guard, Permission};
pub use crate::invalid::{Invalid, invalid};
pub use crate::line::{Calls, Cut, line};
pub use crate::running::Running;

/// Namespace of every test.
pub const NAMESPACE: &str = "default";
/// Timeout of [`eventually`]: much longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);
/// Minimum pause between two checks of [`eventually`].
const PAUSE: Duration = Duration::from_millis(20);
/// Divisor of the time waited so far; the quotient is the next pause of [`eventually`], at most [`LONGEST_PAUSE`].
const RARER: u32 = 20;
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Management cluster in memory.
pub struct Management {
    /// API server of the cluster.
    pub server: ApiServer,
    /// Client with all permissions.
    pub client: Client,
    rules: rules::Rules,
}

/// Namespaced kind with decodable objects.
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
    /// Opens a server with these definitions. The suite converts and admits the objects of its own API groups.
    ///
    /// # Panics
    /// The server rejects a definition.
    pub async fn open(definitions: impl IntoIterator<Item = CustomResourceDefinition>) -> Self {
        Self::open_with(definitions, None).await
    }

    /// As [`open`](Self::open), with the kubelets of simulated nodes.
    ///
    /// # Panics
    /// The server rejects a definition.
    pub async fn open_with(
        definitions: impl IntoIterator<Item = CustomResourceDefinition>,
        kubelet: Option<Arc<dyn Kubelet>>,
    ) -> Self {
        let rules = rules::Rules::default();
        let options = apiserver::Options {
            hooks: Arc::new(rules.clone()),
            kubelet,
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

    /// Sets whether admission rejects objects that break a rule; on by default.
    pub fn enforce(&self, rules: bool) {
        self.rules.enforce(rules);
    }

    /// Returns the objects of a kind.
    #[must_use]
    pub fn api<K: Kind>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Creates an object from JSON of any content.
    ///
    /// # Panics
    /// The server rejects the object.
    pub async fn create(&self, object: Value) {
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let types = object.types.clone().unwrap();
        let (group, version) = types.api_version.split_once('/').unwrap_or(("", "v1"));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
        let api = Api::<DynamicObject>::namespaced_with(self.client.clone(), NAMESPACE, &resource);
        api.create(&PostParams::default(), &object).await.unwrap();
    }

    /// Creates objects from JSON in order.
    ///
    /// # Panics
    /// The server rejects an object.
    pub async fn apply(&self, objects: impl IntoIterator<Item = Value>) {
        for object in objects {
            self.create(object).await;
        }
    }

    /// Changes an object by a merge patch.
    ///
    /// # Panics
    /// The server rejects the patch.
    pub async fn merge<K: Kind>(&self, name: &str, patch: Value) -> K {
        let patch = Patch::Merge(patch);
        self.api::<K>()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap()
    }

    /// Requests the deletion of an object.
    ///
    /// # Panics
    /// The object does not exist.
    pub async fn delete<K: Kind>(&self, name: &str) {
        let deleted = self.api::<K>().delete(name, &DeleteParams::default()).await;
        drop(deleted.unwrap());
    }

    /// Waits until an object does not exist.
    ///
    /// # Panics
    /// After the timeout, with the object.
    pub async fn gone<K: Kind>(&self, name: &str) {
        eventually(&format!("{name} to go"), || async {
            match self.api::<K>().get_opt(name).await.unwrap() {
                None => Ok(()),
                Some(object) => Err(format!("{object:?}")),
            }
        })
        .await;
    }

    /// Lists all objects of a kind.
    ///
    /// # Panics
    /// The list fails.
    pub async fn list<K: Kind>(&self) -> Vec<K> {
        let list = self.api::<K>().list(&ListParams::default()).await;
        list.unwrap().items
    }
}

/// Repeats `check` until success.
///
/// # Panics
/// After the timeout, with the last error.
pub async fn eventually<T, F>(what: &str, check: impl Fn() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    let started = Instant::now();
    loop {
        let begun = Instant::now();
        match check().await {
            Ok(value) => return value,
            Err(seen) if begun - started > PATIENCE => {
                panic!("waited in vain for {what}; last seen: {seen}")
            }
            // An expensive check leaves half of the time to what it waits for, which may run on the same thread. Where time
            // is paused, checks would otherwise take most of the processor: a minute passes at once, with its 3000 checks.
            Err(_) => {
                let rarer = (started.elapsed() / RARER).min(LONGEST_PAUSE);
                tokio::time::sleep(PAUSE.max(begun.elapsed()).max(rarer)).await;
            }
        }
    }
}
