//! Environment variables of the OpenStack clients, and the settings behind them.

/// Variable, and the key of clouds.yaml with the same meaning: below `auth`, or beside it.
pub(super) struct Variable {
    pub(super) name: &'static str,
    pub(super) key: &'static str,
    pub(super) in_auth: bool,
}

const fn auth(name: &'static str, key: &'static str) -> Variable {
    Variable {
        name,
        key,
        in_auth: true,
    }
}

const fn field(name: &'static str, key: &'static str) -> Variable {
    Variable {
        name,
        key,
        in_auth: false,
    }
}

/// All supported variables. Of two variables with one key, the first one with a value counts.
pub(super) const VARIABLES: &[Variable] = &[
    auth("OS_AUTH_URL", "auth_url"),
    auth("OS_USERNAME", "username"),
    auth("OS_USER_ID", "user_id"),
    auth("OS_USERID", "user_id"),
    auth("OS_PASSWORD", "password"),
    auth("OS_PASSCODE", "passcode"),
    auth("OS_TOKEN", "token"),
    auth("OS_AUTH_TOKEN", "token"),
    auth("OS_PROJECT_ID", "project_id"),
    auth("OS_TENANT_ID", "project_id"),
    auth("OS_PROJECT_NAME", "project_name"),
    auth("OS_TENANT_NAME", "project_name"),
    auth("OS_USER_DOMAIN_ID", "user_domain_id"),
    auth("OS_USER_DOMAIN_NAME", "user_domain_name"),
    auth("OS_PROJECT_DOMAIN_ID", "project_domain_id"),
    auth("OS_PROJECT_DOMAIN_NAME", "project_domain_name"),
    auth("OS_DOMAIN_ID", "domain_id"),
    auth("OS_DOMAIN_NAME", "domain_name"),
    auth("OS_DEFAULT_DOMAIN_ID", "default_domain_id"),
    auth("OS_DEFAULT_DOMAIN_NAME", "default_domain_name"),
    auth("OS_DEFAULT_DOMAIN", "default_domain"),
    auth("OS_SYSTEM_SCOPE", "system_scope"),
    auth("OS_TRUST_ID", "trust_id"),
    auth("OS_APPLICATION_CREDENTIAL_ID", "application_credential_id"),
    auth(
        "OS_APPLICATION_CREDENTIAL_NAME",
        "application_credential_name",
    ),
    auth(
        "OS_APPLICATION_CREDENTIAL_SECRET",
        "application_credential_secret",
    ),
    auth("OS_IDENTITY_PROVIDER", "identity_provider"),
    auth("OS_PROTOCOL", "protocol"),
    auth("OS_CLIENT_ID", "client_id"),
    auth("OS_CLIENT_SECRET", "client_secret"),
    auth("OS_DISCOVERY_ENDPOINT", "discovery_endpoint"),
    auth("OS_ACCESS_TOKEN_ENDPOINT", "access_token_endpoint"),
    auth(
        "OS_DEVICE_AUTHORIZATION_ENDPOINT",
        "device_authorization_endpoint",
    ),
    auth("OS_OPENID_SCOPE", "openid_scope"),
    auth("OS_ACCESS_TOKEN", "access_token"),
    auth("OS_ACCESS_TOKEN_TYPE", "access_token_type"),
    field("OS_AUTH_TYPE", "auth_type"),
    field("OS_AUTH_METHODS", "auth_methods"),
    field("OS_REGION_NAME", "region_name"),
    field("OS_INTERFACE", "interface"),
    field("OS_ENDPOINT_TYPE", "interface"),
    field("OS_CACERT", "cacert"),
    field("OS_CERT", "cert"),
    field("OS_KEY", "key"),
    field("OS_INSECURE", "insecure"),
];
