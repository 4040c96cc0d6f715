use super::*;
use crate::config::Value;
use crate::release::Release;

/// Keystone makes longer ones itself, and takes the hash of a user's password for one when the user is changed.
#[test]
fn keystone_rejects_no_password_for_its_length() {
    for release in Release::ALL {
        let config = configure(Service::Keystone, &Parameters::of(release));
        let strict = config.get("DEFAULT", "strict_password_check");
        assert!(strict.is_none(), "{release}");
        let hash = config.get("identity", "password_hash_algorithm");
        assert_eq!(hash.is_some(), release == Release::Epoxy, "{release}");
    }
}

#[test]
fn no_password_is_in_the_public_file_and_each_is_in_the_secret_one() {
    for release in Release::ALL {
        for service in Service::ALL {
            let config = configure(service, &Parameters::of(release));
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
    let config = configure(Service::Placement, &Parameters::of(Release::Zed));
    let secret = config.secret(|_| "a$b".to_owned());
    assert!(secret.contains("password = a$$b\n"), "{secret}");
}

#[test]
fn the_same_parameters_give_the_same_bytes_and_sections_in_order() {
    let parameters = Parameters::of(Release::Zed);
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
