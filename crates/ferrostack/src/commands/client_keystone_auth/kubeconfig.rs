//! `generate kubeconfig --keystone`: entry of a kubeconfig with the exec plugin.

use std::path::Path;

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::cli::{ExecVersion, GenerateKubeconfig};
use crate::environment::Environment;

/// Kubeconfig as YAML: the user, and the cluster with a context if its server is given.
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
    let cluster = cluster(args, environment)?;
    if let (Some(url), None) = (&args.keystone_url, &cluster) {
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
    if let Some(cluster) = cluster {
        let name = &args.cluster;
        document["clusters"] = json!([{"name": name, "cluster": cluster}]);
        document["contexts"] =
            json!([{"name": name, "context": {"cluster": name, "user": args.user}}]);
        document["current-context"] = json!(name);
    }
    Ok(terminal::yaml(&document)?)
}

fn cluster(args: &GenerateKubeconfig, environment: &Environment) -> anyhow::Result<Option<Value>> {
    let mut cluster = match (&args.cluster_of, &args.server) {
        (Some(file), _) => cluster_of(&environment.working_dir.join(file))
            .with_context(|| format!("--cluster-of: {}", file.display()))?,
        (None, Some(server)) => json!({"server": server}),
        (None, None) => return Ok(None),
    };
    if let Some(file) = &args.certificate_authority {
        embed(&mut cluster, &environment.working_dir.join(file))?;
    }
    if let Some(url) = &args.keystone_url {
        cluster["extensions"] = json!([{
            "name": "client.authentication.k8s.io/exec",
            "extension": {"auth_url": url},
        }]);
    }
    Ok(Some(cluster))
}

/// Cluster of the current context of a kubeconfig, with embedded authorities in place of a file name.
fn cluster_of(file: &Path) -> anyhow::Result<Value> {
    let text = std::fs::read_to_string(file).context("cannot read it")?;
    // What is in there is secret: an error says where it is, and not what.
    let config: Value = serde_saphyr::from_str(&text)
        .ok()
        .context("it is no kubeconfig")?;
    let named = |list: &str, name: &Value| {
        let all = config[list].as_array().into_iter().flatten();
        all.clone().find(|it| it["name"] == *name).cloned()
    };
    let context = named("contexts", &config["current-context"]);
    let context = context.context("it has no current context")?;
    let found = named("clusters", &context["context"]["cluster"]);
    let mut cluster = found.context("its current context has no cluster")?["cluster"].take();
    if !cluster["server"].is_string() {
        bail!("its cluster has no server");
    }
    if let Some(authorities) = cluster["certificate-authority"].as_str() {
        let beside = file.parent().unwrap_or(Path::new("")).join(authorities);
        embed(&mut cluster, &beside)?;
    }
    Ok(cluster)
}

/// Embeds the authorities of a file in a cluster.
fn embed(cluster: &mut Value, file: &Path) -> anyhow::Result<()> {
    let pem = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    if let Some(keys) = cluster.as_object_mut() {
        keys.remove("certificate-authority");
        keys.insert(
            "certificate-authority-data".to_owned(),
            json!(STANDARD.encode(pem)),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_of_another_kubeconfig_comes_without_its_user() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("ca.crt"), "a certificate").unwrap();
        let file = directory.path().join("admin.kubeconfig");
        let of = |text: &str| {
            std::fs::write(&file, text).unwrap();
            cluster_of(&file).map_err(|error| format!("{error:#}"))
        };
        let whole = "current-context: two\n\
            contexts: [{name: one, context: {cluster: a, user: admin}}, {name: two, context: {cluster: b, user: admin}}]\n\
            clusters:\n- {name: a, cluster: {server: 'https://a'}}\n\
            - {name: b, cluster: {server: 'https://b', certificate-authority: ca.crt, tls-server-name: b}}\n\
            users: [{name: admin, user: {token: secret}}]\n";
        let authorities = STANDARD.encode("a certificate");
        assert_eq!(
            of(whole).unwrap(),
            json!({"server": "https://b", "certificate-authority-data": authorities, "tls-server-name": "b"})
        );
        for (from, to, words) in [
            ("current-context: two", "", "no current context"),
            ("cluster: b,", "cluster: c,", "has no cluster"),
            ("server: 'https://b', ", "", "has no server"),
            ("ca.crt", "other.crt", "cannot read "),
            ("clusters:", "{", "is no kubeconfig"),
        ] {
            let error = of(&whole.replace(from, to)).unwrap_err();
            assert!(
                error.contains(words) && !error.contains("secret"),
                "{error}"
            );
        }
    }
}
