//! Images of the releases: names, and the numbers of the packages' users. `images/build` reads the same table.

use std::collections::BTreeMap;
#[cfg(test)]
use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Deserialize;

/// User without rights, for Pods with a user missing in the table. A test looks up each user of each service.
const NOBODY: u32 = 65534;

static TABLE: LazyLock<Table> =
    LazyLock::new(|| serde_json::from_str(include_str!("../images.json")).unwrap_or_default());

#[derive(Debug, Default, Deserialize)]
struct Table {
    users: BTreeMap<String, u32>,
    releases: BTreeMap<String, Image>,
}

#[derive(Debug, Deserialize)]
struct Image {
    image: String,
    /// WSGI script (path) or module (name) of each workload with an API.
    wsgi: BTreeMap<String, String>,
    #[cfg(test)]
    packages: BTreeSet<String>,
    /// File with the distributions from PyPI, for releases installed from PyPI.
    #[cfg(test)]
    lock: Option<String>,
}

/// Image with the packages of every service.
pub(crate) fn of(release: &str) -> &'static str {
    let image = TABLE.releases.get(release);
    image.map(|it| it.image.as_str()).unwrap_or_default()
}

/// WSGI script (path) or module (name) of the API of a workload. A test looks up each workload.
pub(crate) fn wsgi(release: &str, workload: &str) -> &'static str {
    let image = TABLE.releases.get(release);
    let entry = image.and_then(|it| it.wsgi.get(workload));
    entry.map(String::as_str).unwrap_or_default()
}

/// Number of a user, also the number of its group.
pub(crate) fn user(name: &str) -> u32 {
    TABLE.users.get(name).copied().unwrap_or(NOBODY)
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::*;
    use crate::desired::desired;
    use crate::desired::tests::nodes::guests;
    use crate::desired::tests::{cloud, full, held};
    use crate::release::Release;

    #[test]
    fn every_release_has_an_image_with_a_tag_that_is_not_pulled_again() {
        let mut images = BTreeSet::new();
        for release in Release::ALL {
            let image = of(release.name());
            let (_, tag) = image.rsplit_once(':').unwrap();
            assert_ne!(tag, "latest");
            assert!(images.insert(image), "two releases have {image}");
        }
        let names: BTreeSet<&str> = Release::ALL.map(Release::name).into();
        let keys: BTreeSet<&str> = TABLE.releases.keys().map(String::as_str).collect();
        assert_eq!(keys, names);
    }

    /// Programs, and the packages one of which has each.
    const PROGRAMS: [(&str, &[&str]); 50] = [
        ("/bin/bash", &[]),
        ("/bin/sh", &[]),
        ("/usr/bin/keystone-wsgi-public", &["keystone"]),
        // The module of ours around Octavia's.
        ("balancers", &["octavia"]),
        ("cinder-manage", &["cinder"]),
        ("cinder-scheduler", &["cinder"]),
        ("cinder.wsgi.api", &["cinder"]),
        ("glance.wsgi.api", &["glance"]),
        ("keystone.wsgi.api", &["keystone"]),
        ("neutron.wsgi.api", &["neutron"]),
        ("nova.wsgi.metadata", &["nova"]),
        ("nova.wsgi.osapi_compute", &["nova"]),
        ("openstack_dashboard.wsgi", &["horizon"]),
        ("placement.wsgi.api", &["openstack-placement"]),
        ("/usr/bin/neutron-api", &["neutron-api"]),
        ("/usr/bin/nova-api-wsgi", &["nova-api"]),
        ("/usr/bin/nova-metadata-wsgi", &["nova-api"]),
        ("/usr/bin/placement-api", &["placement-api"]),
        (
            "/usr/lib/rabbitmq/bin/rabbitmq-server",
            &["rabbitmq-server"],
        ),
        (
            "/usr/share/openstack-dashboard/wsgi.py",
            &["openstack-dashboard"],
        ),
        ("glance-api", &["glance-api"]),
        ("glance-manage", &["glance-api", "glance"]),
        ("keystone-manage", &["keystone"]),
        ("mariadb", &["mariadb-client"]),
        ("mariadb-admin", &["mariadb-client"]),
        ("mariadb-install-db", &["mariadb-server-core"]),
        ("mariadbd", &["mariadb-server-core"]),
        ("memcached", &["memcached"]),
        (
            "neutron-db-manage",
            &["neutron-api", "neutron-server", "neutron"],
        ),
        (
            "neutron-ovn-maintenance-worker",
            &["neutron-rpc-server", "neutron"],
        ),
        (
            "neutron-periodic-workers",
            &["neutron-rpc-server", "neutron"],
        ),
        ("neutron-ovn-agent", &["neutron"]),
        ("neutron-rpc-server", &["neutron-rpc-server", "neutron"]),
        ("neutron-server", &["neutron-server"]),
        ("nova-conductor", &["nova-conductor", "nova"]),
        ("nova-manage", &["nova-api", "nova"]),
        ("nova-novncproxy", &["nova-consoleproxy", "nova"]),
        ("nova-scheduler", &["nova-scheduler", "nova"]),
        ("octavia-db-manage", &["octavia"]),
        ("ovn-appctl", &["ovn-central"]),
        ("ovn-controller", &["ovn-host"]),
        ("ovn-northd", &["ovn-central"]),
        ("ovs-appctl", &["openvswitch-common"]),
        ("ovsdb-client", &["openvswitch-common"]),
        ("ovsdb-server", &["openvswitch-common"]),
        (
            "placement-manage",
            &["placement-api", "openstack-placement"],
        ),
        ("python3", &["python3-nova", "python3"]),
        ("sleep", &[]),
        ("uwsgi", &["uwsgi-core"]),
        ("virsh", &["libvirt-clients"]),
    ];

    /// What a text in an object needs of the image.
    const LIBRARIES: [(Release, &str, &str); 34] = [
        (Release::Zed, "mysql+pymysql://", "python3-pymysql"),
        (Release::Zed, "dogpile.cache.memcached", "python3-memcache"),
        (
            Release::Zed,
            "\"--plugin\",\"python3\"",
            "uwsgi-plugin-python3",
        ),
        (Release::Epoxy, "mysql+pymysql://", "python3-pymysql"),
        (
            Release::Epoxy,
            "dogpile.cache.memcached",
            "python3-memcache",
        ),
        (
            Release::Epoxy,
            "\"--plugin\",\"python3\"",
            "uwsgi-plugin-python3",
        ),
        (Release::Zed, "import nova.cmd.compute", "python3-nova"),
        (
            Release::Zed,
            "from nova.virt import fake",
            "python3-fixtures",
        ),
        (Release::Zed, "from keystoneauth1", "python3-keystoneauth1"),
        (Release::Zed, "from ovs.db", "python3-openvswitch"),
        (Release::Epoxy, "import nova.cmd.compute", "python3-nova"),
        (
            Release::Epoxy,
            "from nova.virt import fake",
            "python3-fixtures",
        ),
        (
            Release::Epoxy,
            "from keystoneauth1",
            "python3-keystoneauth1",
        ),
        (Release::Epoxy, "from ovs.db", "python3-openvswitch"),
        (
            Release::Zed,
            "backends.memcached.MemcachedCache",
            "python3-memcache",
        ),
        (
            Release::Epoxy,
            "backends.memcached.PyMemcacheCache",
            "python3-pymemcache",
        ),
        (Release::Zed, "nginx -e stderr", "nginx"),
        (Release::Epoxy, "nginx -e stderr", "nginx"),
        (Release::Zed, "/usr/share/novnc", "novnc"),
        (Release::Epoxy, "/usr/share/novnc", "novnc"),
        // Since 3.3 the Python library of Open vSwitch resolves names by it alone.
        (
            Release::Epoxy,
            "ovn_nb_connection = tcp:ovn-nb",
            "python3-unbound",
        ),
        (
            Release::Epoxy,
            "ovn_sb_connection = tcp:ovn-sb",
            "python3-unbound",
        ),
        (Release::Gazpacho, "mysql+pymysql://", "pymysql"),
        (
            Release::Gazpacho,
            "dogpile.cache.memcached",
            "python-memcached",
        ),
        (
            Release::Gazpacho,
            "\"--plugin\",\"python3\"",
            "uwsgi-plugin-python3",
        ),
        (Release::Gazpacho, "import nova.cmd.compute", "nova"),
        (Release::Gazpacho, "from nova.virt import fake", "fixtures"),
        (Release::Gazpacho, "from keystoneauth1", "keystoneauth1"),
        (Release::Gazpacho, "from ovs.db", "ovs"),
        (
            Release::Gazpacho,
            "backends.memcached.PyMemcacheCache",
            "pymemcache",
        ),
        (Release::Gazpacho, "nginx -e stderr", "nginx"),
        (Release::Gazpacho, "/usr/share/novnc", "novnc"),
        (
            Release::Gazpacho,
            "ovn_nb_connection = tcp:ovn-nb",
            "python3-unbound",
        ),
        (
            Release::Gazpacho,
            "ovn_sb_connection = tcp:ovn-sb",
            "python3-unbound",
        ),
    ];

    fn has(release: Release, packages: &[&str]) -> bool {
        let image = &TABLE.releases[release.name()];
        let locked = |name: &str| {
            let line = format!("\n{name}==");
            image.lock.is_some() && include_str!("../../../images/2026.1.lock").contains(&line)
        };
        let there = |it: &&str| image.packages.contains(*it) || locked(it);
        packages.is_empty() || packages.iter().any(there)
    }

    #[test]
    fn the_image_has_each_program_and_library_that_pods_use() {
        let specs = Release::ALL.map(|it| (it, full(it)));
        for (release, spec) in specs.into_iter().chain([(Release::Gazpacho, guests())]) {
            let graph = desired(&cloud(&spec), &held());
            let mut texts = String::new();
            for (_, object) in graph.objects() {
                texts += &object.exposed().to_string();
                for (key, value) in object.exposed()["data"].as_object().into_iter().flatten() {
                    let decoded = crate::object::decoded(&object.exposed(), key);
                    texts += decoded
                        .as_ref()
                        .map_or(value.as_str().unwrap(), |it| it.expose());
                }
                let container = &object.public()["spec"]["template"]["spec"]["containers"][0];
                let words = |path: &str| {
                    container
                        .pointer(path)
                        .and_then(Json::as_array)
                        .cloned()
                        .unwrap_or_default()
                };
                let command = words("/command");
                let script = command
                    .iter()
                    .position(|it| it == "--wsgi-file" || it == "--module")
                    .and_then(|at| command.get(at + 1))
                    .map(|it| it.as_str().unwrap().trim_end_matches(":application"));
                let script = script.map(Json::from);
                let probes = [
                    "readinessProbe",
                    "livenessProbe",
                    "startupProbe",
                    "lifecycle/preStop",
                ];
                let asked = probes.map(|it| words(&format!("/{it}/exec/command")));
                let programs = asked
                    .iter()
                    .filter_map(|it| it.first())
                    .chain(command.first())
                    .chain(script.as_ref());
                for program in programs {
                    let row = PROGRAMS.iter().find(|row| program == row.0);
                    let packages = row
                        .unwrap_or_else(|| panic!("{program} is not in the table"))
                        .1;
                    assert!(has(release, packages), "{release}: {program}: {packages:?}");
                }
            }
            let full = spec["compute"]["driver"] == "Fake";
            for (_, text, package) in LIBRARIES.iter().filter(|row| full && row.0 == release) {
                assert!(texts.contains(text), "{release}: nothing has {text}");
                assert!(has(release, &[*package]), "{release}: {text}: {package}");
            }
        }
    }

    #[test]
    fn every_pod_runs_as_a_user_of_the_image_and_no_two_have_a_number() {
        let numbers: BTreeSet<u32> = TABLE.users.values().copied().collect();
        assert_eq!(numbers.len(), TABLE.users.len());
        // Numbers that packages choose, and those of Debian, are lower; the number of nobody is none of ours.
        assert!(
            numbers.iter().all(|it| (1_000..60_000).contains(it)),
            "{numbers:?}"
        );
        for release in Release::ALL {
            let graph = desired(&cloud(&full(release)), &held());
            let mut used = BTreeSet::new();
            for (_, object) in graph.objects() {
                if let Some(user) = object
                    .public()
                    .pointer("/spec/template/spec/securityContext/runAsUser")
                {
                    used.insert(u32::try_from(user.as_u64().unwrap()).unwrap());
                }
            }
            let mut numbers = numbers.clone();
            if !release.has_volumes() {
                numbers.remove(&user("cinder"));
            }
            if !release.has_balancers() {
                numbers.remove(&user("octavia"));
            }
            assert_eq!(used, numbers, "{release}");
        }
    }
}
