//! Serialisation of a validated cloud, for the Secret of a cluster.

use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use super::{
    ApplicationCredentialRef, CloudConfig, Credential, DomainRef, Flow, OpenId, Scope, UserRef,
};

/// Returns a clouds.yaml with one entry. Written without a serialiser: every value is a string and must be read back as
/// one (a JSON string is a YAML string).
pub(super) fn clouds_yaml(config: &CloudConfig) -> SecretString {
    let mut auth: Vec<(&str, &str)> = vec![("auth_url", &config.auth_url)];
    let auth_type = match &config.credential {
        Credential::Password {
            user,
            password,
            scope,
        } => {
            add_user(&mut auth, user);
            auth.push(("password", password.expose_secret()));
            add_scope(&mut auth, scope);
            "v3password"
        }
        Credential::ApplicationCredential { which, secret } => {
            match which {
                ApplicationCredentialRef::Id(id) => auth.push(("application_credential_id", id)),
                ApplicationCredentialRef::Named(name, user) => {
                    auth.push(("application_credential_name", name));
                    add_user(&mut auth, user);
                }
            }
            auth.push(("application_credential_secret", secret.expose_secret()));
            "v3applicationcredential"
        }
        Credential::Token { token, scope } => {
            auth.push(("token", token.expose_secret()));
            add_scope(&mut auth, scope);
            "v3token"
        }
        Credential::Factors {
            user,
            password,
            passcode,
            scope,
        } => {
            add_user(&mut auth, user);
            for (key, secret) in [("password", password), ("passcode", passcode)] {
                auth.extend(secret.as_ref().map(|it| (key, it.expose_secret())));
            }
            add_scope(&mut auth, scope);
            match password {
                Some(_) => "v3multifactor",
                None => "v3totp",
            }
        }
        Credential::OpenId { login, scope } => {
            add_scope(&mut auth, scope);
            add_openid(&mut auth, login)
        }
        // Nobody logs in: there is nothing to write but the address.
        Credential::Nobody => "v3password",
    };
    let mut text = Zeroizing::new(String::from("clouds:\n"));
    let mut line = |indent: usize, key: &str, value: Option<&str>| {
        text.push_str(&" ".repeat(indent));
        text.push_str(&quoted(key));
        text.push(':');
        if let Some(value) = value {
            text.push(' ');
            text.push_str(&quoted(value));
        }
        text.push('\n');
    };
    line(2, &config.name, None);
    line(4, "auth", None);
    for (key, value) in auth {
        line(6, key, Some(value));
    }
    line(4, "auth_type", Some(auth_type));
    line(4, "interface", Some(config.interface.name()));
    if let Some(region) = &config.region {
        line(4, "region_name", Some(region));
    }
    if let Some(path) = &config.cacert {
        line(4, "cacert", Some(path));
    }
    for (service, url) in &config.endpoint_overrides {
        line(4, &format!("{service}_endpoint_override"), Some(url));
    }
    // A boolean, since other clients treat the string "false" as true.
    if !config.verify {
        text.push_str("    verify: false\n");
    }
    SecretString::from(text.as_str())
}

/// Adds the keys of a login at an identity provider; returns the `auth_type`.
fn add_openid<'a>(auth: &mut Vec<(&'static str, &'a str)>, login: &'a OpenId) -> &'static str {
    auth.push(("identity_provider", &login.provider));
    auth.push(("protocol", &login.protocol));
    auth.push(("openid_scope", &login.scopes));
    auth.push(("access_token_type", login.token_field.name()));
    if !login.client_id.is_empty() {
        auth.push(("client_id", &login.client_id));
    }
    let secret = login.client_secret.as_ref();
    auth.extend(secret.map(|it| ("client_secret", it.expose_secret())));
    for (key, url) in [
        ("discovery_endpoint", &login.discovery_endpoint),
        ("access_token_endpoint", &login.token_endpoint),
        ("device_authorization_endpoint", &login.device_endpoint),
    ] {
        auth.extend(url.as_ref().map(|url| (key, url.as_str())));
    }
    match &login.flow {
        Flow::Password { username, password } => {
            auth.push(("username", username));
            auth.push(("password", password.expose_secret()));
            "v3oidcpassword"
        }
        Flow::ClientCredentials => "v3oidcclientcredentials",
        Flow::Device => "v3oidcdeviceauthz",
        Flow::AccessToken(token) => {
            auth.push(("access_token", token.expose_secret()));
            "v3oidcaccesstoken"
        }
    }
}

fn add_user<'a>(auth: &mut Vec<(&'static str, &'a str)>, user: &'a UserRef) {
    match user {
        UserRef::Id(id) => auth.push(("user_id", id)),
        UserRef::Named(name, domain) => {
            auth.push(("username", name));
            add_domain(auth, domain, "user_domain_id", "user_domain_name");
        }
    }
}

fn add_scope<'a>(auth: &mut Vec<(&'static str, &'a str)>, scope: &'a Scope) {
    match scope {
        Scope::ProjectId(id) => auth.push(("project_id", id)),
        Scope::Project(name, domain) => {
            auth.push(("project_name", name));
            add_domain(auth, domain, "project_domain_id", "project_domain_name");
        }
        Scope::Domain(domain) => add_domain(auth, domain, "domain_id", "domain_name"),
        Scope::System => auth.push(("system_scope", "all")),
        Scope::Trust(id) => auth.push(("trust_id", id)),
        Scope::Default => {}
    }
}

fn add_domain<'a>(
    auth: &mut Vec<(&'static str, &'a str)>,
    domain: &'a DomainRef,
    id_key: &'static str,
    name_key: &'static str,
) {
    match domain {
        DomainRef::Id(id) => auth.push((id_key, id)),
        DomainRef::Name(name) => auth.push((name_key, name)),
    }
}

/// Returns a JSON string, which YAML 1.2 reads as the same string. Control characters that JSON allows but YAML rejects
/// are escaped, too.
fn quoted(text: &str) -> Zeroizing<String> {
    let mut quoted = Zeroizing::new(String::with_capacity(text.len() + 2));
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            ' '..='~' => quoted.push(letter),
            '\u{a0}'..='\u{d7ff}' => quoted.push(letter),
            other if (other as u32) < 0x1_0000 => {
                quoted.push_str(&format!("\\u{:04x}", other as u32));
            }
            other => quoted.push_str(&format!("\\U{:08x}", other as u32)),
        }
    }
    quoted.push('"');
    quoted
}
