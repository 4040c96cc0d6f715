//! Changes of networks.

use std::sync::Arc;

use super::Inventory;
use crate::error::Result;
use crate::network::{Network, NetworkUpdate};

impl Inventory {
    /// Changes a network.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn update_network(&self, id: &str, change: &NetworkUpdate) -> Result<Arc<Network>> {
        Ok(self.fold(self.session().network().update_network(id, change).await?))
    }
}
