//! `keystone-auth check`: problems in a policy and in the files around it.

use std::path::Path;

use jiff::Timestamp;
use keystone_auth::policy::{Mode, Policy};
use keystone_auth::sync::Config;
use serde_json::{Value, json};

use super::tls;
use crate::cli::{CheckedFiles, KeystoneCheck, Output};

/// Report on all files, and true if all are usable.
pub(crate) fn run(args: &KeystoneCheck) -> (String, bool) {
    let files: &CheckedFiles = &args.files;
    let mut report = Report::default();
    report.of(files.policy.as_deref(), policy);
    report.of(files.sync_config.as_deref(), sync);
    report.of(files.certificate.as_deref(), |text| {
        let key = files.key.as_deref().map(std::fs::read_to_string);
        match key {
            Some(Ok(key)) => certificate(text, &key),
            _ => Findings::error("--key cannot be read"),
        }
    });
    report.of(files.webhook_kubeconfig.as_deref(), kubeconfig);
    report.of(files.apiserver.as_deref(), apiserver);
    report.of(files.authorization_config.as_deref(), authorization);
    let text = match args.output.output {
        Output::Text => report.text(),
        Output::Json => terminal::json_document(&report.document()),
    };
    (text, report.is_usable())
}

/// [`Findings`] about each file, by its name.
#[derive(Default)]
struct Report(Vec<(String, Findings)>);

/// Errors and doubts about a text.
#[derive(Debug, Default, PartialEq, Eq)]
struct Findings {
    errors: Vec<String>,
    doubts: Vec<String>,
}

impl Findings {
    fn error(message: impl Into<String>) -> Self {
        let errors = vec![message.into()];
        Self {
            errors,
            ..Self::default()
        }
    }
}

impl Report {
    fn of(&mut self, path: Option<&Path>, check: impl FnOnce(&str) -> Findings) {
        let Some(path) = path else {
            return;
        };
        let findings = match std::fs::read_to_string(path) {
            Ok(text) => check(&text),
            Err(error) => Findings::error(format!("it cannot be read: {error}")),
        };
        self.0.push((path.display().to_string(), findings));
    }

    fn is_usable(&self) -> bool {
        self.0
            .iter()
            .all(|(_, findings)| findings.errors.is_empty())
    }

    /// A line for each finding, and for each file without one.
    fn text(&self) -> String {
        let mut lines = String::new();
        for (name, findings) in &self.0 {
            for error in &findings.errors {
                lines.push_str(&format!("{name}: error: {error}\n"));
            }
            for doubt in &findings.doubts {
                lines.push_str(&format!("{name}: doubtful: {doubt}\n"));
            }
            if *findings == Findings::default() {
                lines.push_str(&format!("{name}: ok\n"));
            }
        }
        lines
    }

    fn document(&self) -> Value {
        let file = |(name, findings): &(String, Findings)| json!({"file": name, "errors": findings.errors, "doubts": findings.doubts});
        let files: Vec<Value> = self.0.iter().map(file).collect();
        json!({"usable": self.is_usable(), "files": files})
    }
}

/// [`Findings`] about a policy, in both modes.
fn policy(text: &str) -> Findings {
    let words =
        |found: &[keystone_auth::policy::Finding]| found.iter().map(ToString::to_string).collect();
    match Policy::compile(text, Mode::Compatible) {
        Err(invalid) => Findings {
            errors: words(&invalid.0),
            doubts: Vec::new(),
        },
        Ok(_) => Findings {
            errors: Vec::new(),
            doubts: match Policy::compile(text, Mode::Strict) {
                Ok(_) => Vec::new(),
                Err(invalid) => words(&invalid.0),
            },
        },
    }
}

fn certificate(text: &str, key: &str) -> Findings {
    match (
        tls::config(text, key, None),
        tls::out_of_time(text, Timestamp::now()),
    ) {
        (Err(why), _) | (Ok(_), Some(why)) => Findings::error(why),
        (Ok(_), None) => Findings::default(),
    }
}

fn sync(text: &str) -> Findings {
    match Config::parse(text) {
        Err(why) => Findings::error(why.to_string()),
        Ok(_) => Findings::default(),
    }
}

/// [`Findings`] about the kubeconfig with which an API server reaches the webhook.
fn kubeconfig(text: &str) -> Findings {
    let config = match yaml(text) {
        Ok(config) => config,
        Err(why) => return Findings::error(why),
    };
    let mut findings = Findings::default();
    let clusters = config["clusters"].as_array().map_or(&[][..], Vec::as_slice);
    if clusters.is_empty() {
        findings
            .errors
            .push("clusters is empty: there is no address of the webhook".to_owned());
    }
    for cluster in clusters {
        let cluster = &cluster["cluster"];
        let server = cluster["server"].as_str().unwrap_or_default();
        if !server.starts_with("https://") {
            findings
                .errors
                .push(format!("server `{server}` is no https URL"));
        } else if !server.contains("/webhook") {
            findings.doubts.push(format!("server `{server}` has another path than /webhook: give it to the webhook with --path"));
        }
        let has = |key: &str| cluster[key].as_str().is_some_and(|value| !value.is_empty());
        if cluster["insecure-skip-tls-verify"] == true {
            let message = "insecure-skip-tls-verify: whoever is in between reads all tokens; use certificate-authority";
            findings.doubts.push(message.to_owned());
        } else if !has("certificate-authority") && !has("certificate-authority-data") {
            findings.doubts.push("without certificate-authority the certificate has to be of one that the system trusts".to_owned());
        }
    }
    if config["current-context"].as_str().is_none_or(str::is_empty) {
        findings
            .errors
            .push("current-context is missing: the API server takes no cluster then".to_owned());
    }
    findings
}

/// [`Findings`] about the manifest of a kube-apiserver.
fn apiserver(text: &str) -> Findings {
    let pod = match yaml(text) {
        Ok(pod) => pod,
        Err(why) => return Findings::error(why),
    };
    let containers = pod["spec"]["containers"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let words = containers.iter().flat_map(|container| {
        let parts = ["command", "args"]
            .into_iter()
            .filter_map(|key| container[key].as_array());
        parts.flatten().filter_map(Value::as_str)
    });
    let flags: Vec<(&str, &str)> = words
        .filter_map(|word| word.trim_start_matches("--").split_once('='))
        .collect();
    let values = |name: &str| {
        let named = flags.iter().filter(|(flag, _)| *flag == name);
        named.map(|(_, value)| *value).collect::<Vec<_>>()
    };
    let mut findings = Findings::default();
    if values("authentication-token-webhook-config-file").is_empty() {
        let message = "--authentication-token-webhook-config-file is missing: nobody is asked about tokens of Keystone";
        findings.errors.push(message.to_owned());
    }
    if let [_, _, ..] = *values("authorization-mode") {
        findings
            .errors
            .push("--authorization-mode is there twice, and the last one counts".to_owned());
    }
    let has_file = !values("authorization-webhook-config-file").is_empty();
    let modes = values("authorization-mode")
        .last()
        .copied()
        .unwrap_or_default();
    let modes: Vec<&str> = modes.split(',').collect();
    if values("authorization-config").is_empty() {
        match (has_file, modes.contains(&"Webhook")) {
            (true, false) => findings
                .errors
                .push("--authorization-mode has no Webhook: no policy is asked".to_owned()),
            (false, true) => findings
                .errors
                .push("--authorization-webhook-config-file is missing".to_owned()),
            (false, false) => findings
                .doubts
                .push("no policy is asked: RBAC alone decides".to_owned()),
            (true, true) => {
                let place = |mode: &str| modes.iter().position(|it| *it == mode);
                if place("Webhook") < place("RBAC") {
                    findings.doubts.push("Webhook comes before RBAC, so that the webhook is asked about every request of the cluster itself".to_owned());
                }
            }
        }
    } else if has_file || !values("authorization-mode").is_empty() {
        findings.errors.push("--authorization-config excludes --authorization-mode and --authorization-webhook-config-file".to_owned());
    }
    findings
}

/// [`Findings`] about an AuthorizationConfiguration.
fn authorization(text: &str) -> Findings {
    let config = match yaml(text) {
        Ok(config) => config,
        Err(why) => return Findings::error(why),
    };
    let mut findings = Findings::default();
    if config["kind"] != "AuthorizationConfiguration" {
        findings
            .errors
            .push("kind is not AuthorizationConfiguration".to_owned());
    }
    let authorizers = config["authorizers"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let webhooks: Vec<&Value> = authorizers
        .iter()
        .filter(|it| it["type"] == "Webhook")
        .map(|it| &it["webhook"])
        .collect();
    if webhooks.is_empty() {
        findings
            .doubts
            .push("there is no authorizer of type Webhook: no policy is asked".to_owned());
    }
    for webhook in webhooks {
        let version = webhook["subjectAccessReviewVersion"]
            .as_str()
            .unwrap_or_default();
        if !["v1", "v1beta1"].contains(&version) {
            findings.errors.push(format!(
                "subjectAccessReviewVersion `{version}` is neither v1 nor v1beta1"
            ));
        }
        if webhook["failurePolicy"] == "Deny" {
            let message = "failurePolicy Deny: while the webhook is down, everything is denied that the authorizers before it do not allow";
            findings.doubts.push(message.to_owned());
        }
        if webhook["matchConditions"]
            .as_array()
            .is_none_or(Vec::is_empty)
        {
            let message = "without matchConditions the webhook is asked about nodes and service accounts, too";
            findings.doubts.push(message.to_owned());
        }
    }
    findings
}

fn yaml(text: &str) -> Result<Value, String> {
    serde_saphyr::from_str(text).map_err(|error| {
        let words = error.to_string();
        words.lines().next().unwrap_or_default().to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::OutputArg;

    #[test]
    fn kubeconfigs_flags_and_configurations_say_what_will_not_work() {
        let good = "clusters: [{cluster: {server: 'https://a:8443/webhook', certificate-authority: ca}}]\ncurrent-context: a\n";
        assert_eq!(kubeconfig(good), Findings::default());
        let pod =
            |flags: &str| format!("spec: {{containers: [{{command: [kube-apiserver{flags}]}}]}}");
        let (token, file) = (
            ", --authentication-token-webhook-config-file=a",
            ", --authorization-webhook-config-file=a",
        );
        let all = format!("{token}{file}");
        assert_eq!(
            apiserver(&pod(&format!(
                "{all}, '--authorization-mode=Node,RBAC,Webhook'"
            ))),
            Findings::default()
        );
        let webhook = |more: &str| {
            format!(
                "kind: AuthorizationConfiguration\nauthorizers: [{{type: Webhook, webhook: {{matchConditions: [{{expression: 'true'}}]{more}}}}}]"
            )
        };
        assert_eq!(
            authorization(&webhook(", subjectAccessReviewVersion: v1")),
            Findings::default()
        );
        for (findings, words) in [
            (
                kubeconfig(&good.replace("https", "http")),
                "error: server `http://a",
            ),
            (
                kubeconfig(&good.replace("/webhook", "/")),
                "doubtful: server",
            ),
            (
                kubeconfig(&good.replace(
                    "certificate-authority: ca",
                    "insecure-skip-tls-verify: true",
                )),
                "doubtful: insecure",
            ),
            (
                kubeconfig(&good.replace(", certificate-authority: ca", "")),
                "doubtful: without certificate-authority",
            ),
            (
                kubeconfig(&good.replace("current-context: a", "")),
                "error: current-context",
            ),
            (
                kubeconfig("clusters: []\ncurrent-context: a"),
                "error: clusters is empty",
            ),
            (kubeconfig("a: ["), "error: "),
            (
                apiserver(&pod("")),
                "error: --authentication-token-webhook-config-file is missing",
            ),
            (
                apiserver(&pod(&format!("{all}, --authorization-mode=RBAC"))),
                "error: --authorization-mode has no Webhook",
            ),
            (
                apiserver(&pod(&format!("{token}, --authorization-mode=Webhook"))),
                "error: --authorization-webhook-config-file is missing",
            ),
            (apiserver(&pod(token)), "doubtful: no policy is asked"),
            (
                apiserver(&pod(&format!("{all}, '--authorization-mode=Webhook,RBAC'"))),
                "doubtful: Webhook comes before RBAC",
            ),
            (
                apiserver(&pod(&format!(
                    "{all}, --authorization-mode=RBAC, '--authorization-mode=RBAC,Webhook'"
                ))),
                "error: --authorization-mode is there twice",
            ),
            (
                apiserver(&pod(&format!("{all}, --authorization-config=a"))),
                "error: --authorization-config excludes",
            ),
            (authorization("kind: X"), "error: kind is not"),
            (
                authorization("kind: AuthorizationConfiguration"),
                "doubtful: there is no authorizer",
            ),
            (
                authorization(&webhook(", subjectAccessReviewVersion: v2")),
                "error: subjectAccessReviewVersion `v2`",
            ),
            (
                authorization(&webhook(
                    ", subjectAccessReviewVersion: v1, failurePolicy: Deny",
                )),
                "doubtful: failurePolicy Deny",
            ),
            (
                authorization(
                    &webhook(", subjectAccessReviewVersion: v1")
                        .replace("{expression: 'true'}", ""),
                ),
                "doubtful: without matchConditions",
            ),
        ] {
            let errors = findings.errors.iter().map(|it| format!("error: {it}"));
            let all: Vec<String> = errors
                .chain(findings.doubts.iter().map(|it| format!("doubtful: {it}")))
                .collect();
            assert!(
                all.iter().any(|it| it.starts_with(words)),
                "{words}: {all:?}"
            );
        }
    }

    #[test]
    fn every_file_has_a_line_and_an_error_makes_them_unusable() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            Some(path)
        };
        let args = |policy: &str, sync: &str| KeystoneCheck {
            files: CheckedFiles {
                policy: file("policy", policy),
                sync_config: file("sync", sync),
                certificate: None,
                key: None,
                webhook_kubeconfig: None,
                apiserver: None,
                authorization_config: None,
            },
            output: OutputArg {
                output: Output::Text,
            },
        };
        let permissions = r#""resource_permissions": {"a/pods": ["get"]}"#;
        let good = format!(r#"[{{"users": {{"projects": ["p"]}}, {permissions}}}]"#);
        let (lines, usable) = run(&args(&good, ""));
        assert!(
            usable && lines.contains("policy: ok\n") && lines.contains("sync: ok\n"),
            "{lines}"
        );
        let (lines, usable) = run(&args(&format!("[{{{permissions}}}]"), ""));
        assert!(
            usable && lines.contains("policy: doubtful: line 1, column 2: without `users`"),
            "{lines}"
        );
        let (lines, usable) = run(&args("[1]", "namespace-format: x"));
        assert!(
            !usable && lines.contains("policy: error: line 1") && lines.contains("sync: error: "),
            "{lines}"
        );
        let json = KeystoneCheck {
            output: OutputArg {
                output: Output::Json,
            },
            ..args("[1]", "")
        };
        let (text, usable) = run(&json);
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((usable, &document["usable"]), (false, &json!(false)));
        let [policy, sync] = &document["files"].as_array().unwrap()[..] else {
            panic!("{document}");
        };
        let error = policy["errors"][0].as_str().unwrap();
        assert!(error.starts_with("line 1"), "{error}");
        assert!(sync["file"].as_str().unwrap().ends_with("/sync"));
        assert_eq!((&sync["errors"], &sync["doubts"]), (&json!([]), &json!([])));
        std::fs::remove_file(directory.path().join("policy")).unwrap();
        let mut gone = args("[]", "");
        gone.files.policy = Some(directory.path().join("gone"));
        assert!(run(&gone).0.contains("gone: error: it cannot be read"));
    }
}
