//! `generate kubeconfig --keystone`: the entry of a kubeconfig that calls the exec plugin.

use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::cli::{ExecVersion, GenerateKubeconfig};
use crate::environment::Environment;
use crate::output;

/// The kubeconfig as YAML: the user, and the cluster with a context if its server is named.
pub(crate) fn render(
    args: &GenerateKubeconfig,
    environment: &Environment,
) -> anyhow::Result<String> {
    let command = args.command.as_ref().unwrap_or(&environment.program);
    let mut arguments = match args.command {
        // Some other name of this program, or the Go plugin.
        Some(_) => Vec::new(),
        None => vec!["client-keystone-auth".to_owned()],
    };
    if let Some(cloud) = &args.os_cloud {
        arguments.push(format!("--os-cloud={cloud}"));
    }
    // With a cluster, the URL stands there, so that one user entry serves clusters of several clouds.
    if let (Some(url), None) = (&args.keystone_url, &args.server) {
        arguments.push(format!("--keystone-url={url}"));
    }
    if args.cache {
        arguments.push("--cache".to_owned());
    }
    let mut exec = json!({
        "apiVersion": args.exec_version.name(),
        "command": command,
        "args": arguments,
        "provideClusterInfo": true,
        "installHint": "client-keystone-auth is part of ferrostack",
    });
    if args.exec_version == ExecVersion::V1 {
        exec["interactiveMode"] = json!("IfAvailable");
    }
    let mut document = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "users": [{"name": args.user, "user": {"exec": exec}}],
    });
    if let Some(server) = &args.server {
        let name = &args.cluster;
        document["clusters"] =
            json!([{"name": name, "cluster": cluster(args, server, environment)?}]);
        document["contexts"] =
            json!([{"name": name, "context": {"cluster": name, "user": args.user}}]);
        document["current-context"] = json!(name);
    }
    output::yaml(&document)
}

fn cluster(
    args: &GenerateKubeconfig,
    server: &str,
    environment: &Environment,
) -> anyhow::Result<Value> {
    let mut cluster = json!({"server": server});
    if let Some(file) = &args.certificate_authority {
        let pem = std::fs::read(environment.working_dir.join(file))
            .with_context(|| format!("cannot read {}", file.display()))?;
        cluster["certificate-authority-data"] = json!(STANDARD.encode(pem));
    }
    if let Some(url) = &args.keystone_url {
        cluster["extensions"] = json!([{
            "name": "client.authentication.k8s.io/exec",
            "extension": {"auth_url": url},
        }]);
    }
    Ok(cluster)
}
