//! `cloud-conf`: validates and generates the configuration file of the cloud controller manager and of the CSI driver.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, bail};
use cloud_conf::{CloudConf, Finding, Generated, Program, Severity};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use crate::cli::{self, GenerateCloudConf, Output};
use crate::cloud;
use crate::environment::Environment;
use crate::output::{self, print, print_document, remark};

/// Runs the command.
pub(super) fn execute(args: &cli::CloudConf, environment: &Environment) -> anyhow::Result<()> {
    match args {
        cli::CloudConf::Check { file, output } => {
            let (text, usable) = check(file, output.output)?;
            print(&text)?;
            anyhow::ensure!(usable, "{} cannot be used", file.display());
            Ok(())
        }
        cli::CloudConf::Generate(args) => {
            let generated = generate(args, environment)?;
            for note in &generated.notes {
                remark(&format!("note: {note}"));
            }
            let text = generated.text.expose_secret();
            match &args.write_to {
                Some(file) => output::file::write_secret(environment, file, text),
                None => print_document(text),
            }
        }
    }
}

/// Findings about a file, and true if the file is usable.
pub(crate) fn check(file: &Path, output: Output) -> anyhow::Result<(String, bool)> {
    let text = read(file)?;
    let parsed = CloudConf::parse(text.expose_secret(), Program::CloudControllerManager);
    let (findings, usable) = match parsed {
        Ok(parsed) => (parsed.warnings, true),
        Err(rejected) => (rejected.findings, false),
    };
    Ok((render(file, &findings, usable, output)?, usable))
}

/// cloud.conf, with notes for its user.
pub(crate) fn generate(
    args: &GenerateCloudConf,
    environment: &Environment,
) -> anyhow::Result<Generated> {
    match (&args.from.cloud, &args.from.from_legacy) {
        (Some(name), _) => {
            let cloud = cloud::find(name, environment)?;
            cloud_conf::from_cloud(&cloud)
                .map_err(|problem| anyhow::anyhow!("cloud `{name}`: {problem}"))
        }
        (None, Some(file)) => cloud_conf::from_legacy(read(file)?.expose_secret())
            .with_context(|| file.display().to_string()),
        (None, None) => bail!("name a cloud with --cloud, or a file with --from-legacy"),
    }
}

/// Reads a file, or standard input for `-`.
fn read(file: &Path) -> anyhow::Result<SecretString> {
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin()).context("cannot read standard input")
    } else {
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
    };
    Ok(SecretString::from(text?))
}

fn render(
    file: &Path,
    findings: &[Finding],
    usable: bool,
    output: Output,
) -> anyhow::Result<String> {
    if output == Output::Json {
        let document = json!({"file": file, "usable": usable, "findings": findings});
        return Ok(terminal::json(&document)?);
    }
    let mut text = String::new();
    for finding in findings {
        let severity = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        writeln!(text, "{severity}: {finding}")?;
    }
    let verdict = match (usable, findings.is_empty()) {
        (true, true) => "is valid",
        (true, false) => "is valid, with warnings",
        (false, _) => "is rejected",
    };
    writeln!(text, "{} {verdict}", file.display())?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::CloudConfSource;

    fn checked(text: &str, output: Output) -> (String, bool) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("cloud.conf");
        std::fs::write(&file, text).unwrap();
        let (text, usable) = check(&file, output).unwrap();
        (text.replace(&file.display().to_string(), "FILE"), usable)
    }

    #[test]
    fn every_finding_is_printed_with_the_verdict() {
        let (text, usable) = checked("[Global]\nauth-url = x\nnonsense = y\n", Output::Text);
        assert!(!usable);
        assert!(
            text.contains("error: line 2: [Global] auth-url: this is not a URL"),
            "{text}"
        );
        assert!(
            text.contains("warning: line 3: [Global] nonsense: this key is unknown"),
            "{text}"
        );
        assert!(text.ends_with("FILE is rejected\n"), "{text}");
    }

    #[test]
    fn machines_get_the_findings_as_json() {
        let valid =
            "[Global]\nauth-url = http://k\nuser-id = u\npassword = p\ntenant-id = t\nx = y\n";
        let (text, usable) = checked(valid, Output::Json);
        assert!(usable);
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["usable"], true);
        assert_eq!(document["findings"][0]["line"], 6);
        assert_eq!(document["findings"][0]["severity"], "warning");
    }

    #[test]
    fn a_cloud_of_a_clouds_yaml_becomes_a_cloud_conf_that_is_valid() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("clouds.yaml");
        let clouds = "clouds: {mine: {auth: {auth_url: 'http://k', user_id: u, password: p, project_id: t}}}";
        std::fs::write(&file, clouds).unwrap();
        let environment =
            Environment::with(&[("OS_CLIENT_CONFIG_FILE", &file.display().to_string())]);
        let args = GenerateCloudConf {
            from: CloudConfSource {
                cloud: Some("mine".to_owned()),
                from_legacy: None,
            },
            write_to: None,
        };
        let generated = generate(&args, &environment).unwrap();
        let (_, usable) = checked(generated.text.expose_secret(), Output::Text);
        assert!(usable);
    }
}
