//! Identity of the driver: name, services, readiness.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::ready;
use grpc::Context;

use crate::plugin_capability::{Service, Type, VolumeExpansion, service, volume_expansion};
use crate::{
    GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse, GetPluginInfoRequest,
    GetPluginInfoResponse, Identity, PluginCapability, ProbeRequest, ProbeResponse, Reply,
};

/// Name of the driver. The same as of the Go driver, so that volumes, classes and nodes can change hands.
pub const NAME: &str = "cinder.csi.openstack.org";
/// Version of the specification.
pub const SPECIFICATION: &str = "1.13.0";

/// Services of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// True with the service [`Controller`](crate::Controller).
    pub controller: bool,
    /// True with the service [`GroupController`](crate::GroupController).
    pub groups: bool,
    /// True if volumes have zones, and nodes report their zone as topology.
    pub topology: bool,
}

/// Flag: true after the first answer of the cloud. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// Sets the flag.
    pub fn ready(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True after [`Readiness::ready`].
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl From<Arc<AtomicBool>> for Readiness {
    /// Shares a flag that another part of the program sets.
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }
}

/// Implementation of the service [`Identity`].
#[derive(Debug)]
pub struct Plugin {
    served: Served,
    readiness: Readiness,
}

impl Plugin {
    /// Identity of a process with these services. A process without a controller needs no cloud, and is ready at once.
    #[must_use]
    pub fn new(served: Served, readiness: Readiness) -> Self {
        Self { served, readiness }
    }

    fn capabilities(&self) -> Vec<PluginCapability> {
        let service = |has: bool, kind: service::Type| {
            has.then_some(Type::Service(Service {
                r#type: kind.into(),
            }))
        };
        let expansion = |kind: volume_expansion::Type| {
            Some(Type::VolumeExpansion(VolumeExpansion {
                r#type: kind.into(),
            }))
        };
        let Served {
            controller,
            groups,
            topology,
        } = self.served;
        let all = [
            service(controller, service::Type::ControllerService),
            service(topology, service::Type::VolumeAccessibilityConstraints),
            service(groups, service::Type::GroupControllerService),
            expansion(volume_expansion::Type::Online),
            expansion(volume_expansion::Type::Offline),
        ];
        let all = all.into_iter().flatten();
        all.map(|kind| PluginCapability { r#type: Some(kind) })
            .collect()
    }
}

impl Identity for Plugin {
    fn get_plugin_info(
        &self,
        _: Context,
        _: GetPluginInfoRequest,
    ) -> Reply<'_, GetPluginInfoResponse> {
        let manifest = [("csi", SPECIFICATION), ("url", "https://ferrostack.dev")];
        Box::pin(ready(Ok(GetPluginInfoResponse {
            name: NAME.to_owned(),
            vendor_version: concat!("ferrostack-", env!("CARGO_PKG_VERSION")).to_owned(),
            manifest: manifest
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
        })))
    }

    fn get_plugin_capabilities(
        &self,
        _: Context,
        _: GetPluginCapabilitiesRequest,
    ) -> Reply<'_, GetPluginCapabilitiesResponse> {
        let capabilities = self.capabilities();
        Box::pin(ready(Ok(GetPluginCapabilitiesResponse { capabilities })))
    }

    fn probe(&self, _: Context, _: ProbeRequest) -> Reply<'_, ProbeResponse> {
        let is_ready = !self.served.controller || self.readiness.is_ready();
        Box::pin(ready(Ok(ProbeResponse {
            ready: Some(is_ready),
        })))
    }
}

#[cfg(test)]
mod tests;
