//! Names of the installed objects, and defaults of flags.

/// Image of the program.
pub const IMAGE: &str = "ferrostack:latest";
/// Namespace of a manager.
pub const NAMESPACE: &str = "ferrostack-system";
/// Service through which the API server reaches the webhooks of a manager of all providers.
pub const SERVICE: &str = "ferrostack-webhook";
/// Both webhook configurations of a manager of all providers.
pub const CONFIGURATION: &str = "ferrostack";
/// Deployment, account and roles of a manager of all providers.
pub const MANAGER: &str = "ferrostack-manager";
/// Secret with the certificate of the webhooks of a manager of all providers.
pub const CERTIFICATE: &str = "ferrostack-webhook-certificate";
