use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::config::Value;
use crate::project::Service;
use crate::release::Release;

fn table() -> Table {
    Table::parse(
        r#"{"service": "glance", "version": "1", "sections": {
            "DEFAULT": {
                "debug": {"type": "boolean", "default": false, "mutable": true},
                "workers": {"type": "integer", "min": 1, "max": 64},
                "ratio": {"type": "float", "min": 0.0},
                "format": {"type": "string", "choices": ["iso9660", "vfat"]},
                "hosts": {"type": "list"},
                "driver": {"type": "multi", "earlier": [["", "notifier"], ["old", "driver"]]},
                "port": {"type": "port", "min": 0, "max": 65535},
                "my_ip": {"type": "address"},
                "limits": {"type": "dict"}
            },
            "file": {"filesystem_store_datadir": {"type": "string"}},
            "oslo_messaging_rabbit": {"rabbit_quorum_queue": {"type": "boolean"}}
        }}"#,
    )
    .unwrap()
}

#[test]
fn an_option_is_found_by_each_of_its_names() {
    let table = table();
    for (section, name, current, renamed) in [
        ("DEFAULT", "debug", "debug", false),
        ("DEFAULT", "my-ip", "my_ip", false),
        ("DEFAULT", "notifier", "driver", true),
        ("old", "driver", "driver", true),
        (
            "os_glance_tasks_store",
            "filesystem_store_datadir",
            "filesystem_store_datadir",
            false,
        ),
    ] {
        let found = table.find(section, name).unwrap();
        assert_eq!(
            (found.name, found.renamed),
            (current, renamed),
            "{section} {name}"
        );
    }
    for (section, name) in [("DEFAULT", "debugg"), ("file", "debug"), ("none", "debug")] {
        assert_eq!(table.find(section, name), None, "{section} {name}");
    }
}

#[test]
fn the_nearest_name_is_found_and_none_for_what_is_far_from_all() {
    let table = table();
    let near = |name| table.nearest_option("oslo_messaging_rabbit", name);
    assert_eq!(near("rabbit_quorum_queues"), Some("rabbit_quorum_queue"));
    assert_eq!(near("heartbeat"), None);
    assert_eq!(table.nearest_section("DEFALUT"), Some("DEFAULT"));
    assert_eq!(table.nearest_section("vnc"), None);
}

#[test]
fn values_are_judged_by_type_limits_and_choices() {
    let table = table();
    let value = |name: &str, json: Json| table.find("DEFAULT", name).unwrap().entry.value(&json);
    let text = |text: &str| Ok(Value::text(text));
    for (name, json, expected) in [
        ("debug", json!(true), text("true")),
        ("debug", json!("Off"), text("false")),
        ("workers", json!(3), text("3")),
        ("workers", json!("3"), text("3")),
        ("workers", json!("$other"), text("$other")),
        ("ratio", json!(1), text("1")),
        ("format", json!("VFAT"), text("VFAT")),
        (
            "hosts",
            json!(["a", 1]),
            Ok(Value::List(vec!["a".into(), "1".into()])),
        ),
        ("hosts", json!("a,b"), text("a,b")),
        (
            "driver",
            json!("noop"),
            Ok(Value::Multi(vec!["noop".into()])),
        ),
        (
            "limits",
            json!({"a": 1}),
            Ok(Value::List(vec!["a:1".into()])),
        ),
        ("my_ip", json!("::1"), text("::1")),
    ] {
        assert_eq!(value(name, json.clone()), expected, "{name} {json}");
    }
    for (name, json, problem) in [
        (
            "debug",
            json!("maybe"),
            "is `maybe`; it takes true or false",
        ),
        ("workers", json!(0), "is 0; the lowest value is 1"),
        ("workers", json!(65), "is 65; the highest value is 64"),
        (
            "workers",
            json!(1.5),
            "is `1.5`; it takes an integer from 1 to 64",
        ),
        (
            "workers",
            json!([1]),
            "is a list; it takes an integer from 1 to 64",
        ),
        ("ratio", json!("x"), "is `x`; it takes a number, at least 0"),
        (
            "format",
            json!("ext4"),
            "is `ext4`; it takes one of: iso9660, vfat",
        ),
        (
            "port",
            json!(70_000),
            "is `70000`; it takes a port from 0 to 65535",
        ),
        ("my_ip", json!("host"), "is `host`; it takes an IP address"),
        ("hosts", json!([["a"]]), "holds a list or a map in a list"),
        (
            "format",
            json!("a\n[x]\nb=c"),
            "holds a line break or another control character",
        ),
        (
            "debug",
            json!(null),
            "has no value; remove the line to get the default",
        ),
        ("debug", json!({"a": 1}), "is a map; it takes true or false"),
    ] {
        assert_eq!(
            value(name, json.clone()),
            Err(problem.to_owned()),
            "{name} {json}"
        );
    }
}

#[test]
fn values_are_judged_by_pattern_scheme_and_length_and_some_lists_get_brackets() {
    let table = Release::Epoxy.table(Service::Nova).unwrap();
    let entry = |section, name| table.find(section, name).unwrap().entry;
    let period = entry("DEFAULT", "instance_usage_audit_period");
    assert_eq!(
        period.value(&json!("day@3")),
        Ok(Value::Text("day@3".to_owned()))
    );
    assert_eq!(
        period.value(&json!("fortnight")),
        Err("is `fortnight`; it does not match ^(hour|month|day|year)(@([0-9]+))?$".to_owned())
    );
    let proxy = entry("vmware", "serial_port_proxy_uri");
    assert!(proxy.value(&json!("telnets://proxy:8000")).is_ok());
    assert_eq!(
        proxy.value(&json!("https://proxy:8000")),
        Err("is `https://proxy:8000`; it takes a URI of telnet, telnets".to_owned())
    );
    let table = Release::Epoxy.table(Service::Glance).unwrap();
    let methods = table.find("DEFAULT", "enabled_import_methods").unwrap();
    let text = |text: &str| Ok(Value::Text(text.to_owned()));
    let given = json!(["glance-direct", "web-download"]);
    let entry = methods.entry;
    assert_eq!(entry.value(&given), text("[glance-direct,web-download]"));
    for given in ["web-download", "[web-download]"] {
        assert_eq!(entry.value(&json!(given)), text("[web-download]"));
    }
    let table = Release::Epoxy.table(Service::Neutron).unwrap();
    let zone = table.find("agent", "availability_zone").unwrap().entry;
    assert!(zone.value(&json!("z".repeat(255))).is_ok());
    assert_eq!(
        zone.value(&json!("z".repeat(256))),
        Err("has more than 255 characters".to_owned())
    );
}

#[test]
fn every_pattern_of_a_table_compiles() {
    let mut count = 0;
    for release in Release::ALL {
        for service in Service::ALL {
            let table = release.table(service);
            let sections = table.iter().flat_map(|table| table.sections.values());
            for (name, entry) in sections.flatten() {
                if let Some(pattern) = &entry.pattern {
                    assert!(regex::Regex::new(pattern).is_ok(), "{name}: {pattern}");
                    count += 1;
                }
            }
        }
    }
    assert!(count > 6, "{count}");
}

fn any_json() -> impl Strategy<Value = Json> {
    let text = prop_oneof![
        any::<String>(),
        "[a-z]{0,4}(\n|\r|\t| |=|\\[|\\]|#|;|\u{2028}|\u{85}|\u{0}){0,3}[a-z\\[\\]=]{0,6}",
        Just("a\n[database]\nconnection = x".to_owned()),
        prop::sample::select(vec!["true", "1", "80", "3.5", "http://a:1", "10.0.0.1"])
            .prop_map(str::to_owned),
    ];
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        text.clone().prop_map(Json::from),
    ];
    leaf.prop_recursive(2, 8, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::btree_map(text.clone(), inner, 0..4)
                .prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Every option of a service in turn takes the value, or rejects it.
    #[test]
    fn no_value_panics_and_none_that_is_accepted_leaves_its_line(json in any_json(), seed in any::<prop::sample::Index>()) {
        for release in Release::ALL {
            for service in Service::ALL {
                let Some(table) = release.table(service) else {
                    continue;
                };
                let options: Vec<_> = table.all().collect();
                let found = seed.get(&options);
                let Ok(value) = found.entry.value(&json) else {
                    continue;
                };
                let lines = match &value {
                    Value::Multi(items) => items.len(),
                    _ => 1,
                };
                let mut config = crate::config::Config::default();
                config.set("section", "option", value, crate::config::Source::User);
                let text = config.public();
                let rendered: Vec<&str> = text.lines().collect();
                let expected = if lines == 0 { 1 } else { lines + 1 };
                prop_assert_eq!(rendered.len(), expected, "{}", text);
                prop_assert_eq!(rendered[0], "[section]");
                prop_assert!(rendered[1..].iter().all(|line| line.starts_with("option = ")), "{}", text);
                let breaks = |it: char| it.is_control() && it != '\t' && it != '\n' || it == '\u{2028}';
                prop_assert!(!text.contains(breaks), "{}", text);
            }
        }
    }

    /// The other texts that get into the files.
    #[test]
    fn no_text_of_the_parameters_leaves_its_line(region in any::<String>(), name in any::<String>(), vlans in any::<String>()) {
        for document in [
            serde_json::json!({"release": "zed", "region": region}),
            serde_json::json!({"release": "zed", "network": {"physical": [{"name": name}]}}),
            serde_json::json!({"release": "zed", "network": {"physical": [{"name": "a", "vlans": vlans}]}}),
        ] {
            let Ok((parameters, _)) = crate::parameters::Parameters::read(&document) else {
                continue;
            };
            let lines = |parameters: &crate::parameters::Parameters| -> Vec<usize> {
                Service::ALL.map(|it| crate::service::configure(it, parameters).public().lines().count()).to_vec()
            };
            let plain = crate::parameters::Parameters::from_release(Release::Zed);
            prop_assert_eq!(lines(&parameters), lines(&plain));
        }
    }
}
