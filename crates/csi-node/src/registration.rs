//! The socket by which the kubelet learns of a driver, which node-driver-registrar serves elsewhere.
//!
//! The kubelet finds the socket in its directory of plugins, asks for the driver's name and endpoint, and answers whether
//! it has registered it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use csi_spec::endpoint::{self, Endpoint};
use grpc::{Answer, Limits, Method, Service};
use prost::Message;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::context::DRIVER;

/// Versions of CSI that the kubelet is told: it takes any 1.x.
const VERSIONS: [&str; 1] = ["1.0.0"];

/// What the kubelet has answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Registered {
    /// Nothing yet.
    #[default]
    Pending,
    /// It uses the driver.
    Yes,
    /// In its words.
    No(String),
}

/// Serves the socket in the kubelet's directory of plugins until `stop`, and removes it then.
///
/// # Errors
/// The socket cannot be made.
pub async fn serve(
    registration: Registration,
    directory: &Path,
    stop: CancellationToken,
) -> Result<(), endpoint::Error> {
    let path = directory.join(format!("{DRIVER}-reg.sock"));
    let listening = Endpoint::Unix(path.clone()).listen().await?;
    listening
        .serve(Arc::new(registration), Limits::default(), stop)
        .await;
    // The kubelet forgets a driver whose socket is gone.
    drop(std::fs::remove_file(path));
    Ok(())
}

/// The service of the socket.
pub struct Registration {
    endpoint: PathBuf,
    outcome: watch::Sender<Registered>,
}

impl Registration {
    /// Tells the kubelet of a driver whose socket it sees at this path.
    pub fn new(endpoint: PathBuf) -> Self {
        Self {
            endpoint,
            outcome: watch::Sender::default(),
        }
    }

    /// What the kubelet answers.
    pub fn outcome(&self) -> watch::Receiver<Registered> {
        self.outcome.subscribe()
    }

    fn info(&self) -> PluginInfo {
        PluginInfo {
            kind: "CSIPlugin".to_owned(),
            name: DRIVER.to_owned(),
            endpoint: self.endpoint.display().to_string(),
            supported_versions: VERSIONS.map(str::to_owned).into(),
        }
    }

    fn notify(&self, status: RegistrationStatus) -> RegistrationStatusResponse {
        let registered = match status.plugin_registered {
            true => Registered::Yes,
            false => Registered::No(status.error),
        };
        match &registered {
            Registered::No(error) => {
                tracing::error!("the kubelet has not registered {DRIVER}: {error}")
            }
            _ => tracing::info!("the kubelet has registered {DRIVER}"),
        }
        self.outcome.send_replace(registered);
        RegistrationStatusResponse {}
    }
}

impl Service for Registration {
    fn call(&self, path: &str, _: grpc::Context, body: Bytes) -> Option<Answer<'_>> {
        match path {
            InfoRequest::PATH => Some(grpc::answer(body, |_: InfoRequest| {
                Box::pin(futures::future::ready(Ok(self.info())))
            })),
            RegistrationStatus::PATH => Some(grpc::answer(body, |status: RegistrationStatus| {
                Box::pin(futures::future::ready(Ok(self.notify(status))))
            })),
            _ => None,
        }
    }
}

/// Messages of `pluginregistration.v1`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct InfoRequest {}

/// What a plugin is.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct PluginInfo {
    /// `CSIPlugin`.
    #[prost(string, tag = "1")]
    pub kind: String,
    /// The driver's name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// The path of its socket.
    #[prost(string, tag = "3")]
    pub endpoint: String,
    /// Of CSI.
    #[prost(string, repeated, tag = "4")]
    pub supported_versions: Vec<String>,
}

/// What became of the registration.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct RegistrationStatus {
    /// Whether it was registered.
    #[prost(bool, tag = "1")]
    pub plugin_registered: bool,
    /// Why not.
    #[prost(string, tag = "2")]
    pub error: String,
}

/// Nothing.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct RegistrationStatusResponse {}

impl Method for InfoRequest {
    const PATH: &'static str = "/pluginregistration.Registration/GetInfo";
    type Response = PluginInfo;
}

impl Method for RegistrationStatus {
    const PATH: &'static str = "/pluginregistration.Registration/NotifyRegistrationStatus";
    type Response = RegistrationStatusResponse;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::net::UnixStream;

    use super::*;

    #[tokio::test]
    async fn a_kubelet_learns_of_the_driver_and_answers() {
        let directory = tempfile::tempdir().unwrap();
        let registration = Registration::new("/var/lib/kubelet/plugins/x/csi.sock".into());
        let mut outcome = registration.outcome();
        let stop = CancellationToken::new();
        let (path, stopped) = (directory.path().to_owned(), stop.clone());
        let served = tokio::spawn(async move { serve(registration, &path, stopped).await });
        let socket = directory.path().join("cinder.csi.openstack.org-reg.sock");
        while !socket.exists() {
            tokio::task::yield_now().await;
        }
        let stream = UnixStream::connect(&socket).await.unwrap();
        let limit = Duration::from_secs(60);
        let client = grpc::Client::connect(stream, "http://localhost", limit, 1 << 20)
            .await
            .unwrap();
        let info = client.call(&InfoRequest {}).await.unwrap();
        assert_eq!(info.kind, "CSIPlugin");
        assert_eq!(info.name, "cinder.csi.openstack.org");
        assert_eq!(info.endpoint, "/var/lib/kubelet/plugins/x/csi.sock");
        assert_eq!(*outcome.borrow(), Registered::Pending);
        for (plugin_registered, error, registered) in [
            (false, "socket", Registered::No("socket".to_owned())),
            (true, "", Registered::Yes),
        ] {
            let status = RegistrationStatus {
                plugin_registered,
                error: error.to_owned(),
            };
            client.call(&status).await.unwrap();
            outcome.changed().await.unwrap();
            assert_eq!(*outcome.borrow(), registered);
        }
        drop(client);
        stop.cancel();
        served.await.unwrap().unwrap();
        assert!(!socket.exists());
    }
}
