use serde_json::{Value as Json, json};

use super::*;
use crate::config::{Source, Value};
use crate::release::Release;
use crate::service::configure;

fn findings(service: &str, config: Json) -> Vec<String> {
    let document = json!({"release": "zed", "services": {service: {"config": config}}});
    let (parameters, _) = Parameters::read(&document).unwrap();
    check(&parameters)
        .into_iter()
        .filter(|it| it.path != "release")
        .map(|it| {
            format!(
                "{}: {it}",
                if it.severity == Severity::Error {
                    "error"
                } else {
                    "warning"
                }
            )
        })
        .collect()
}

#[test]
fn a_release_without_maintenance_is_told() {
    for release in Release::ALL {
        let found = check(&Parameters::from_release(release));
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        let expected: &[&str] = match release {
            Release::Zed => {
                &["release: zed is out of maintenance since April 2024; 2026.1 is maintained"]
            }
            Release::Epoxy => &[
                "release: 2025.1 is out of maintenance since 2 October 2026; 2026.1 is maintained",
            ],
            Release::Gazpacho => &[],
        };
        assert_eq!(texts, expected);
        assert!(found.iter().all(|it| it.severity == Severity::Warning));
    }
    assert_eq!(Release::DEFAULT.ended(), None);
}

#[test]
fn each_mistake_is_named_with_what_to_do() {
    for (service, config, expected) in [
        (
            "neutron",
            json!({"oslo_messaging_rabbit": {"rabbit_quorum_queues": true}}),
            "error: services.neutron.config.oslo_messaging_rabbit.rabbit_quorum_queues: \
             [oslo_messaging_rabbit] of neutron zed has no option rabbit_quorum_queues; did you mean rabbit_quorum_queue?",
        ),
        (
            "nova",
            json!({"schduler": {"workers": 2}}),
            "error: services.nova.config.schduler.workers: nova zed has no section [schduler]; did you mean [scheduler]?",
        ),
        (
            "nova",
            json!({"DEFAULT": {"max_attempts": 2}}),
            "error: services.nova.config.DEFAULT.max_attempts: [DEFAULT] of nova zed has no option max_attempts; [scheduler] has",
        ),
        (
            "nova",
            json!({"database": {"connection": "mysql://x"}}),
            "error: services.nova.config.database.connection: this option cannot be set: the account is made by the controller",
        ),
        (
            "glance",
            json!({"DEFAULT": {"bind-port": 1234}}),
            "error: services.glance.config.DEFAULT.bind-port: this option cannot be set: \
             its Service leads to one address and port of the program",
        ),
        (
            "nova",
            json!({"DEFAULT": {"osapi_compute_workers": 8}}),
            "error: services.nova.config.DEFAULT.osapi_compute_workers: this option cannot be set: \
             uWSGI starts the processes of this program, which reads no number of them",
        ),
        (
            "neutron",
            json!({"DEFAULT": {"global_physnet_mtu": 9000}}),
            "error: services.neutron.config.DEFAULT.global_physnet_mtu: set network.mtu instead, from which it is derived",
        ),
        (
            "keystone",
            json!({"token": {"expiration": -1}}),
            "error: services.keystone.config.token.expiration: is -1; the lowest value is 0",
        ),
        (
            "nova",
            json!({"DEFAULT": {"quota_cores": 2}, "quota": {"cores": 3}}),
            "error: services.nova.config.quota.cores: \
             services.nova.config.DEFAULT.quota_cores is the same option",
        ),
    ] {
        let all = findings(service, config.clone());
        assert!(all.iter().any(|it| it == expected), "{config}: {all:#?}");
    }
}

#[test]
fn what_works_today_and_not_tomorrow_is_a_warning_and_takes_its_current_name() {
    let document = json!({"release": "zed", "services": {"nova": {"config": {"DEFAULT": {"quota_cores": 2}}}}});
    let (parameters, _) = Parameters::read(&document).unwrap();
    let mut found = check(&parameters);
    found.retain(|it| it.path != "release");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].severity, Severity::Warning);
    assert_eq!(
        found[0].message,
        "this is an earlier name; it is [quota] cores now"
    );
    let config = configure(Service::Nova, &parameters);
    assert_eq!(config.get("quota", "cores").unwrap().source, Source::User);
    assert!(config.public().contains("[quota]\ncores = 2\n"));
}

#[test]
fn every_option_that_we_set_exists_in_each_release_and_has_a_value_that_it_takes() {
    let mut problems = Vec::new();
    for release in Release::ALL {
        let mut document = json!({"release": release.name(), "network": {"physical": [{"name": "public", "vlans": "100:199"}]}});
        if release.has_volumes() {
            document["nodes"] = json!({"compute": {"openstack-compute-node": "enabled"}});
            document["compute"] = json!({"driver": "Libvirt"});
            document["storage"] = json!({
                "ceph": {"monitors": ["192.0.2.1:6789"], "secretName": "ceph"},
                "volumes": {"driver": "Rbd", "pool": "volumes", "backupPool": "backups"},
                "images": {"pool": "images"},
                "guests": {"pool": "guests"},
            });
            document["services"] = json!({"octavia": {"enabled": true}});
        }
        let (parameters, _) = Parameters::read(&document).unwrap();
        for service in Service::ALL {
            let Some(table) = release.table(service) else {
                continue;
            };
            for (section, name, setting) in configure(service, &parameters).all() {
                let json = match &setting.value {
                    Value::Text(text) => json!(text),
                    Value::List(items) | Value::Multi(items) | Value::Given(items) => json!(items),
                    Value::Secret { pattern, .. } => json!(pattern.replace("{}", "password")),
                };
                let problem = match table.find(section, name) {
                    None => "does not exist".to_owned(),
                    Some(found) if found.renamed => format!("is {} now", found.name),
                    Some(found) if found.entry.deprecated => "is deprecated".to_owned(),
                    Some(found) if setting.value.is_secret() && !found.entry.secret => {
                        "is in a Secret and not secret".to_owned()
                    }
                    Some(found) => match found.entry.value(&json) {
                        Ok(_) => continue,
                        Err(problem) => problem,
                    },
                };
                problems.push(format!("{release} {service} [{section}] {name} {problem}"));
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}
