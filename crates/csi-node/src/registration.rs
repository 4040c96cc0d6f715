//! Registration with the kubelet, in place of node-driver-registrar.
//!
//! The kubelet finds the socket in its plugin directory, asks for [`PluginInfo`], and reports the result as
//! [`RegistrationStatus`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use csi_spec::endpoint::{self, Endpoint, Listening};
use grpc::{Answer, Limits, Method, Service};
use prost::Message;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::context::DRIVER;

/// Versions of CSI that the kubelet is told; it accepts any 1.x.
const VERSIONS: [&str; 1] = ["1.0.0"];

/// Answer of the kubelet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Registered {
    /// No answer yet.
    #[default]
    Pending,
    /// The kubelet uses the driver.
    Yes,
    /// The kubelet has refused the driver, with this message.
    No(String),
}

/// Pause after a refusal by the kubelet: the first, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Listens on the registration socket in the plugin directory of the kubelet.
///
/// # Errors
/// The socket cannot be created.
pub async fn listen(directory: &Path) -> Result<Listening, endpoint::Error> {
    let path = directory.join(format!("{DRIVER}-reg.sock"));
    Endpoint::Unix(path).listen().await
}

/// Serves the [`Registration`] of the driver at `socket` until `stop`; then the registration socket is removed, and the
/// kubelet forgets the driver.
///
/// After a refusal, as for a server that it does not know yet, the kubelet asks again only if the socket is new. So the
/// socket is made again after a pause.
pub async fn announce(
    socket: PathBuf,
    directory: PathBuf,
    mut listening: Listening,
    stop: CancellationToken,
) {
    let mut pause = PAUSE.0;
    loop {
        let registration = Arc::new(Registration::new(socket.clone()));
        let mut outcome = registration.outcome();
        let ended = stop.child_token();
        let refused = async {
            let refused = outcome.wait_for(|it| matches!(it, Registered::No(_)));
            if refused.await.is_ok() {
                ended.cancel();
            }
        };
        let serving = listening.serve(registration, Limits::default(), ended.clone());
        tokio::join!(serving, async {
            tokio::select! {
                () = refused => {}
                () = ended.cancelled() => {}
            }
        });
        listening = loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(PAUSE.1),
                () = stop.cancelled() => return,
            }
            match listen(&directory).await {
                Ok(listening) => break listening,
                Err(error) => tracing::error!("the kubelet is not told of {DRIVER}: {error}"),
            }
        };
    }
}

/// Service on the registration socket.
pub struct Registration {
    endpoint: PathBuf,
    outcome: watch::Sender<Registered>,
}

impl Registration {
    /// Registration of the driver whose CSI socket the kubelet sees at this path.
    pub fn new(endpoint: PathBuf) -> Self {
        Self {
            endpoint,
            outcome: watch::Sender::default(),
        }
    }

    /// Channel with the last answer of the kubelet.
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

/// Request for [`PluginInfo`], of `pluginregistration.v1`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct InfoRequest {}

/// Description of the plugin.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct PluginInfo {
    /// Type of the plugin: `CSIPlugin`.
    #[prost(string, tag = "1")]
    pub kind: String,
    /// Name of the driver.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Path of the CSI socket.
    #[prost(string, tag = "3")]
    pub endpoint: String,
    /// Versions of CSI.
    #[prost(string, repeated, tag = "4")]
    pub supported_versions: Vec<String>,
}

/// Result of the registration.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct RegistrationStatus {
    /// True if the kubelet has registered the driver.
    #[prost(bool, tag = "1")]
    pub plugin_registered: bool,
    /// Reason of a refusal.
    #[prost(string, tag = "2")]
    pub error: String,
}

/// Empty response.
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
    use tokio::net::UnixStream;

    use super::*;

    /// Client in the role of the kubelet, connected once the socket exists.
    async fn kubelet(socket: &Path) -> grpc::Client {
        let limit = Duration::from_secs(60);
        loop {
            if let Ok(stream) = UnixStream::connect(socket).await {
                let client = grpc::Client::connect(stream, "http://localhost", limit, 1 << 20);
                return client.await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn status(plugin_registered: bool) -> RegistrationStatus {
        RegistrationStatus {
            plugin_registered,
            error: "no server yet".to_owned(),
        }
    }

    #[tokio::test]
    async fn a_kubelet_learns_of_the_driver_and_sees_a_new_socket_after_it_has_refused_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_owned();
        let socket = path.join("cinder.csi.openstack.org-reg.sock");
        let endpoint = PathBuf::from("/var/lib/kubelet/plugins/x/csi.sock");
        let stop = CancellationToken::new();
        let listening = listen(&path).await.unwrap();
        let announced = tokio::spawn(announce(endpoint.clone(), path, listening, stop.clone()));
        for _ in 0..2 {
            let client = kubelet(&socket).await;
            let info = client.call(&InfoRequest {}).await.unwrap();
            assert_eq!(
                (info.kind.as_str(), info.name.as_str()),
                ("CSIPlugin", DRIVER)
            );
            assert_eq!(info.endpoint, endpoint.display().to_string());
            client.call(&status(false)).await.unwrap();
            // The connection ends with the socket.
            while client.call(&InfoRequest {}).await.is_ok() {
                tokio::task::yield_now().await;
            }
        }
        let client = kubelet(&socket).await;
        client.call(&status(true)).await.unwrap();
        client.call(&InfoRequest {}).await.unwrap();
        stop.cancel();
        announced.await.unwrap();
        assert!(!socket.exists());
    }
}
