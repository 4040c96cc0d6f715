//! Choice of the cloud for a request.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use grpc::{Code, Status};
use openstack::{Cloud, Kind, View};

use super::{Driver, NamedCloud};
use crate::refusal;

/// Key of a Secret with the name of a cloud.
const CLOUD: &str = "cloud";

impl Driver {
    /// [`Cloud`] named by the secrets of a request; `[Global]` without a name.
    pub(super) async fn cloud(&self, secrets: &BTreeMap<String, String>) -> Result<Cloud, Status> {
        let name = secrets.get(CLOUD).map_or("", String::as_str);
        let clouds = self.clouds();
        let found = clouds.iter().find(|it| it.name == name);
        let found = found.ok_or_else(|| {
            let names: Vec<&str> = clouds.iter().map(|it| it.name.as_str()).collect();
            let message = format!(
                "the Secret names the cloud `{}`, and cloud.conf has: `{}`",
                name.escape_debug(),
                names.join("`, `")
            );
            Status::new(Code::InvalidArgument, message)
        })?;
        self.connected(found).await
    }

    async fn connected(&self, cloud: &NamedCloud) -> Result<Cloud, Status> {
        let connected = self.pool.get(&cloud.config).await;
        connected.map_err(|error| refusal::of_read(&error))
    }

    /// All clouds, with their names.
    pub(super) async fn all(&self) -> Result<Vec<(String, Cloud)>, Status> {
        let mut all = Vec::new();
        for cloud in self.clouds().iter() {
            all.push((cloud.name.clone(), self.connected(cloud).await?));
        }
        Ok(all)
    }

    /// [`View`]s of all clouds, with the names of the clouds.
    pub(super) async fn views(
        &self,
        kinds: &[Kind],
        age: Duration,
    ) -> Result<Vec<(String, Arc<View>)>, Status> {
        let mut views = Vec::new();
        for (name, cloud) in self.all().await? {
            let view = cloud.inventory.view(kinds, age).await;
            views.push((name, view.map_err(|error| refusal::of_read(&error))?));
        }
        Ok(views)
    }
}
