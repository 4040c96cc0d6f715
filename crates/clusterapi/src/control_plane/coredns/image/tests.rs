use serde_json::{Value, json};

use super::*;

const OFFICIAL: &str = "registry.k8s.io/coredns/coredns:v1.12.1";

fn text(current: &str, configuration: &Value, version: &str) -> Option<String> {
    let configuration = serde_json::from_value(configuration.clone()).unwrap();
    let version = version.parse().unwrap();
    let wanted = wanted(current, &configuration, &version).unwrap();
    wanted.map(|(from, to)| {
        assert_eq!(from.text, current);
        to.text
    })
}

#[test]
fn the_image_follows_the_configuration_and_the_version() {
    let both = json!({"dns": {"imageRepository": "dns:5000/a", "imageTag": "v1.13.0"}});
    for (current, configuration, version, expected) in [
        (OFFICIAL, json!({}), "v1.34.1", OFFICIAL),
        (
            OFFICIAL,
            json!({}),
            "v1.35.0",
            "registry.k8s.io/coredns/coredns:v1.13.1",
        ),
        // Never an older one, and none of an unknown version.
        (OFFICIAL, json!({}), "v1.33.0", OFFICIAL),
        (OFFICIAL, json!({}), "v1.99.0", OFFICIAL),
        (OFFICIAL, both, "v1.34.1", "dns:5000/a/coredns:v1.13.0"),
        (
            OFFICIAL,
            json!({"dns": {"imageTag": "v1.11.1"}}),
            "v1.34.1",
            "registry.k8s.io/coredns/coredns:v1.11.1",
        ),
        (
            OFFICIAL,
            json!({"imageRepository": "mirror/k8s"}),
            "v1.34.1",
            "mirror/k8s/coredns:v1.12.1",
        ),
        (
            OFFICIAL,
            json!({"imageRepository": "registry.k8s.io"}),
            "v1.34.1",
            OFFICIAL,
        ),
        // A tag with a suffix may have no successor.
        (
            "x/coredns:v1.9.3-vendor.1",
            json!({}),
            "v1.35.0",
            "x/coredns:v1.9.3-vendor.1",
        ),
        ("coredns:1.9.3", json!({}), "v1.28.0", "coredns:v1.10.1"),
    ] {
        let found = text(current, &configuration, version);
        assert_eq!(
            found.as_deref(),
            Some(expected),
            "{current} {configuration} {version}"
        );
    }
    for current in [
        "registry.k8s.io/coredns/coredns@sha256:00",
        "registry:5000/coredns",
    ] {
        assert_eq!(text(current, &json!({}), "v1.35.0"), None, "{current}");
    }
}

#[test]
fn a_tag_without_a_version_is_an_error() {
    for (tag, expected) in [
        ("v1.12.1", Some((1, 12, 1))),
        ("1.12.1", Some((1, 12, 1))),
        ("v1.12.1-eksbuild.2", Some((1, 12, 1))),
        ("v1.12.1_vmware.1", Some((1, 12, 1))),
        ("latest", None),
        ("v1.12", None),
        ("v1.12.1.4", None),
        ("", None),
    ] {
        assert_eq!(release(tag).ok(), expected, "{tag}");
    }
}
