//! `spec.providerID` of a Node, with the id of its server.

use std::fmt;

#[cfg(test)]
mod tests;

const SCHEME: &str = "openstack://";

/// `openstack:///<server>` or `openstack://<region>/<server>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProviderId {
    pub(crate) region: Option<String>,
    pub(crate) server: String,
}

impl ProviderId {
    /// Parses a providerID like the Go manager: the scheme is optional, so `/<server>` is valid, too.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "spec.providerID `{text}` is not of the form openstack:///SERVER-ID or openstack://REGION/SERVER-ID"
            )
        };
        let rest = match text.strip_prefix(SCHEME) {
            Some(rest) => rest,
            None if text.contains("://") => return Err(wrong()),
            None => text,
        };
        let (region, server) = rest.split_once('/').ok_or_else(wrong)?;
        if server.is_empty() || server.contains('/') {
            return Err(wrong());
        }
        Ok(Self {
            region: Some(region.to_owned()).filter(|region| !region.is_empty()),
            server: server.to_owned(),
        })
    }
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let region = self.region.as_deref().unwrap_or_default();
        write!(f, "{SCHEME}{region}/{}", self.server)
    }
}
