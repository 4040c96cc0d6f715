//! Information of kubectl for an exec plugin, in `KUBERNETES_EXEC_INFO`.

use serde::Deserialize;
use serde_json::Value;

/// API group of ExecCredential.
const GROUP: &str = "client.authentication.k8s.io/";

/// Version of ExecCredential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecVersion {
    /// `client.authentication.k8s.io/v1`.
    V1,
    /// `client.authentication.k8s.io/v1beta1`.
    V1beta1,
}

impl ExecVersion {
    /// The `apiVersion`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1 => "client.authentication.k8s.io/v1",
            Self::V1beta1 => "client.authentication.k8s.io/v1beta1",
        }
    }
}

/// ExecCredential from kubectl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecInfo {
    /// [`ExecVersion`] of the answer.
    pub version: ExecVersion,
    /// True if the plugin may ask the user; `None` if kubectl does not say.
    pub interactive: Option<bool>,
    /// URL of the API server, with `provideClusterInfo`.
    pub server: Option<String>,
    /// URL of Keystone in the extension of the cluster, with `provideClusterInfo`.
    pub auth_url: Option<String>,
}

impl Default for ExecInfo {
    /// Default without kubectl: the version of the Go plugin.
    fn default() -> Self {
        Self {
            version: ExecVersion::V1beta1,
            interactive: None,
            server: None,
            auth_url: None,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(default)]
    api_version: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    spec: Option<Spec>,
}

#[derive(Deserialize)]
struct Spec {
    #[serde(default)]
    interactive: Option<bool>,
    #[serde(default)]
    cluster: Option<Cluster>,
}

#[derive(Deserialize)]
struct Cluster {
    #[serde(default)]
    server: Option<String>,
    /// Extension `client.authentication.k8s.io/exec` of the cluster, of any form.
    #[serde(default)]
    config: Value,
}

impl ExecInfo {
    /// Parses the variable; without a variable, the result is the default.
    ///
    /// # Errors
    /// Mistake in the variable, without the content.
    pub fn parse(text: Option<&str>) -> Result<Self, String> {
        let Some(text) = text else {
            return Ok(Self::default());
        };
        let document: Document = serde_json::from_str(text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            let what = match error.classify() {
                serde_json::error::Category::Data => "a field has the wrong type",
                serde_json::error::Category::Eof => "the JSON ends early",
                _ => "it is not JSON",
            };
            format!("{what}, at line {line}, column {column}")
        })?;
        if document.kind.as_deref() != Some("ExecCredential") {
            return Err("its kind is not ExecCredential".to_owned());
        }
        let version = document.api_version.unwrap_or_default();
        let version = match version.strip_prefix(GROUP) {
            Some("v1") => ExecVersion::V1,
            Some("v1beta1") => ExecVersion::V1beta1,
            _ => {
                return Err(format!(
                    "its apiVersion is neither {} nor {}: correct that of the exec plugin in the kubeconfig",
                    ExecVersion::V1.name(),
                    ExecVersion::V1beta1.name()
                ));
            }
        };
        let spec = document.spec.unwrap_or(Spec {
            interactive: None,
            cluster: None,
        });
        let mut info = Self {
            version,
            interactive: spec.interactive,
            ..Self::default()
        };
        if let Some(cluster) = spec.cluster {
            info.server = cluster.server.filter(|server| !server.is_empty());
            info.auth_url = auth_url(&cluster.config)?;
        }
        Ok(info)
    }
}

/// `auth_url`, or the name of the Go plugin's flag, in the extension of a cluster. Extensions of other plugins have
/// neither.
fn auth_url(config: &Value) -> Result<Option<String>, String> {
    for key in ["auth_url", "keystone-url"] {
        match config.get(key) {
            None | Some(Value::Null) => {}
            Some(Value::String(url)) if url.is_empty() => {}
            Some(Value::String(url)) => return Ok(Some(url.clone())),
            Some(_) => return Err(format!("spec.cluster.config.{key} is no text")),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
