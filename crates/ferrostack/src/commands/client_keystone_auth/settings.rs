//! Settings of a login: flags before clouds.yaml before OS_* before the kubeconfig, and questions for the rest.

use anyhow::{Context, bail};
use keystone_auth::exec_info::ExecInfo;
use openstack::CloudConfig;
use openstack::config::{ClientCertificate, Draft, Method};
use secrecy::{ExposeSecret, SecretString};

use super::person::Person;
use crate::cli::ClientKeystoneAuth;
use crate::cloud;
use crate::environment::Environment;

/// Keys of a scope, one of them required.
const SCOPES: [&str; 8] = [
    "project_id",
    "project_name",
    "tenant_id",
    "tenant_name",
    "domain_id",
    "domain_name",
    "system_scope",
    "trust_id",
];

/// Configuration of a login. Missing settings are asked for if a user is at the terminal.
pub(super) fn gather(
    args: &ClientKeystoneAuth,
    info: &ExecInfo,
    environment: &Environment,
    person: Option<&Person>,
) -> anyhow::Result<CloudConfig> {
    let name = args
        .os_cloud
        .as_deref()
        .filter(|name| !name.is_empty())
        .or_else(|| environment.non_empty("OS_CLOUD"));
    let mut draft = match name {
        Some(name) => of_file(name, environment)?,
        None => Draft::default(),
    };
    draft.fill(Draft::of_variables(|variable| {
        environment.non_empty(variable)
    }));
    if let Some(url) = &info.auth_url {
        let mut of_cluster = Draft::default();
        of_cluster.set("auth_url", url);
        draft.fill(of_cluster);
    }
    let name = name.unwrap_or("environment");
    by_flags(&mut draft, name, args)?;
    match person {
        Some(person) => ask(&mut draft, name, person)?,
        None if draft.auth("auth_url").is_none() => bail!(
            "no Keystone is named: give --keystone-url or OS_AUTH_URL, or a cloud of clouds.yaml with --os-cloud or OS_CLOUD"
        ),
        None => {}
    }
    let certificate = client_certificate(&draft, environment)?;
    let is_alone = person.is_none();
    let config = draft.check(name).with_context(|| match is_alone {
        true => "the login is not complete, and nobody can be asked",
        false => "the login is not complete",
    })?;
    let config = CloudConfig {
        client_certificate: certificate,
        ..config
    };
    let Some(bundle) = config.cacert.clone() else {
        return Ok(config);
    };
    let path = environment.working_dir.join(&bundle);
    let pem =
        std::fs::read(path).with_context(|| format!("cannot read the CAs in {bundle} (cacert)"))?;
    Ok(config.with_ca(Some(pem)))
}

/// Replaces settings by the flags of [`ClientKeystoneAuth`].
fn by_flags(draft: &mut Draft, name: &str, args: &ClientKeystoneAuth) -> anyhow::Result<()> {
    let exposed = |secret: &Option<SecretString>| {
        let text = secret.as_ref().map(|it| it.expose_secret().to_owned());
        zeroize::Zeroizing::new(text.unwrap_or_default())
    };
    let text = |text: &Option<String>| zeroize::Zeroizing::new(text.clone().unwrap_or_default());
    let of_credential = [
        (
            "application_credential_id",
            text(&args.application_credential_id),
        ),
        (
            "application_credential_name",
            text(&args.application_credential_name),
        ),
        (
            "application_credential_secret",
            exposed(&args.application_credential_secret),
        ),
    ];
    let password = exposed(&args.password);
    if of_credential.iter().any(|(_, value)| !value.is_empty()) {
        draft.set_field("auth_type", "v3applicationcredential");
    } else if !password.is_empty() {
        let method = draft.method(name)?;
        if matches!(method, Method::ApplicationCredential | Method::Token) {
            draft.set_field("auth_type", "v3password");
        }
    }
    for (key, value) in &of_credential {
        draft.set(key, value);
    }
    draft.set("password", &password);
    draft.set("auth_url", &text(&args.keystone_url));
    draft.set("username", &text(&args.user_name));
    draft.set("project_name", &text(&args.project_name));
    for key in ["user_domain_name", "project_domain_name"] {
        draft.set(key, &text(&args.domain_name));
    }
    draft.set_field("cert", &text(&args.cert));
    draft.set_field("key", &text(&args.key));
    draft.set_field("cacert", &text(&args.cacert));
    Ok(())
}

/// Entry of clouds.yaml, merged with secure.yaml.
fn of_file(name: &str, environment: &Environment) -> anyhow::Result<Draft> {
    let (file, secure) = cloud::clouds_file(environment)?;
    let clouds = SecretString::from(
        std::fs::read_to_string(&file)
            .with_context(|| format!("cannot read {}", file.display()))?,
    );
    let secure = match std::fs::read_to_string(&secure) {
        Ok(text) => Some(SecretString::from(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", secure.display()));
        }
    };
    let secure = secure.as_ref().map(ExposeSecret::expose_secret);
    Draft::of_file(clouds.expose_secret(), secure, name).with_context(|| file.display().to_string())
}

fn client_certificate(
    draft: &Draft,
    environment: &Environment,
) -> anyhow::Result<Option<ClientCertificate>> {
    let read = |path: &str, what: &str| {
        let file = environment.working_dir.join(path);
        std::fs::read(file).with_context(|| format!("cannot read the {what} in {path}"))
    };
    match (draft.field("cert"), draft.field("key")) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => {
            let certificate = read(certificate, "client certificate")?;
            let key = zeroize::Zeroizing::new(read(key, "key of the client certificate")?);
            Ok(Some(ClientCertificate::new(&certificate, &key)))
        }
        // As in other clients, one file may hold both.
        (Some(both), None) => {
            let both = zeroize::Zeroizing::new(read(both, "client certificate")?);
            Ok(Some(ClientCertificate::new(&both, b"")))
        }
        (None, Some(_)) => {
            bail!("there is a key of a client certificate (key), and no certificate (cert)")
        }
    }
}

/// Asks for missing settings of the login, and for no others.
fn ask(draft: &mut Draft, name: &str, person: &Person) -> anyhow::Result<()> {
    if !draft.has("auth_url") {
        draft.set("auth_url", &person.text("URL of Keystone")?);
    }
    let method = draft.method(name)?;
    let is_user_open = !draft.has("username") && !draft.has("user_id");
    let by_name = match method {
        Method::Password | Method::Factors | Method::Passcode | Method::OpenIdPassword => true,
        Method::ApplicationCredential => !draft.has("application_credential_id"),
        Method::Token | Method::OpenId => false,
    };
    if by_name && is_user_open {
        draft.set("username", &person.text("User")?);
        let domains = [
            "user_domain_id",
            "user_domain_name",
            "domain_id",
            "domain_name",
        ];
        let of_keystone = method != Method::OpenIdPassword;
        if of_keystone && !domains.iter().any(|key| draft.has(key)) {
            draft.set(
                "user_domain_name",
                &person.text("Domain of the user [default]")?,
            );
        }
        let is_scoped = SCOPES.iter().any(|key| draft.has(key));
        if method != Method::ApplicationCredential && !is_scoped {
            draft.set(
                "project_name",
                &person.text("Project [the user's default]")?,
            );
            if draft.has("project_name")
                && let Some(domain) = draft.auth("user_domain_name").map(str::to_owned)
            {
                draft.set("project_domain_name", &domain);
            }
        }
    }
    let secrets: &[(&str, &str)] = match method {
        Method::Password | Method::OpenIdPassword => &[("password", "Password")],
        Method::Factors => &[("password", "Password"), ("passcode", "One-time password")],
        Method::Passcode => &[("passcode", "One-time password")],
        Method::ApplicationCredential => &[(
            "application_credential_secret",
            "Secret of the application credential",
        )],
        Method::Token | Method::OpenId => &[],
    };
    for (key, question) in secrets {
        if !draft.has(key) {
            draft.set(key, person.secret(question)?.expose_secret());
        }
    }
    Ok(())
}
