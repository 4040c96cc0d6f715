//! Servers of all projects with their user data, for administrators.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Deserializer};

use super::server::{Server, UserData};

/// A server of any project, with the attributes that Nova returns to administrators only (microversion 2.3).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct HostedServer {
    /// The attributes that every user sees.
    #[serde(flatten)]
    pub server: Server,
    /// The host name that Nova derived from the server's name.
    #[serde(rename = "OS-EXT-SRV-ATTR:hostname")]
    pub hostname: String,
    /// The user data of the guest. `None` if there is none, or if the credential may not read it.
    #[serde(rename = "OS-EXT-SRV-ATTR:user_data", deserialize_with = "user_data")]
    pub user_data: Option<UserData>,
}

/// Nova returns the base64 as it was sent, possibly with line breaks.
fn user_data<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<UserData>, D::Error> {
    let text: String = Option::deserialize(deserializer)?.unwrap_or_default();
    let text: String = text.split_ascii_whitespace().collect();
    let data = STANDARD
        .decode(text)
        .map_err(|_| serde::de::Error::custom("the user data is not base64"))?;
    Ok((!data.is_empty()).then(|| UserData::new(Bytes::from(data))))
}

#[cfg(test)]
mod tests;
