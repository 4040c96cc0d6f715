//! Barbican: existence of the secrets and containers that other services refer to. Their content is never read.

use crate::call::Call;
use crate::error::Result;
use crate::service::Service;
use crate::session::Session;

/// URL of a secret or of a container, split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretReference {
    is_container: bool,
    id: String,
}

impl SecretReference {
    /// Splits a URL such as `https://cloud/key-manager/v1/containers/ID`; `None` for any other URL. The host is not
    /// compared: clients in different networks know the service by different names.
    pub fn parse(url: &str) -> Option<Self> {
        let (_, path) = url.split_once("://")?;
        let mut segments = path.rsplit('/');
        let id = segments.next().filter(|id| !id.is_empty())?;
        let is_container = match segments.next()? {
            "containers" => true,
            "secrets" => false,
            _ => return None,
        };
        Some(Self {
            is_container,
            id: id.to_owned(),
        })
    }
}

/// Calls to Barbican.
#[derive(Clone, Debug)]
pub struct KeyManager {
    session: Session,
}

impl Session {
    /// Returns the calls to Barbican.
    pub fn key_manager(&self) -> KeyManager {
        KeyManager::new(self.clone())
    }
}

impl KeyManager {
    fn new(session: Session) -> Self {
        Self { session }
    }

    /// True if the secret or container exists, and the user may read the metadata.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request, but for the absence of the object.
    pub async fn has(&self, reference: &SecretReference) -> Result<bool> {
        let route = match reference.is_container {
            true => "/containers/{id}",
            false => "/secrets/{id}",
        };
        let call = Call::get(Service::KeyManager, route, &[&reference.id]);
        match self.session.done(call).await {
            Ok(()) => Ok(true),
            Err(error) if error.is_absent() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_the_url_of_a_secret_or_of_a_container() {
        let parsed =
            |url: &str| SecretReference::parse(url).map(|parsed| (parsed.is_container, parsed.id));
        let (container, secret) = (
            "https://a:9311/v1/containers/x",
            "http://a/key-manager/v1/secrets/y",
        );
        assert_eq!(parsed(container), Some((true, "x".to_owned())));
        assert_eq!(parsed(secret), Some((false, "y".to_owned())));
        for wrong in [
            "",
            "x",
            "secrets/x",
            "https://a/v1/secrets/",
            "https://a/v1/orders/x",
            "https://x",
        ] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
