//! cloud.conf and the files named there, read at the start and after every change, and the settings of sessions from
//! these.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use ccm::Settings;
use cloud_conf::{CloudConf, CloudsYaml, Finding, Global, Metadata, Program};
use openstack::session::SessionOptions;
use openstack::{CloudConfig, Timeouts};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::watch::Sender;

use crate::cloud;
use crate::environment::Environment;

/// [`Settings`], and the warnings about the file.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) settings: Settings,
    pub(super) warnings: Vec<Finding>,
}

/// Reads cloud.conf, and the clouds.yaml and the CA named there.
pub(super) fn load(file: &Path, environment: &Environment) -> anyhow::Result<Loaded> {
    let title = || format!("{}", file.display());
    let text = SecretString::from(
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?,
    );
    let parsed = CloudConf::parse(text.expose_secret(), Program::CloudControllerManager);
    let parsed = parsed.with_context(title)?;
    let cloud = find(&parsed.conf.global, environment).with_context(title)?;
    Ok(Loaded {
        settings: Settings {
            conf: parsed.conf,
            cloud,
        },
        warnings: parsed.warnings,
    })
}

pub(crate) fn find(global: &Global, environment: &Environment) -> anyhow::Result<CloudConfig> {
    let yaml = match global.use_clouds {
        true => Some(clouds_yaml(global, environment)?),
        false => None,
    };
    let cloud = global.cloud(yaml.as_ref()).map_err(anyhow::Error::msg)?;
    let Some(bundle) = cloud.cacert.clone() else {
        return Ok(cloud);
    };
    let pem = std::fs::read(&bundle).with_context(|| format!("cannot read ca-file {bundle}"))?;
    Ok(cloud.with_ca(Some(pem)))
}

/// [`SessionOptions`] of a program with a cloud.conf: `request-timeout` limits every request, and `--user-agent` is
/// added to the name of the program.
pub(crate) fn session_options(metadata: &Metadata, user_agent: &[String]) -> SessionOptions {
    let timeout = metadata.request_timeout;
    let product = concat!("ferrostack/", env!("CARGO_PKG_VERSION"));
    let agent: Vec<&str> = std::iter::once(product)
        .chain(user_agent.iter().map(String::as_str))
        .collect();
    SessionOptions {
        timeouts: Timeouts {
            read: timeout,
            list: timeout,
            write: timeout,
        },
        user_agent: Some(agent.join(" ")),
        ..SessionOptions::default()
    }
}

fn clouds_yaml(global: &Global, environment: &Environment) -> anyhow::Result<CloudsYaml> {
    let candidate = match global.get("clouds-file") {
        Some(file) => {
            let clouds = PathBuf::from(file);
            let secure = clouds.with_file_name("secure.yaml");
            (clouds, secure)
        }
        None => cloud::clouds_file(environment)?,
    };
    let (clouds, secure) = candidate;
    let text = std::fs::read_to_string(&clouds)
        .with_context(|| format!("cannot read {}", clouds.display()))?;
    Ok(CloudsYaml {
        clouds: text.into(),
        secure: std::fs::read_to_string(secure).ok().map(SecretString::from),
    })
}

/// Sends new [`Settings`] after every change of the files. Invalid files leave the settings unchanged.
pub(super) async fn watch(
    file: &Path,
    environment: &Environment,
    settings: Sender<Arc<Settings>>,
    every: Duration,
) -> Infallible {
    let mut last_problem = String::new();
    loop {
        tokio::time::sleep(every).await;
        match load(file, environment) {
            Ok(loaded) => {
                last_problem.clear();
                let new = Arc::new(loaded.settings);
                settings.send_if_modified(|known| {
                    let differs = known.cloud != new.cloud
                        || format!("{:?}", known.conf) != format!("{:?}", new.conf);
                    if differs {
                        tracing::info!("{} has changed", file.display());
                        *known = Arc::clone(&new);
                    }
                    differs
                });
            }
            Err(problem) => {
                let problem = format!("{problem:#}");
                if problem != last_problem {
                    tracing::error!("the settings stay as they are: {problem}");
                }
                last_problem = problem;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_changed_password_and_a_changed_key_are_taken_over_and_a_broken_file_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("cloud.conf");
        let write = |password: &str, rest: &str| {
            let text = format!(
                "[Global]\nauth-url=http://k\nuser-id=u\ntenant-id=t\npassword={password}\n{rest}"
            );
            std::fs::write(&file, text).unwrap();
        };
        write("one", "");
        let environment = Environment::default();
        let first = load(&file, &environment).unwrap().settings;
        let (sender, mut receiver) = tokio::sync::watch::channel(Arc::new(first.clone()));
        let watching = watch(&file, &environment, sender, Duration::from_millis(10));
        let changes = async {
            write("two", "");
            receiver.changed().await.unwrap();
            let second = receiver.borrow_and_update().clone();
            assert!(second.cloud != first.cloud);
            write("two", "[LoadBalancer]\nenabled = maybe\n");
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert!(!receiver.has_changed().unwrap());
            write("two", "[LoadBalancer]\nenabled = false\n");
            receiver.changed().await.unwrap();
            assert!(!receiver.borrow().conf.load_balancer.enabled);
        };
        tokio::select! {
            never = watching => match never {},
            () = changes => {}
        }
    }

    #[test]
    fn a_ca_that_cannot_be_read_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("cloud.conf");
        let text = "[Global]\nauth-url=http://k\nuser-id=u\ntenant-id=t\npassword=p\nca-file=/nowhere/ca.pem\n";
        std::fs::write(&file, text).unwrap();
        let error = format!("{:#}", load(&file, &Environment::default()).unwrap_err());
        assert!(
            error.contains("cannot read ca-file /nowhere/ca.pem"),
            "{error}"
        );
    }
}
