use super::*;
use crate::config::Value;
use crate::release::Release;

/// Keystone makes longer ones itself, and takes the hash of a user's password for one when the user is changed.
#[test]
fn keystone_rejects_no_password_for_its_length() {
    for release in Release::ALL {
        let config = configure(Service::Keystone, &Parameters::from_release(release));
        let strict = config.get("DEFAULT", "strict_password_check");
        assert!(strict.is_none(), "{release}");
        let hash = config.get("identity", "password_hash_algorithm");
        assert_eq!(hash.is_some(), release != Release::Zed, "{release}");
    }
}

#[test]
fn no_password_is_in_the_public_file_and_each_is_in_the_secret_one() {
    for release in Release::ALL {
        for service in Service::ALL {
            let config = configure(service, &Parameters::from_release(release));
            let secret = config.secret(|account| format!("canary-{account}"));
            let public = config.public();
            assert!(
                !public.contains("canary")
                    && !public.lines().any(|line| line.starts_with("connection =")),
                "{service}"
            );
            let secrets = config
                .all()
                .filter(|(_, _, it)| it.value.is_secret())
                .count();
            assert_eq!(
                secret.matches("canary-").count(),
                secrets,
                "{service}\n{secret}"
            );
            assert!(secrets >= 1, "{service}");
        }
    }
}

#[test]
fn a_dollar_in_a_password_does_not_refer_to_an_option() {
    let config = configure(Service::Placement, &Parameters::from_release(Release::Zed));
    let secret = config.secret(|_| "a$b".to_owned());
    assert!(secret.contains("password = a$$b\n"), "{secret}");
}

#[test]
fn the_same_parameters_give_the_same_bytes_and_sections_in_order() {
    let parameters = Parameters::from_release(Release::Zed);
    for service in Service::ALL {
        let text = configure(service, &parameters).public();
        assert_eq!(text, configure(service, &parameters).public());
        let sections: Vec<&str> = text.lines().filter(|line| line.starts_with('[')).collect();
        assert!(sections.is_sorted(), "{sections:?}");
    }
}

#[test]
fn what_the_user_sets_replaces_a_default() {
    let document = serde_json::json!({"release": "zed",
        "services": {"neutron": {"config": {"DEFAULT": {"service_plugins": ["ovn-router"]}}}}});
    let (parameters, _) = Parameters::read(&document).unwrap();
    let config = configure(Service::Neutron, &parameters);
    let setting = config.get("DEFAULT", "service_plugins").unwrap();
    assert_eq!(setting.value, Value::List(vec!["ovn-router".to_owned()]));
    assert_eq!(setting.source, Source::User);
}

#[test]
fn a_secret_among_the_users_options_is_in_the_secret_file() {
    let document = serde_json::json!({"release": "zed",
        "services": {"nova": {"config": {"cache": {"backend_argument": ["password:canary", "url:x"]}}}}});
    let (parameters, _) = Parameters::read(&document).unwrap();
    let config = configure(Service::Nova, &parameters);
    assert!(!config.public().contains("canary"));
    let secret = config.secret(|_| String::new());
    assert!(
        secret.contains("[cache]\nbackend_argument = password:canary\nbackend_argument = url:x\n"),
        "{secret}"
    );
    let setting = config.get("cache", "backend_argument").unwrap();
    assert_eq!(setting.value.masked(), "********");
}

/// In uWSGI a service reads the directory of its project's name alone, and no script of a release from PyPI is there.
#[test]
fn the_apis_of_2026_1_are_modules_and_glance_reads_its_passwords() {
    let release = Release::Gazpacho;
    let spec = serde_json::json!({"release": release.name()});
    let graph = crate::desired::desired(
        &crate::desired::tests::cloud(&spec),
        &crate::desired::tests::held(),
    );
    let mut modules = Vec::new();
    for (_, object) in graph.objects() {
        let container = &object.public()["spec"]["template"]["spec"]["containers"][0];
        let words = container["command"].as_array().into_iter().flatten();
        let words: Vec<&str> = words.filter_map(serde_json::Value::as_str).collect();
        assert!(!words.contains(&"--wsgi-file"), "{words:?}");
        if let Some(at) = words.iter().position(|it| *it == "--module") {
            assert!(words.contains(&"--virtualenv"), "{words:?}");
            modules.push(words[at + 1]);
        }
        let secret = container["volumeMounts"].as_array().into_iter().flatten();
        let glance = secret.filter(|it| it["name"] == "glance-secret");
        for mount in glance {
            assert_eq!(
                mount["mountPath"],
                "/etc/glance/glance.conf.d/50-secret.conf"
            );
        }
    }
    modules.sort_unstable();
    let expected = [
        "glance.wsgi.api:application",
        "keystone.wsgi.api:application",
        "neutron.wsgi.api:application",
        "nova.wsgi.metadata:application",
        "nova.wsgi.osapi_compute:application",
        "openstack_dashboard.wsgi:application",
        "placement.wsgi.api:application",
    ];
    assert_eq!(modules, expected);
}

/// Nova 33 sleeps 160 s at each end unless it is told otherwise.
#[test]
fn the_programs_of_nova_end_within_the_grace_of_their_pods() {
    let config = configure(Service::Nova, &Parameters::from_release(Release::Gazpacho));
    let seconds = |name| -> u32 {
        let setting = config.get("DEFAULT", name).unwrap();
        let Value::Text(text) = &setting.value else {
            panic!("{name} is no text");
        };
        text.parse().unwrap()
    };
    let (managers, service) = (
        seconds("manager_shutdown_timeout"),
        seconds("graceful_shutdown_timeout"),
    );
    assert!(managers < service && service < 60, "{managers} {service}");
}
