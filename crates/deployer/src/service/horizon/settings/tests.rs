use serde_json::json;

use super::*;

fn parameters(spec: &Json) -> Parameters {
    Parameters::read(spec).unwrap().0
}

fn with(config: &Json) -> Parameters {
    parameters(&json!({"release": "2026.1", "services": {"horizon": {"config": config}}}))
}

/// The line of a setting.
fn line(parameters: &Parameters, name: &str) -> Option<String> {
    let begin = format!("{name} = ");
    let text = public(parameters);
    let line = text.lines().find(|it| it.starts_with(&begin))?;
    Some(line.strip_prefix(&begin)?.to_owned())
}

#[test]
fn every_release_has_a_table_and_what_is_fixed_is_a_setting_of_it() {
    for (release, version) in [
        (Release::Zed, "23.0.0"),
        (Release::Epoxy, "25.3.0"),
        (Release::Gazpacho, "25.7.3"),
    ] {
        let table = &TABLES[release as usize];
        assert_eq!(table.version, version);
        assert!(table.settings.len() > 100, "{}", table.settings.len());
        assert_eq!(table.settings["SESSION_TIMEOUT"], Kind::Integer);
        // This one is Django's, and one of them came later.
        let others = ["SECRET_KEY", "OPENSTACK_KEYSTONE_ENDPOINT_TYPE"];
        for (name, _) in FIXED.iter().filter(|it| !others.contains(&it.0)) {
            assert!(table.settings.contains_key(*name), "{release}: {name}");
        }
    }
}

/// The settings of Django that are ours, and in no table of Horizon.
const DJANGO: [&str; 10] = [
    "ALLOWED_HOSTS",
    "CACHES",
    "COMPRESS_OFFLINE",
    "CSRF_COOKIE_SECURE",
    "DEBUG",
    "LOGGING",
    "SECURE_PROXY_SSL_HEADER",
    "SESSION_CACHE_ALIAS",
    "SESSION_COOKIE_SECURE",
    "SESSION_ENGINE",
];

#[test]
fn every_setting_of_ours_is_known_to_the_release_or_to_django() {
    for release in Release::ALL.map(Release::name) {
        let parameters = parameters(&json!({"release": release,
            "exposure": {"mode": "Edge", "host": "192.0.2.7"}}));
        let table = &TABLES[parameters.release as usize];
        for name in ours(&parameters).keys() {
            let is_known = table.settings.contains_key(name) || DJANGO.contains(&name.as_str());
            assert!(is_known, "{release}: {name}");
        }
    }
}

#[test]
fn after_an_upgrade_the_pages_of_the_old_release_are_not_in_the_cache_and_its_sessions_are() {
    let cache = |prefix: &str| {
        format!(
            "{{\"BACKEND\": \"django.core.cache.backends.memcached.PyMemcacheCache\"{prefix}, \"LOCATION\": \"memcached:11211\"}}"
        )
    };
    let old = parameters(&json!({"release": "2025.1"}));
    let both = format!("{{\"default\": {}}}", cache(""));
    assert_eq!(line(&old, "CACHES"), Some(both));
    // Horizon keeps parts of its pages there, whose names belong to the static files of one release.
    let new = with(&json!({}));
    let apart = format!(
        "{{\"default\": {}, \"sessions\": {}}}",
        cache(", \"KEY_PREFIX\": \"2026.1\""),
        cache("")
    );
    assert_eq!(line(&new, "CACHES"), Some(apart));
    assert_eq!(
        line(&new, "SESSION_CACHE_ALIAS").as_deref(),
        Some("\"sessions\"")
    );
}

#[test]
fn each_mistake_is_named_with_what_to_do() {
    for (config, expected) in [
        (
            json!({"SITE_BRANDIN": "x"}),
            "services.horizon.config.SITE_BRANDIN: horizon 2026.1 has no setting SITE_BRANDIN; did you mean SITE_BRANDING?",
        ),
        (
            json!({"MIDDLEWARE": []}),
            "services.horizon.config.MIDDLEWARE: horizon 2026.1 has no setting MIDDLEWARE",
        ),
        (
            json!({"SESSION_TIMEOUT": "1 h"}),
            "services.horizon.config.SESSION_TIMEOUT: it has to be a whole number",
        ),
        (
            json!({"SECRET_KEY": "x"}),
            "services.horizon.config.SECRET_KEY: this setting cannot be set: it is made once, and is in a Secret",
        ),
        (
            json!({"AVAILABLE_THEMES": []}),
            "services.horizon.config.AVAILABLE_THEMES: this setting cannot be set: the static files are made with it when the image is built",
        ),
        (
            json!({"DEBUG": true}),
            "services.horizon.config.DEBUG: this setting cannot be set: pages with errors would show settings and tokens",
        ),
        (
            json!({"ALLOWED_HOSTS": ["*"]}),
            "services.horizon.config.ALLOWED_HOSTS: set exposure instead, from which it is derived",
        ),
    ] {
        let findings: Vec<String> = crate::check(&with(&config))
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(findings, [expected], "{config}");
    }
    let good = json!({"SITE_BRANDING": "Ours", "SESSION_TIMEOUT": 600, "WEBSSO_ENABLED": false,
        "OPENSTACK_NEUTRON_NETWORK": {"enable_router": true}, "LOGGING": {"version": 1}});
    assert!(check(&with(&good)).is_empty());
}

#[test]
fn values_are_written_as_python_writes_them() {
    let parameters = with(
        &json!({"SITE_BRANDING": "A \"B\"\n\u{e9}", "SESSION_REFRESH": false,
        "LOGIN_URL": null, "SESSION_TIMEOUT": 600,
        "FILTER_DATA_FIRST": {"admin.images": true, "x": [1, null, {}]}}),
    );
    for (name, expected) in [
        ("SITE_BRANDING", "\"A \\\"B\\\"\\n\u{e9}\""),
        ("SESSION_REFRESH", "False"),
        ("LOGIN_URL", "None"),
        ("SESSION_TIMEOUT", "600"),
        (
            "FILTER_DATA_FIRST",
            "{\"admin.images\": True, \"x\": [1, None, {}]}",
        ),
    ] {
        assert_eq!(line(&parameters, name).as_deref(), Some(expected));
    }
    assert_eq!(secret(&Password::new("a-b")), "SECRET_KEY = \"a-b\"\n");
}

#[test]
fn behind_the_edge_cookies_are_for_tls_and_only_known_hosts_are_answered() {
    let inside = parameters(&json!({"release": "2026.1"}));
    assert_eq!(
        line(&inside, "ALLOWED_HOSTS").unwrap(),
        "[\"horizon\", \"localhost\"]"
    );
    assert_eq!(line(&inside, "SESSION_COOKIE_SECURE"), None);
    let edge = parameters(&json!({"release": "2026.1",
        "exposure": {"mode": "Edge", "host": "cloud.test", "addresses": ["192.0.2.7"]}}));
    for (name, expected) in [
        (
            "ALLOWED_HOSTS",
            "[\"horizon\", \"localhost\", \"cloud.test\", \"192.0.2.7\"]",
        ),
        (
            "SECURE_PROXY_SSL_HEADER",
            "[\"HTTP_X_FORWARDED_PROTO\", \"https\"]",
        ),
        ("CSRF_COOKIE_SECURE", "True"),
        ("SESSION_COOKIE_SECURE", "True"),
        ("OPENSTACK_KEYSTONE_URL", "\"http://keystone:5000/v3\""),
    ] {
        assert_eq!(line(&edge, name).as_deref(), Some(expected), "{name}");
    }
}
