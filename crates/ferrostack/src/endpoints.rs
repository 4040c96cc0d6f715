//! Addresses chosen at the first start, stored because kubeconfigs and Secrets contain these addresses, and the cloud
//! in use.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

use crate::cli::Up;
use crate::data_dir::{DataDir, OPENSTACK};
use crate::environment::Environment;
use crate::located;
use crate::shell::quoted;

/// The content of `endpoints.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Endpoints {
    /// The address of the management API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) management: Option<SocketAddr>,
    /// The address of the simulated cloud.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cloud: Option<SocketAddr>,
    /// Entry of clouds.yaml of the last start of `up`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) openstack: Option<String>,
    /// The second byte of the simulated cloud's floating IPs, 127.N.0.0/16.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) floating: Option<u8>,
    /// Program that runs the servers of the simulated cloud; simulated guests if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) guest_runner: Option<PathBuf>,
    /// True if the simulated cloud belongs to `openstack up`, behind simulated Pods.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) behind_pods: bool,
}

impl Endpoints {
    pub(crate) fn read(data: &DataDir) -> anyhow::Result<Self> {
        match data.read("endpoints.json")? {
            None => Ok(Self::default()),
            Some(text) => serde_json::from_str(&text)
                .with_context(|| format!("{} is damaged", data.file("endpoints.json").display())),
        }
    }

    /// Rejects another address for the simulated cloud, since the credentials of stored clusters contain the current
    /// one.
    pub(crate) fn check_simulated(&self, asked: Option<SocketAddr>) -> anyhow::Result<()> {
        match (asked, self.cloud) {
            (Some(asked), Some(known)) if asked.port() != 0 && asked != known => bail!(
                "--simulated-listen {asked}: the simulated cloud of this data directory has the address {known}, which its \
                 clusters use; choose another data directory with --data-dir"
            ),
            _ => Ok(()),
        }
    }

    /// Rejects another cloud than the one used before with the data directory, since its clusters are there.
    pub(crate) fn check_cloud(
        &self,
        args: &Up,
        environment: &Environment,
        data: &DataDir,
    ) -> anyhow::Result<()> {
        let path = data.path().display();
        let start = format!(
            "{} up{}",
            environment.program,
            located::data_dir_flag(environment, data.path())
        );
        if args.cloud.is_none() && self.openstack.is_none() {
            return self.check_bodies(args, &path, &start);
        }
        if args.switch_cloud {
            return Ok(());
        }
        match (&args.cloud, &self.openstack) {
            (Some(asked), None) if self.cloud.is_some() => bail!(
                "the data directory {path} was used with a simulated OpenStack, not with cloud `{asked}`: start it with `{start}`, \
                 choose another with --data-dir, or accept the change with --switch-cloud"
            ),
            (Some(asked), Some(before)) if asked != before => bail!(
                "the data directory {path} was used with cloud `{before}`, not with cloud `{asked}`: start it with `{start} \
                 --cloud {before}`, choose another with --data-dir, or create further clusters on `{asked}` with --switch-cloud"
            ),
            (None, Some(before)) => bail!(
                "the data directory {path} was used with cloud `{before}`: start it with `{start} --cloud {before}`, choose \
                 another with --data-dir, or start a simulated OpenStack in it with --switch-cloud"
            ),
            _ => Ok(()),
        }
    }

    /// Rejects simulated guests for servers that are machines, and the other way round: disks and clusters would be
    /// lost.
    fn check_bodies(
        &self,
        args: &Up,
        path: &impl std::fmt::Display,
        start: &str,
    ) -> anyhow::Result<()> {
        match (&args.runner.program.guest_runner, &self.guest_runner) {
            (None, Some(before)) => bail!(
                "the servers of the data directory {path} are machines of a guest runner: start it with `{start} \
                 --guest-runner {}`, or choose another with --data-dir",
                quoted(before)
            ),
            (Some(_), None) if self.cloud.is_some() => bail!(
                "the servers of the data directory {path} are simulated guests, not machines of a guest runner: start it \
                 with `{start}`, or choose another with --data-dir"
            ),
            _ => Ok(()),
        }
    }

    pub(crate) fn write(&self, data: &DataDir) -> anyhow::Result<()> {
        Ok(data.write("endpoints.json", &serde_json::to_string_pretty(self)?)?)
    }
}

/// Entry of clouds.yaml used by the `up` of a data directory; `None` for the simulated cloud.
pub(crate) fn openstack(data: &Path) -> anyhow::Result<Option<String>> {
    Ok(stored(data)?.openstack)
}

/// Addresses of the services of an `up`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Addresses {
    /// Address of the management API.
    pub(crate) management: Option<SocketAddr>,
    /// Address of the simulated cloud, if any.
    pub(crate) simulated: Option<SocketAddr>,
    /// Entry of clouds.yaml, of a real cloud.
    pub(crate) cloud: Option<String>,
}

/// [`Addresses`] in a data directory; none for an unused directory.
pub(crate) fn addresses(data: &Path) -> Addresses {
    let known = stored(data).unwrap_or_default();
    Addresses {
        management: known.management,
        simulated: known.cloud.filter(|_| known.openstack.is_none()),
        cloud: known.openstack,
    }
}

/// The address of the simulated cloud of a data directory.
pub(crate) fn simulated(data: &Path) -> anyhow::Result<Option<SocketAddr>> {
    Ok(stored(data)?.cloud)
}

fn stored(data: &Path) -> anyhow::Result<Endpoints> {
    let file = data.join("endpoints.json");
    let text = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} is damaged", file.display()))
}

/// True for a data directory of `openstack up`.
pub(crate) fn is_of_openstack(data: &Path) -> bool {
    data.join(OPENSTACK).is_dir() || stored(data).is_ok_and(|known| known.behind_pods)
}

/// Command to start `up` on a data directory again, with its former cloud and guest runner.
pub(crate) fn resume(environment: &Environment, data: &Path) -> String {
    let program = &environment.program;
    if is_of_openstack(data) {
        return format!(
            "{program} openstack up{}",
            located::openstack_data_dir_flag(environment, data)
        );
    }
    // A directory without the file has not been used with a cloud.
    let known = stored(data).unwrap_or_default();
    let cloud = known
        .openstack
        .map(|name| format!(" --cloud {}", quoted(Path::new(&name))));
    let runner = known
        .guest_runner
        .map(|program| format!(" --guest-runner {}", quoted(&program)));
    format!(
        "{program} up{}{}{}",
        cloud.unwrap_or_default(),
        runner.unwrap_or_default(),
        located::data_dir_flag(environment, data)
    )
}

/// Listens on the requested address, or else the stored one, or else a free port of 127.0.0.1.
pub(crate) async fn listen(
    what: &str,
    flag: &str,
    asked: Option<SocketAddr>,
    remembered: Option<SocketAddr>,
) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let address = match (asked, remembered) {
        (Some(asked), Some(remembered)) if asked.port() == 0 && asked.ip() == remembered.ip() => {
            remembered
        }
        (Some(asked), _) => asked,
        (None, Some(remembered)) => remembered,
        (None, None) => SocketAddr::from(([127, 0, 0, 1], 0)),
    };
    match TcpListener::bind(address).await {
        Ok(listener) => {
            let address = listener.local_addr()?;
            Ok((listener, address))
        }
        Err(source) if source.kind() == std::io::ErrorKind::AddrInUse => bail!(
            "{address}, the address of {what}, is in use by another program; stop that program{}",
            if asked.is_some() {
                format!(", or choose another address with {flag}")
            } else {
                String::new()
            }
        ),
        Err(source) => Err(source).with_context(|| format!("{what} cannot listen on {address}")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn the_command_to_go_on_with_names_the_cloud_and_the_guest_runner() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path();
        let environment = environment();
        let end = format!("--data-dir {}", data.display());
        assert_eq!(resume(&environment, data), format!("ferrostack up {end}"));
        for (content, expected) in [
            ("{}", format!("ferrostack up {end}")),
            (
                r#"{"openstack": "my cloud"}"#,
                format!("ferrostack up --cloud 'my cloud' {end}"),
            ),
            (
                r#"{"guestRunner": "/opt/a runner"}"#,
                format!("ferrostack up --guest-runner '/opt/a runner' {end}"),
            ),
        ] {
            std::fs::write(data.join("endpoints.json"), content).unwrap();
            assert_eq!(resume(&environment, data), expected);
        }
        let default = Path::new("/home/me/.local/share/ferrostack");
        assert_eq!(resume(&environment, default), "ferrostack up");
        let flag = |data: &str| located::openstack_data_dir_flag(&environment, Path::new(data));
        assert_eq!(flag("/home/me/.local/share/ferrostack-openstack"), "");
        assert_eq!(flag("/other"), " --data-dir /other");
        // A cloud behind Pods is of another command, also when its files are gone.
        let expected = format!("ferrostack openstack up {end}");
        std::fs::write(data.join("endpoints.json"), r#"{"behindPods": true}"#).unwrap();
        assert_eq!(resume(&environment, data), expected);
        std::fs::write(data.join("endpoints.json"), "{}").unwrap();
        std::fs::create_dir(data.join(OPENSTACK)).unwrap();
        assert_eq!(resume(&environment, data), expected);
    }

    fn environment() -> Environment {
        let mut environment = Environment::with(&[("HOME", "/home/me")]);
        environment.program = "ferrostack".to_owned();
        environment
    }

    fn up(args: &[&str]) -> Box<Up> {
        let words = [&["ferrostack", "up"], args].concat();
        match Cli::try_parse_from(words).unwrap().command {
            Command::Up(args) => args,
            _ => panic!("this is `up`"),
        }
    }

    fn used_with(openstack: Option<&str>) -> Endpoints {
        Endpoints {
            cloud: openstack
                .is_none()
                .then(|| SocketAddr::from(([127, 0, 0, 1], 1))),
            openstack: openstack.map(str::to_owned),
            ..Endpoints::default()
        }
    }

    #[test]
    fn a_data_directory_keeps_its_cloud_unless_a_change_is_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let data = DataDir::open(&dir.path().join("data")).unwrap();
        let check = |before: Option<&str>, args: &[&str]| {
            let checked = used_with(before).check_cloud(&up(args), &environment(), &data);
            checked.map_err(|error| error.to_string())
        };
        assert_eq!(check(Some("a"), &["--cloud", "a"]), Ok(()));
        assert_eq!(check(None, &[]), Ok(()));
        assert_eq!(
            check(Some("a"), &["--cloud", "b", "--switch-cloud"]),
            Ok(())
        );

        let path = data.path().display();
        let start = format!("start it with `ferrostack up --data-dir {path} --cloud a`");
        let other = check(Some("a"), &["--cloud", "b"]).unwrap_err();
        for words in [
            "was used with cloud `a`, not with cloud `b`",
            &start,
            "--data-dir",
            "--switch-cloud",
        ] {
            assert!(other.contains(words), "{words}: {other}");
        }
        let simulated = check(Some("a"), &[]).unwrap_err();
        assert!(simulated.contains(&start), "{simulated}");
        let real = check(None, &["--cloud", "b"]).unwrap_err();
        assert!(real.contains("not with cloud `b`"), "{real}");
    }

    #[test]
    fn a_data_directory_keeps_the_kind_of_its_servers() {
        let dir = tempfile::tempdir().unwrap();
        let data = DataDir::open(&dir.path().join("data")).unwrap();
        let check = |before: Option<&str>, args: &[&str]| {
            let endpoints = Endpoints {
                guest_runner: before.map(PathBuf::from),
                ..used_with(None)
            };
            let checked = endpoints.check_cloud(&up(args), &environment(), &data);
            checked.map_err(|error| error.to_string())
        };
        let runner = ["--guest-runner", "/b"];
        assert_eq!(check(Some("/a"), &runner), Ok(()), "it may have moved");
        assert_eq!(check(None, &[]), Ok(()));
        let guests = check(Some("/a"), &[]).unwrap_err();
        assert!(guests.contains("--guest-runner /a"), "{guests}");
        let same_cloud = check(Some("/a"), &["--switch-cloud"]).unwrap_err();
        assert_eq!(same_cloud, guests, "the cloud is the same one");
        let machines = check(None, &runner).unwrap_err();
        assert!(machines.contains("are simulated guests"), "{machines}");
    }
}
