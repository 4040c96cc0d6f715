//! `env`: template variables with the credentials of a cloud, for a shell. Nothing is written to a file.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};

use crate::cli::{Env, Output};
use crate::cloud;
use crate::connect::quoted_text;
use crate::environment::Environment;
use crate::output::print_document;

/// Runs the command.
pub(super) fn execute(args: &Env, environment: &Environment) -> anyhow::Result<()> {
    print_document(text(args, environment)?.expose_secret())
}

/// Path of the CA in the manifests of the cloud controller manager, as in the original `env.rc`.
const CA_FILE: &str = "/etc/certs/cacert";

/// The variables as `export` lines, or as JSON.
pub(crate) fn text(args: &Env, environment: &Environment) -> anyhow::Result<SecretString> {
    let config = cloud::find(&args.cloud, environment)?;
    let mut variables = cloud::credentials(&config);
    let mut mounted = config.clone();
    if mounted.cacert.is_some() {
        mounted.cacert = Some(CA_FILE.to_owned());
    }
    let conf = cloud_conf::from_cloud(&mounted)
        .map_err(|problem| anyhow::anyhow!("cloud `{}`: {problem}", args.cloud))?;
    let conf = STANDARD.encode(conf.text.expose_secret());
    variables.insert("OPENSTACK_CLOUD_PROVIDER_CONF_B64".to_owned(), conf);
    if args.output.output == Output::Json {
        return Ok(terminal::json(&variables)?.into());
    }
    let mut text = String::new();
    for (name, value) in &variables {
        writeln!(text, "export {name}={}", quoted_text(value))?;
    }
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::OutputArg;

    fn printed(cloud: &str, output: Output) -> anyhow::Result<String> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("clouds.yaml");
        let ca = directory.path().join("ca.pem");
        std::fs::write(&ca, "a CA\n").unwrap();
        let auth = "{auth_url: 'https://k', user_id: u, password: p, project_id: t}";
        let clouds = format!(
            "clouds: {{\"it's mine\": {{auth: {auth}, cacert: {}}}, other: {{auth: {auth}}}}}",
            ca.display()
        );
        std::fs::write(&file, clouds).unwrap();
        let file = file.display().to_string();
        let environment = Environment::with(&[("OS_CLIENT_CONFIG_FILE", &file)]);
        let args = Env {
            cloud: cloud.to_owned(),
            output: OutputArg { output },
        };
        Ok(text(&args, &environment)?.expose_secret().to_owned())
    }

    fn decoded(value: &str) -> String {
        String::from_utf8(STANDARD.decode(value).unwrap()).unwrap()
    }

    #[test]
    fn a_shell_gets_what_templates_want_of_one_cloud() {
        let script = printed("it's mine", Output::Text).unwrap();
        let shell = std::process::Command::new("sh")
            .arg("-c")
            .arg(format!("{script}\nprintf '%s\\n%s\\n%s\\n%s' \"$OPENSTACK_CLOUD\" \"$OPENSTACK_CLOUD_CACERT_B64\" \"$OPENSTACK_CLOUD_PROVIDER_CONF_B64\" \"$OPENSTACK_CLOUD_YAML_B64\""))
            .output()
            .unwrap();
        let values = String::from_utf8(shell.stdout).unwrap();
        let values: Vec<&str> = values.lines().collect();
        assert_eq!(values[0], "it's mine");
        assert_eq!(decoded(values[1]), "a CA\n");
        let conf = decoded(values[2]);
        assert!(
            conf.contains("ca-file = \"/etc/certs/cacert\"")
                || conf.contains("ca-file = /etc/certs/cacert"),
            "{conf}"
        );
        let yaml = decoded(values[3]);
        assert!(
            yaml.contains("it's mine") && !yaml.contains("other"),
            "{yaml}"
        );
    }

    #[test]
    fn machines_get_json_and_a_cloud_without_ca_an_empty_line() {
        let document = printed("other", Output::Json).unwrap();
        let document: serde_json::Value = serde_json::from_str(&document).unwrap();
        assert_eq!(document["OPENSTACK_CLOUD"], "other");
        assert_eq!(document["OPENSTACK_CLOUD_CACERT_B64"], "Cg==");
        let conf = decoded(
            document["OPENSTACK_CLOUD_PROVIDER_CONF_B64"]
                .as_str()
                .unwrap(),
        );
        assert!(!conf.contains("ca-file"), "{conf}");
        let error = printed("nobody's", Output::Text).unwrap_err();
        assert!(format!("{error:#}").contains("nobody's"), "{error:#}");
    }
}
