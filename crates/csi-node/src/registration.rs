//! The socket by which the kubelet learns of a driver, which node-driver-registrar serves elsewhere.
//!
//! The kubelet finds the socket in its directory of plugins, asks for the driver's name and endpoint, and answers whether
//! it has registered it.

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

/// The pause after the kubelet has refused a driver, and the longest one.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Listens in the kubelet's directory of plugins.
///
/// # Errors
/// The socket cannot be made.
pub async fn listen(directory: &Path) -> Result<Listening, endpoint::Error> {
    let path = directory.join(format!("{DRIVER}-reg.sock"));
    Endpoint::Unix(path).listen().await
}

/// Tells the kubelet of a driver whose socket it sees at `socket`, until `stop`; then its own socket is gone, and the kubelet
/// forgets the driver.
///
/// A kubelet that has refused a driver, because it did not know its server yet, asks again only if the socket is a new one:
/// so it is made anew, after a pause.
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
    /// True if it was registered.
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
    use tokio::net::UnixStream;

    use super::*;

    /// What the kubelet sees at the socket, once it is there.
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
