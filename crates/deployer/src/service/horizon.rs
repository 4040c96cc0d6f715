//! Horizon: the dashboard in the browser, without data or an account of its own: users log in at Keystone with theirs.

mod settings;

pub(crate) use self::settings::check;
use self::settings::{KEY, SECRET, SETTINGS, STATIC};
use super::definition::{Address, Callers, Definition, File, Probe, Run, Workload, uwsgi};
use crate::cloud::Cloud;
use crate::held::Credentials;

/// User made by the package.
const USER: &str = "horizon";
/// Host name for the requests of the edge and the kubelet.
const NAME: &str = "horizon";
const PORTS: &[(&str, u16)] = &[("http", 8080)];
/// Port of its Service: without privileges a Pod has none below 1024.
const SERVED: &[(&str, u16)] = &[("http", 80)];

/// [`Definition`] of Horizon.
pub(super) fn definition(cloud: &Cloud, held: &Credentials) -> Definition {
    let mut words = uwsgi(&cloud.parameters, NAME, 8080);
    // The files that were compressed when the image was built.
    words.extend(["--static-map".to_owned(), format!("/static={STATIC}")]);
    let key = held.password(KEY);
    Definition {
        name: NAME,
        addresses: vec![Address {
            name: NAME,
            workload: NAME,
            ports: SERVED,
            replicas: false,
            callers: Callers::Anyone,
        }],
        workloads: vec![Workload {
            name: NAME,
            stateful: None,
            run: Run {
                command: words,
                user: USER,
                files: vec![
                    File::public(NAME, SETTINGS, settings::public(&cloud.parameters)),
                    File::secret("horizon-secret", SECRET, settings::secret(&key)),
                ],
                // Images that users upload pass through.
                scratch: vec!["/tmp"],
                ..Run::default()
            },
            ports: PORTS,
            // The page on which users log in: templates, static files and settings are good.
            ready: Probe::Page("http", "/auth/login/", NAME),
            alive: Some(Probe::Tcp("http")),
            // Without them nobody logs in.
            needs: vec!["keystone-api", "memcached"],
        }],
        ..Definition::default()
    }
}

#[cfg(test)]
mod tests;
