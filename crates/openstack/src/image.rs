//! Glance: images by name, tags and properties.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::Call;
use crate::error::Result;
use crate::service::Service;
use crate::session::Session;

/// Image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Image {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// `queued`, `saving`, `active`, `deactivated`, `deleted`, ...
    pub status: String,
    /// `public`, `private`, `shared` or `community`.
    pub visibility: String,
    /// Smallest disk, in GiB.
    pub min_disk: i64,
    /// Least memory, in MiB.
    pub min_ram: i64,
    /// Size of the file, in bytes.
    pub size: i64,
    /// Tags.
    pub tags: Vec<String>,
    /// Id of the owning project.
    pub owner: String,
    /// Time of creation, RFC 3339.
    pub created_at: String,
    /// `qcow2`, `raw`, ...
    pub disk_format: String,
    /// All other properties, such as `os_type`.
    #[serde(flatten)]
    pub properties: BTreeMap<String, Value>,
}

impl Image {
    /// Returns a property of type text.
    pub fn property(&self, name: &str) -> Option<&str> {
        self.properties.get(name)?.as_str()
    }
}

/// Filter of a list of images.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageQuery {
    /// Exact name.
    pub name: Option<String>,
    /// Required tags.
    pub tags: Vec<String>,
    /// Status, for example `active`.
    pub status: Option<String>,
}

/// Calls to Glance.
#[derive(Clone, Debug)]
pub struct Images {
    session: Session,
}

impl Session {
    /// Returns the calls to Glance.
    pub fn image(&self) -> Images {
        Images::new(self.clone())
    }
}

impl Images {
    fn new(session: Session) -> Self {
        Self { session }
    }

    /// Lists the images that the project can use.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn list(&self, query: &ImageQuery) -> Result<Vec<Image>> {
        let mut call = Call::list(Service::Image, "/images", &[])
            .query_if("name", query.name.as_deref())
            .query_if("status", query.status.as_deref());
        for tag in &query.tags {
            call = call.query("tag", tag);
        }
        self.session.list(call, "images").await
    }

    /// Returns one image.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn get(&self, id: &str) -> Result<Image> {
        self.session
            .one(Call::get(Service::Image, "/images/{id}", &[id]), "")
            .await
    }
}
