use serde_json::json;

use super::*;

#[test]
fn the_spec_alone_and_the_object_are_the_same_file() {
    let spec = json!({"release": "2025.1", "services": {"nova": {"config": {"DEFAULT": {"debug": true}}}}});
    let object = json!({"apiVersion": "ferrostack.dev/v1alpha1", "kind": "OpenStack",
        "metadata": {"name": "cloud"}, "spec": spec});
    let (alone, prefix) = Parameters::read(&spec).unwrap();
    assert_eq!(prefix, "");
    let (whole, prefix) = Parameters::read(&object).unwrap();
    assert_eq!(prefix, "spec");
    assert_eq!(alone, whole);
    assert_eq!(alone.region, "RegionOne");
    let smallest = Parameters::read(&json!({"release": "zed"})).unwrap().0;
    assert_eq!(smallest, Parameters::of(Release::Zed));
}

#[test]
fn what_is_wrong_is_named_with_its_field() {
    for (document, message) in [
        (json!({}), "missing field `release`"),
        (
            json!({"release": "yoga"}),
            "release: there is no release `yoga` here; there are: zed, 2025.1",
        ),
        (
            json!({"release": 2025.1}),
            "release: 2025.1 is a number; write it in quotes: \"2025.1\"",
        ),
        (
            json!({"release": "zed", "network": {"mtu": 9}}),
            "network.mtu: 9 is not from 1280 to 65535",
        ),
        (
            json!({"release": "zed", "region": "a\n[x]"}),
            "region: it has to be 1 to 64 letters, digits, `.`, `-` or `_`",
        ),
        (
            json!({"release": "zed", "network": {"physical": [{"name": "a"}, {"name": "b", "vlans": "1:5000"}]}}),
            "network.physical[1].vlans: it has to be two numbers from 1 to 4094, such as 100:199",
        ),
        (
            json!({"release": "zed", "replicas": 3}),
            "replicas: this field is not built yet",
        ),
        (
            json!({"release": "zed", "services": {"searchlight": {}}}),
            "services.searchlight: the project was retired in 2021",
        ),
        (
            json!({"release": "zed", "regoin": "x"}),
            "regoin: unknown field `regoin`, expected one of `release`, `region`, `network`, `services`, `paused`",
        ),
        (
            json!({"apiVersion": "v1", "kind": "OpenStack"}),
            "apiVersion: it has to be ferrostack.dev/v1alpha1",
        ),
        (
            json!({"apiVersion": "ferrostack.dev/v1alpha1", "kind": "OpenStack", "spec": {"release": "zed", "replicas": 1}}),
            "spec.replicas: this field is not built yet",
        ),
        (
            json!({"release": "zed", "services": {"nova": {"config": {"DEFAULT": 1}}}}),
            "services.nova.config.DEFAULT: invalid type: integer `1`, expected a map",
        ),
    ] {
        let error = Parameters::read(&document).unwrap_err();
        assert_eq!(error.to_string(), message, "{document}");
    }
}
