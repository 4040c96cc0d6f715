//! `client-keystone-auth`: every way of logging in to a simulated Keystone, tokens that are kept, and bad input. And the
//! kubeconfig that calls it.

mod kept;
mod terminal;
mod wrong;

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Output;
use std::time::SystemTime;

use reqwest::Method;
use serde_json::{Value, json};
use simulator::cloud::{Cloud, Options};
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::process::{Checked, PROGRAM, ferrostack, texts};

/// The secret of a one-time password, in base 32 and as it is.
const TOTP: (&str, &[u8]) = ("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", b"12345678901234567890");
/// A way of logging in: its name, arguments and variables, and the user and a method of the token.
type Way<'a> = (
    &'a str,
    &'a [&'a str],
    BTreeMap<&'static str, String>,
    &'a str,
    &'a str,
);

/// A simulated Keystone with its administrator.
struct Keystone {
    cloud: Cloud,
    root: String,
    client: reqwest::Client,
    token: String,
    home: tempfile::TempDir,
}

impl Keystone {
    async fn start() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let cloud = Cloud::open(Options::default()).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let root = format!("http://{}", listener.local_addr().unwrap());
        let router = cloud.router(&root);
        tokio::spawn(async move { axum::serve(listener, router).await });
        let client = reqwest::Client::new();
        let login = json!({"auth": {"identity": {"methods": ["password"], "password": {"user": {
            "name": "admin", "domain": {"id": "default"}, "password": "secret"}}},
            "scope": {"project": {"name": "admin", "domain": {"id": "default"}}}}});
        let answer = client
            .post(format!("{root}/identity/v3/auth/tokens"))
            .json(&login);
        let answer = answer.send().await.unwrap();
        let token = answer.headers()["x-subject-token"]
            .to_str()
            .unwrap()
            .to_owned();
        let home = tempfile::tempdir().unwrap();
        Self {
            cloud,
            root,
            client,
            token,
            home,
        }
    }

    fn url(&self) -> String {
        format!("{}/identity/v3", self.root)
    }

    /// A request of the administrator, which succeeds; the path is one of Keystone's, or begins with `/_simulator`.
    async fn ask(&self, method: Method, path: &str, body: Value) -> Value {
        let url = match path.starts_with("/_simulator") {
            true => format!("{}{path}", self.root),
            false => format!("{}{path}", self.url()),
        };
        let request = self
            .client
            .request(method, url)
            .header("x-auth-token", &self.token);
        let answer = request.json(&body).send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    async fn id(&self, kind: &str, name: &str) -> String {
        let found = self
            .ask(Method::GET, &format!("/{kind}?name={name}"), Value::Null)
            .await;
        found[kind][0]["id"].as_str().unwrap().to_owned()
    }

    /// What Keystone says of a token; null for one that it does not know.
    async fn described(&self, token: &str) -> Value {
        let request = self
            .client
            .get(format!("{}/auth/tokens?nocatalog", self.url()));
        let request = request.header("x-auth-token", &self.token);
        let answer = request
            .header("x-subject-token", token)
            .send()
            .await
            .unwrap();
        let answer: Value = answer.json().await.unwrap();
        answer["token"].clone()
    }

    /// How often somebody has logged in since the last reset.
    fn logins(&self) -> u64 {
        let counts = self.cloud.requests().into_iter();
        let mut of_tokens =
            counts.filter(|it| it.method == "POST" && it.route == "/v3/auth/tokens");
        of_tokens.next().map_or(0, |it| it.count)
    }

    /// The variables of the user demo.
    fn demo(&self) -> BTreeMap<&'static str, String> {
        variables(&[
            ("OS_AUTH_URL", &self.url()),
            ("OS_USERNAME", "demo"),
            ("OS_PASSWORD", "secret"),
            ("OS_PROJECT_NAME", "demo"),
            ("OS_USER_DOMAIN_NAME", "Default"),
            ("OS_PROJECT_DOMAIN_ID", "default"),
        ])
    }

    async fn run(&self, args: &[&str], variables: &BTreeMap<&'static str, String>) -> Output {
        let mut command = ferrostack(self.home.path())
            .arg("client-keystone-auth")
            .args(args);
        for (name, value) in variables {
            command = command.env(name, value);
        }
        command.output().await
    }

    /// The status of the ExecCredential that is printed.
    async fn granted(&self, args: &[&str], variables: &BTreeMap<&'static str, String>) -> Value {
        granted(&self.run(args, variables).await)
    }

    /// The same as a child of a process of its own, as of another kubectl.
    async fn of_another_kubectl(&self, variables: &BTreeMap<&'static str, String>) -> Output {
        let mut command = Command::new("/bin/sh");
        command.env_clear().env("HOME", self.home.path());
        command.args([
            "-c",
            "\"$0\" client-keystone-auth --cache; exit $?",
            PROGRAM,
        ]);
        command.envs(variables);
        Checked::of(command).output().await
    }

    fn cache(&self) -> Option<PathBuf> {
        let entries =
            std::fs::read_dir(self.home.path().join(".cache/ferrostack/keystone")).ok()?;
        let mut files = entries.map(|entry| entry.unwrap().path());
        files.find(|path| path.extension().is_some_and(|it| it == "json"))
    }
}

fn variables(pairs: &[(&'static str, &str)]) -> BTreeMap<&'static str, String> {
    let pairs = pairs
        .iter()
        .map(|(name, value)| (*name, (*value).to_owned()));
    pairs.collect()
}

fn granted(output: &Output) -> Value {
    let (out, errors) = texts(output);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert_eq!(errors, "");
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["kind"], "ExecCredential");
    assert_eq!(answer["apiVersion"], "client.authentication.k8s.io/v1beta1");
    answer["status"].clone()
}

/// The one sentence of a command that fails.
fn refused(output: &Output) -> String {
    let (out, errors) = texts(output);
    assert_eq!(output.status.code(), Some(1), "{out}{errors}");
    assert_eq!(out, "");
    let lines: Vec<&str> = errors.lines().collect();
    assert_eq!(lines.len(), 1, "{errors}");
    assert!(!errors.contains("panicked"), "{errors}");
    errors
}

fn passcode() -> String {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, TOTP.1);
    let tag = ring::hmac::sign(&key, &(now / 30).to_be_bytes());
    let tag = tag.as_ref();
    let at = usize::from(tag[19] & 15);
    let number = u32::from_be_bytes(tag[at..at + 4].try_into().unwrap()) & 0x7fff_ffff;
    format!("{:06}", number % 1_000_000)
}

/// Users, credentials and the identity provider for all ways of logging in; the id and secret of the credential.
async fn prepare(keystone: &Keystone) -> (String, String) {
    let demo = keystone.id("users", "demo").await;
    let project = keystone.id("projects", "demo").await;
    let member = keystone.id("roles", "member").await;
    let login = json!({"auth": {"identity": {"methods": ["password"], "password": {"user": {
        "id": demo, "password": "secret"}}}, "scope": {"project": {"id": project}}}});
    let answer = keystone
        .client
        .post(format!("{}/auth/tokens", keystone.url()))
        .json(&login);
    let token = answer.send().await.unwrap().headers()["x-subject-token"].clone();
    let path = format!("{}/users/{demo}/application_credentials", keystone.url());
    let body = json!({"application_credential": {"name": "robot"}});
    let answer = keystone
        .client
        .post(path)
        .header("x-auth-token", token)
        .json(&body);
    let created: Value = answer.send().await.unwrap().json().await.unwrap();
    let text = |key: &str| {
        created["application_credential"][key]
            .as_str()
            .unwrap()
            .to_owned()
    };

    let rules = json!([["password", "totp"]]);
    let options = json!({"multi_factor_auth_enabled": true, "multi_factor_auth_rules": rules});
    let body = json!({"user": {"name": "careful", "password": "secret", "options": options}});
    let user = keystone.ask(Method::POST, "/users", body).await;
    let careful = user["user"]["id"].as_str().unwrap();
    let body = json!({"credential": {"type": "totp", "blob": TOTP.0, "user_id": careful}});
    keystone.ask(Method::POST, "/credentials", body).await;
    let grant = format!("/projects/{project}/users/{careful}/roles/{member}");
    keystone.ask(Method::PUT, &grant, Value::Null).await;

    let known = json!({"clients": {"kubectl": "", "robot": "client-secret"}, "interval": 1,
        "accounts": {"alice": {"password": "secret", "groups": ["devs"]}}});
    keystone.ask(Method::POST, "/_simulator/oidc", known).await;
    let group = keystone
        .ask(Method::POST, "/groups", json!({"group": {"name": "devs"}}))
        .await;
    let group = group["group"]["id"].as_str().unwrap();
    let grant = format!("/projects/{project}/groups/{group}/roles/{member}");
    keystone.ask(Method::PUT, &grant, Value::Null).await;
    let rules = json!([{"local": [{"user": {"name": "{0}"}}, {"group": {"id": group}}],
        "remote": [{"type": "OIDC-preferred_username"}]}]);
    for (path, body) in [
        ("mappings/all", json!({"mapping": {"rules": rules}})),
        (
            "identity_providers/idp",
            json!({"identity_provider": {"enabled": true}}),
        ),
        (
            "identity_providers/idp/protocols/openid",
            json!({"protocol": {"mapping_id": "all"}}),
        ),
    ] {
        let path = format!("/OS-FEDERATION/{path}");
        keystone.ask(Method::PUT, &path, body).await;
    }
    (text("id"), text("secret"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_of_logging_in_gives_a_token_that_keystone_knows() {
    let keystone = Keystone::start().await;
    let (id, secret) = prepare(&keystone).await;
    let url = keystone.url();
    let clouds = keystone.home.path().join("clouds.yaml");
    let text = format!(
        "clouds:\n  whole: {{auth: {{auth_url: '{url}', username: demo, password: secret, project_name: demo}}}}\n  \
         half: {{auth: {{auth_url: '{url}', username: demo, project_name: demo}}}}\n"
    );
    std::fs::write(&clouds, text).unwrap();
    let secure = "clouds: {half: {auth: {password: secret}}}";
    std::fs::write(keystone.home.path().join("secure.yaml"), secure).unwrap();
    let clouds = clouds.to_str().unwrap();
    let given = granted(&keystone.run(&[], &keystone.demo()).await);
    let given = given["token"].as_str().unwrap();
    let openid = |auth_type: &'static str| {
        let discovery = format!(
            "{}/identity/oidc/.well-known/openid-configuration",
            keystone.root
        );
        variables(&[
            ("OS_AUTH_URL", &url),
            ("OS_AUTH_TYPE", auth_type),
            ("OS_IDENTITY_PROVIDER", "idp"),
            ("OS_PROTOCOL", "openid"),
            ("OS_CLIENT_ID", "kubectl"),
            ("OS_DISCOVERY_ENDPOINT", &discovery),
            ("OS_PROJECT_NAME", "demo"),
            ("OS_PROJECT_DOMAIN_ID", "default"),
        ])
    };
    let with = |mut all: BTreeMap<&'static str, String>, more: &[(&'static str, &str)]| {
        all.extend(variables(more));
        all
    };
    let flags = [
        "--keystone-url",
        &url,
        "--user-name",
        "demo",
        "--password",
        "secret",
        "--project-name",
        "demo",
        "--domain-name",
        "Default",
    ];
    let of_credential = [
        "--application-credential-id",
        &id,
        "--application-credential-secret",
        &secret,
    ];
    let stale = [
        ("OS_USERNAME", "nobody"),
        ("OS_PASSWORD", "wrong"),
        ("OS_PROJECT_ID", "none"),
    ];
    let rows: [Way<'_>; 12] = [
        ("OS_*", &[], keystone.demo(), "demo", "password"),
        (
            "the flags of the Go plugin",
            &flags,
            variables(&stale),
            "demo",
            "password",
        ),
        (
            "clouds.yaml, and stale variables",
            &[],
            with(
                variables(&stale),
                &[("OS_CLIENT_CONFIG_FILE", clouds), ("OS_CLOUD", "whole")],
            ),
            "demo",
            "password",
        ),
        (
            "secure.yaml",
            &["--os-cloud", "half"],
            variables(&[("OS_CLIENT_CONFIG_FILE", clouds)]),
            "demo",
            "password",
        ),
        (
            "a token",
            &[],
            variables(&[
                ("OS_AUTH_URL", &url),
                ("OS_TOKEN", given),
                ("OS_PROJECT_NAME", "demo"),
            ]),
            "demo",
            "token",
        ),
        (
            "an application credential by id",
            &of_credential,
            keystone.demo(),
            "demo",
            "application_credential",
        ),
        (
            "an application credential by name",
            &[],
            variables(&[
                ("OS_AUTH_URL", &url),
                ("OS_USERNAME", "demo"),
                ("OS_APPLICATION_CREDENTIAL_NAME", "robot"),
                ("OS_APPLICATION_CREDENTIAL_SECRET", &secret),
            ]),
            "demo",
            "application_credential",
        ),
        (
            "two factors",
            &[],
            with(
                keystone.demo(),
                &[
                    ("OS_USERNAME", "careful"),
                    ("OS_AUTH_TYPE", "v3multifactor"),
                    ("OS_AUTH_METHODS", "v3password,v3totp"),
                    ("OS_PASSCODE", &passcode()),
                ],
            ),
            "careful",
            "totp",
        ),
        (
            "the password of an identity provider",
            &[],
            with(
                openid("v3oidcpassword"),
                &[("OS_USERNAME", "alice"), ("OS_PASSWORD", "secret")],
            ),
            "alice",
            "openid",
        ),
        (
            "a client of an identity provider",
            &[],
            with(
                openid("v3oidcclientcredentials"),
                &[
                    ("OS_CLIENT_ID", "robot"),
                    ("OS_CLIENT_SECRET", "client-secret"),
                ],
            ),
            "robot",
            "openid",
        ),
        (
            "without a project",
            &flags[..6],
            BTreeMap::new(),
            "demo",
            "password",
        ),
        (
            "a project of the flags in place of that of the environment",
            &["--project-name", "demo"],
            with(keystone.demo(), &[("OS_PROJECT_ID", "none")]),
            "demo",
            "password",
        ),
    ];
    for (what, args, variables, user, method) in rows {
        let output = keystone.run(args, &variables).await;
        let status = granted(&output);
        let described = keystone.described(status["token"].as_str().unwrap()).await;
        assert_eq!(described["user"]["name"], user, "{what}: {described}");
        assert_eq!(described["project"]["name"], "demo", "{what}: {described}");
        let methods = described["methods"].as_array().unwrap();
        assert!(methods.contains(&json!(method)), "{what}: {methods:?}");
        let ends = status["expirationTimestamp"].as_str().unwrap();
        let ends: jiff::Timestamp = ends.parse().unwrap();
        let left = ends.duration_since(jiff::Timestamp::now()).as_secs();
        assert!((86_000..86_401).contains(&left), "{what}: {left}");
    }
    let output = keystone.run(&[], &openid("v3oidcdeviceauthz")).await;
    let sentence = refused(&output);
    assert!(sentence.contains("nobody is there"), "{sentence}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_chooses_the_version_and_the_cluster_names_its_keystone() {
    let keystone = Keystone::start().await;
    let link = keystone.home.path().join("client-keystone-auth");
    symlink(PROGRAM, &link).unwrap();
    let mut variables = keystone.demo();
    variables.remove("OS_AUTH_URL");
    for version in ["v1", "v1beta1"] {
        let version = format!("client.authentication.k8s.io/{version}");
        let info = json!({"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": false,
            "cluster": {"server": "https://api:6443", "config": {"auth_url": keystone.url()}}}});
        let mut command = Command::new(&link);
        command.env_clear().env("HOME", keystone.home.path());
        command
            .envs(&variables)
            .env("KUBERNETES_EXEC_INFO", info.to_string());
        let output = Checked::of(command).output().await;
        let (out, errors) = texts(&output);
        assert_eq!(output.status.code(), Some(0), "{errors}");
        let answer: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(answer["apiVersion"], version);
        let described = keystone
            .described(answer["status"]["token"].as_str().unwrap())
            .await;
        assert_eq!(described["user"]["name"], "demo");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_generated_kubeconfig_calls_the_plugin() {
    let keystone = Keystone::start().await;
    let file = keystone.home.path().join("kubeconfig");
    let url = keystone.url();
    let args = [
        "generate",
        "kubeconfig",
        "--keystone",
        "--cache",
        "--server",
        "https://192.0.2.1:6443",
        "--keystone-url",
        &url,
        "--write-to",
        file.to_str().unwrap(),
    ];
    let output = ferrostack(keystone.home.path()).args(args).output().await;
    assert_eq!(output.status.code(), Some(0), "{:?}", texts(&output));
    let written = kube::config::Kubeconfig::read_from(&file).unwrap();
    assert_eq!(written.current_context.as_deref(), Some("keystone"));
    let user = written.auth_infos[0].auth_info.as_ref().unwrap();
    let exec = user.exec.as_ref().unwrap();
    assert_eq!(
        exec.api_version.as_deref(),
        Some("client.authentication.k8s.io/v1")
    );
    assert!(exec.provide_cluster_info);
    let command = exec.command.as_deref().unwrap();
    let arguments = exec.args.clone().unwrap_or_default();
    assert_eq!(arguments, ["client-keystone-auth", "--cache"]);
    let cluster = written.clusters[0].cluster.as_ref().unwrap();
    let extension = cluster.extensions.as_ref().unwrap();
    assert_eq!(extension[0].name, "client.authentication.k8s.io/exec");
    let info = json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "spec": {"interactive": false, "cluster": {"server": cluster.server, "config": extension[0].extension}}});
    let mut variables = keystone.demo();
    variables.remove("OS_AUTH_URL");
    let mut run = Command::new(command);
    run.env_clear()
        .env("HOME", keystone.home.path())
        .args(arguments);
    run.envs(&variables)
        .env("KUBERNETES_EXEC_INFO", info.to_string());
    let output = Checked::of(run).output().await;
    let (out, errors) = texts(&output);
    let answer: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{errors}"));
    assert_eq!(answer["apiVersion"], "client.authentication.k8s.io/v1");

    let args = [
        "generate",
        "kubeconfig",
        "--keystone",
        "--exec-version",
        "v1beta1",
        "--os-cloud",
        "mine",
    ];
    let output = ferrostack(keystone.home.path()).args(args).output().await;
    let (out, _) = texts(&output);
    let entry: Value = serde_saphyr::from_str(&out).unwrap();
    let exec = &entry["users"][0]["user"]["exec"];
    assert_eq!(
        exec["args"],
        json!(["client-keystone-auth", "--os-cloud=mine"])
    );
    assert!(
        exec.get("interactiveMode").is_none() && entry.get("clusters").is_none(),
        "{out}"
    );
}
