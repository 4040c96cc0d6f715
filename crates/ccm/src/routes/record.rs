//! Stored record of the routes of this cluster: a ConfigMap in `kube-system`.

use api::k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::PostParams;
use operator::client::Api;
use tokio::sync::Mutex;

use super::route::Record;
use crate::context::{Context, Error};

/// Namespace and name of the ConfigMap.
const NAMESPACE: &str = "kube-system";
pub(crate) const NAME: &str = "ferrostack-routes";
/// Annotation with the uid of the cluster. A ConfigMap copied from another cluster has another uid.
const CLUSTER: &str = "ferrostack.io/cluster-uid";

/// Record from the last read or write.
#[derive(Debug, Default)]
pub(crate) struct Store(Mutex<Option<ConfigMap>>);

impl Store {
    /// [`Record`] of this cluster.
    ///
    /// # Errors
    /// The ConfigMap cannot be read, or has an invalid line.
    pub(crate) async fn read(&self, ctx: &Context, cluster: &str) -> Result<Record, Error> {
        let mut known = self.0.lock().await;
        if known.is_none() {
            let found = api(&ctx.client).get_opt(NAME).await;
            let found = found.map_err(Error::kubernetes("reading the record of routes"))?;
            *known = Some(found.unwrap_or_default());
        }
        let map = known.clone().unwrap_or_default();
        let ours = map.metadata.annotations.as_ref();
        if ours.and_then(|all| all.get(CLUSTER)).map(String::as_str) != Some(cluster) {
            return Ok(Record::default());
        }
        match Record::parse(map.data.iter().flatten()) {
            Ok(record) => Ok(record),
            Err(line) => {
                // The next pass reads the ConfigMap again, since a user has to correct it.
                *known = None;
                let problem = format!(
                    "data: {line}: correct the line, or remove it to keep the route on the router"
                );
                let recorder = &ctx.recorder;
                recorder
                    .warning(&map, "FailedToCreateRoute", "Read", problem.clone())
                    .await;
                Err(Error::Record(format!(
                    "ConfigMap {NAMESPACE}/{NAME}: {problem}"
                )))
            }
        }
    }

    /// Stores a [`Record`].
    ///
    /// # Errors
    /// The ConfigMap cannot be written, for example after a concurrent change.
    pub(crate) async fn write(
        &self,
        client: &Client,
        cluster: &str,
        record: &Record,
    ) -> Result<(), Error> {
        let mut known = self.0.lock().await;
        let mut map = known.take().unwrap_or_default();
        map.metadata.name = Some(NAME.to_owned());
        let annotations = map.metadata.annotations.get_or_insert_default();
        annotations.insert(CLUSTER.to_owned(), cluster.to_owned());
        map.data = Some(record.texts());
        let (api, params) = (api(client), PostParams::default());
        let stored = match map.metadata.resource_version {
            Some(_) => api.replace(NAME, &params, &map).await,
            None => api.create(&params, &map).await,
        };
        *known = Some(stored.map_err(Error::kubernetes("storing the record of routes"))?);
        Ok(())
    }
}

fn api(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), NAMESPACE)
}
