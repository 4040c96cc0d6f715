//! Certificate of the webhooks: issued by the first manager and kept in a Secret for all managers, or in files of
//! another program.

pub(super) mod rotation;
mod store;

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use installer::subset::Subset;
use kube::Client;
use parking_lot::RwLock;
use rustls::ServerConfig;
use secrecy::{ExposeSecret, SecretString};

use self::rotation::Step;
use self::store::Store;
use crate::pki;

/// Interval between checks for a changed certificate.
const INTERVAL: Duration = Duration::from_secs(30);
/// The longest file of a certificate or a key, in bytes.
const LONGEST: u64 = 1 << 20;

/// Certificate with its key, both PEM.
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: SecretString,
}

impl From<pki::Identity> for Pair {
    fn from(identity: pki::Identity) -> Self {
        Self {
            certificate: identity.certificate,
            key: identity.key,
        }
    }
}

/// Content of the Secret.
pub(super) struct Stored {
    /// Certificates of all authorities for API servers to accept, PEM.
    pub(super) authorities: String,
    pub(super) served: Pair,
    /// Next [`Pair`], not served before API servers accept it.
    pub(super) next: Option<Pair>,
}

/// Source of the certificate.
pub(super) enum Source {
    Secret(Box<Store>),
    /// Directory with `tls.crt` and `tls.key`. The writer of these files also tells API servers the authority.
    Files(PathBuf),
}

impl Source {
    /// Files of a directory, or else the Secret of the managers, made if missing.
    pub(super) async fn open(
        client: &Client,
        subset: &Subset,
        namespace: &str,
        url: Option<&str>,
        directory: Option<&Path>,
    ) -> anyhow::Result<Self> {
        if let Some(directory) = directory {
            return Ok(Self::Files(directory.to_owned()));
        }
        let store = Store::new(client, subset, namespace, url);
        store.ensure().await?;
        Ok(Self::Secret(Box::new(store)))
    }

    /// [`Pair`] to serve now.
    async fn served(&self) -> anyhow::Result<Pair> {
        match self {
            Self::Secret(store) => Ok(store.read().await?.served),
            Self::Files(directory) => Ok(Pair {
                certificate: read(&directory.join("tls.crt"))?,
                key: read(&directory.join("tls.key"))?.into(),
            }),
        }
    }

    /// Authorities for API servers to accept; none if another program registers them.
    pub(super) async fn authorities(&self) -> anyhow::Result<Option<String>> {
        match self {
            Self::Secret(store) => Ok(Some(store.read().await?.authorities)),
            Self::Files(_) => Ok(None),
        }
    }

    /// Takes a [`Step`] towards a new certificate when due. `is_registered`: API servers have had all authorities in
    /// the Secret for a while.
    pub(super) async fn advance(&self, is_registered: bool) -> anyhow::Result<Option<Step>> {
        match self {
            Self::Secret(store) => store.advance(is_registered).await,
            Self::Files(_) => Ok(None),
        }
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    use std::io::Read as _;
    let title = || format!("the certificate of webhooks: {}", path.display());
    let mut text = String::new();
    let file = std::fs::File::open(path).with_context(title)?;
    let read = file.take(LONGEST + 1).read_to_string(&mut text);
    anyhow::ensure!(
        read.with_context(title)? as u64 <= LONGEST,
        "{} has more than {LONGEST} bytes",
        path.display()
    );
    Ok(text)
}

/// Certificate for new connections.
#[derive(Clone)]
pub(super) struct Served {
    config: Arc<RwLock<Arc<ServerConfig>>>,
    /// PEM of the [`ServerConfig`].
    text: Arc<RwLock<String>>,
}

impl Served {
    /// Current certificate.
    pub(super) async fn open(source: &Source) -> anyhow::Result<Self> {
        let pair = source.served().await?;
        Ok(Self {
            config: Arc::new(RwLock::new(config(&pair)?)),
            text: Arc::new(RwLock::new(pair.certificate)),
        })
    }

    /// Current [`ServerConfig`].
    pub(super) fn current(&self) -> impl Fn() -> Option<Arc<ServerConfig>> + Send + Sync + 'static {
        let config = Arc::clone(&self.config);
        move || Some(Arc::clone(&config.read()))
    }

    /// Takes over another certificate. An unusable one leaves the one before.
    pub(super) async fn refresh(&self, source: &Source) -> anyhow::Result<()> {
        let pair = source.served().await?;
        if *self.text.read() == pair.certificate {
            return Ok(());
        }
        *self.config.write() = config(&pair)?;
        *self.text.write() = pair.certificate;
        tracing::info!("the webhooks have another certificate");
        Ok(())
    }

    /// Follows the source.
    pub(super) async fn follow(&self, source: &Source) -> Infallible {
        let mut last_problem = String::new();
        loop {
            tokio::time::sleep(INTERVAL).await;
            match self.refresh(source).await {
                Ok(()) => last_problem.clear(),
                Err(problem) => {
                    let problem = format!("{problem:#}");
                    if problem != last_problem {
                        tracing::error!("the webhooks keep their certificate: {problem}");
                    }
                    last_problem = problem;
                }
            }
        }
    }
}

fn config(pair: &Pair) -> anyhow::Result<Arc<ServerConfig>> {
    let key = pair.key.expose_secret();
    apiserver::server_config(&pair.certificate, key, None).context("the certificate of webhooks")
}

#[cfg(test)]
mod tests;
