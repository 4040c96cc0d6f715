//! The driver as it presents itself: its name, what it serves, and whether it is ready.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::ready;
use grpc::Context;

use crate::plugin_capability::{Service, Type, VolumeExpansion, service, volume_expansion};
use crate::{
    GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse, GetPluginInfoRequest,
    GetPluginInfoResponse, Identity, PluginCapability, ProbeRequest, ProbeResponse, Reply,
};

/// The name of the driver: that of the Go one, so that volumes, classes and nodes change hands.
pub const NAME: &str = "cinder.csi.openstack.org";
/// The version of the specification.
pub const SPECIFICATION: &str = "1.13.0";

/// Which services a process has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// `Controller`.
    pub controller: bool,
    /// `GroupController`.
    pub groups: bool,
    /// Volumes have zones, and nodes say in which they are.
    pub topology: bool,
}

/// True if the cloud has answered once. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// The cloud has answered.
    pub fn ready(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True if it has.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl From<Arc<AtomicBool>> for Readiness {
    /// Readiness that another part of the program sets.
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }
}

/// The service `Identity`.
#[derive(Debug)]
pub struct Plugin {
    served: Served,
    readiness: Readiness,
}

impl Plugin {
    /// The services of a process. One without a controller asks no cloud, and is ready at once.
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
