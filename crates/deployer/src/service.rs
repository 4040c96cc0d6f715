//! Services, each a function from the [`Parameters`] to a [`Config`].
//!
//! Addresses are names of Kubernetes Services in the namespace of the cloud.

pub(crate) mod ceph;
mod cinder;
mod connections;
pub(crate) mod definition;
pub(crate) mod edge;
pub(crate) mod fake;
mod glance;
pub(crate) mod horizon;
pub(crate) mod judged;
mod keystone;
mod libvirt;
pub(crate) mod listening;
mod mariadb;
mod mark;
mod memcached;
mod metadata;
mod neutron;
mod nova;
mod octavia;
mod openvswitch;
mod ovn;
mod placement;
mod rabbitmq;
mod readers;
mod sections;
pub(crate) mod stores;

use self::definition::{Definition, File};
use crate::cloud::Cloud;
use crate::config::{Config, Source};
use crate::held::{Credentials, halves};
use crate::parameters::Parameters;
use crate::project::Service;
use crate::release::Release;

impl Service {
    /// Directory of the files that the programs of the service read after the main file.
    pub fn directory(self, release: Release) -> String {
        match (self, release) {
            // In uWSGI a service reads the directory of its project's name, and no other.
            (Self::Glance, Release::Gazpacho) => "/etc/glance/glance.conf.d".to_owned(),
            _ => format!("/etc/{self}/{}.d", self.file()),
        }
    }

    /// Configuration [`File`]s for a program of the service, with the options it reads; for all programs if `None`.
    fn files(self, cloud: &Cloud, held: &Credentials, program: Option<&str>) -> Vec<File> {
        let mut config = configure(self, &cloud.parameters);
        match self {
            Self::Neutron => neutron::place(&mut config, &cloud.namespace),
            Self::Octavia => octavia::place(&mut config, &cloud.namespace),
            _ => {}
        }
        for store in halves::STORES {
            let user = held.login(store, self.name()).user;
            config.log_in_as(store, self.name(), &user);
        }
        if let Some(program) = program {
            config.retain(|section, name| readers::reads(self, program, section, name));
        }
        // Each program has files of its own, even where two are the same: what one goes back to is its last one.
        let object = program.unwrap_or(self.name());
        let path = format!("/etc/{self}/{}", self.file());
        let secrets = self.directory(cloud.parameters.release);
        let passwords = config.secret(|account| {
            let password = held.password(&format!("{account}-{self}"));
            password.expose().to_owned()
        });
        vec![
            File::public(object, path.clone(), config.public()),
            File::secret(
                format!("{object}-secret"),
                format!("{secrets}/50-secret.conf"),
                passwords,
            ),
        ]
    }
}

/// [`Definition`]s of the cloud, in the order of the list, and problems that prevent the deployment.
pub(crate) fn definitions(cloud: &Cloud, held: &Credentials) -> (Vec<Definition>, Vec<String>) {
    let mut services = vec![
        keystone::definition(cloud, held),
        glance::definition(cloud, held),
        placement::definition(cloud, held),
        ovn::definition(cloud, held),
        neutron::definition(cloud, held),
        nova::definition(cloud, held),
    ];
    services.extend(octavia::definition(cloud, held));
    services.push(horizon::definition(cloud, held));
    services.extend(cinder::definition(cloud, held));
    services.extend(ceph::definition(cloud, held));
    let databases: Vec<(&str, &str)> = services
        .iter()
        .flat_map(|it| it.databases.iter().map(|database| (it.name, *database)))
        .collect();
    let mut all = vec![
        mariadb::definition(&cloud.parameters, held, &databases),
        rabbitmq::definition(held),
        memcached::definition(),
    ];
    all.append(&mut services);
    let mut problems: Vec<String> = ceph::problem(cloud, held).into_iter().collect();
    if let Some(exposure) = edge::of(&cloud.parameters) {
        problems.extend(held.lacks(exposure));
        match edge::definition(cloud, held, exposure) {
            Ok(edge) => all.push(edge),
            Err(problem) => problems.push(problem),
        }
    }
    (all, problems)
}

/// [`Config`] of a service: options demanded by the cloud's structure, defaults, and above these the user's options
/// accepted by [`check`](crate::check()).
pub fn configure(service: Service, parameters: &Parameters) -> Config {
    let mut config = ours(service, parameters);
    for option in judged::accepted(service, parameters) {
        config.set(&option.section, &option.name, option.value, Source::User);
    }
    config
}

/// [`Config`] without the user's options.
pub(crate) fn ours(service: Service, parameters: &Parameters) -> Config {
    match service {
        Service::Keystone => keystone::configuration(parameters),
        Service::Glance => glance::configuration(parameters),
        Service::Placement => placement::configuration(parameters),
        Service::Nova => nova::configuration(parameters),
        Service::Neutron => neutron::configuration(parameters),
        Service::Cinder => cinder::configuration(parameters),
        Service::Octavia => octavia::configuration(parameters),
    }
}

#[cfg(test)]
mod tests;
