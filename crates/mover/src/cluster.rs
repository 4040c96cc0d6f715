//! A management cluster that takes part in a move.

use std::sync::Arc;

use api::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::ListParams;
use operator::client::Api;

use crate::access::Side;
use crate::error::Error;
use crate::graph::{Selection, select};
use crate::kinds::{self, Kind};
use crate::pausing;
use crate::transfer::Target;

/// Source or target, with the [`Kind`]s that it serves.
pub(crate) struct ManagementCluster {
    pub(crate) side: Side,
    pub(crate) kinds: Vec<Arc<Kind>>,
}

impl ManagementCluster {
    /// Connects as `title`, `source` or `target`, and reads the kinds.
    pub(crate) async fn read(client: &Client, title: &'static str) -> Result<Self, Error> {
        let side = Side::new(client, title);
        let kinds = served(&side).await?;
        Ok(Self { side, kinds })
    }

    /// The [`Target`] for the copies of the move `id`.
    pub(crate) fn as_target<'a>(&'a self, namespace: &'a str, id: &'a str) -> Target<'a> {
        Target {
            side: &self.side,
            kinds: &self.kinds,
            namespace,
            id,
        }
    }

    /// Objects of a namespace that move, and objects that stay.
    pub(crate) async fn selection(&self, namespace: &str) -> Result<Selection, Error> {
        let objects = pausing::read(&self.side, &self.kinds, namespace).await?;
        Ok(select(objects))
    }
}

/// The namespaced kinds of Cluster API and its providers, Secrets and ConfigMaps.
async fn served(side: &Side) -> Result<Vec<Arc<Kind>>, Error> {
    let definitions: Api<CustomResourceDefinition> = Api::all(side.client.clone());
    let action = || "listing CustomResourceDefinitions".to_owned();
    let params = ListParams::default();
    let list = side.attempt(action, || definitions.list(&params)).await?;
    let mut kinds = vec![
        Kind::core("Secret", "secrets"),
        Kind::core("ConfigMap", "configmaps"),
    ];
    let definitions = list.items.iter();
    kinds.extend(definitions.filter_map(kinds::of_definition).map(Arc::new));
    Ok(kinds)
}
