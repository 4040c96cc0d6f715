use serde_json::{Value, json};

use super::*;

fn read(driver: &str, drain: &Value) -> Result<Drain, String> {
    let spec = json!({
        "release": "2026.1",
        "nodes": {"compute": {"compute": "enabled"}},
        "compute": {"driver": driver, "drain": drain},
    });
    let read = Parameters::read(&spec).map_err(|error| error.to_string())?;
    Ok(read.0.compute.unwrap().drain)
}

#[test]
fn a_drain_migrates_four_servers_at_once_within_a_quarter_of_an_hour_unless_it_says_otherwise() {
    let drain = read("Libvirt", &json!({})).unwrap();
    assert_eq!(drain.mode, DrainMode::LiveMigrate);
    assert_eq!((drain.timeout, drain.at_once), (Timeout(900), AtOnce(4)));
    assert!(!drain.evacuate);
    let given = json!({"mode": "Wait", "timeout": "2h", "atOnce": 1, "evacuate": true});
    let drain = read("Libvirt", &given).unwrap();
    assert_eq!(drain.mode, DrainMode::Wait);
    assert_eq!((drain.timeout, drain.at_once), (Timeout(7200), AtOnce(1)));
    assert!(drain.evacuate);
}

#[test]
fn what_no_drain_can_be_is_refused_with_its_field() {
    for (drain, expected) in [
        (
            json!({"mode": "Cold"}),
            "compute.drain.mode: unknown variant `Cold`, expected one of `LiveMigrate`, `Wait`, `Ignore`",
        ),
        (
            json!({"timeout": "25h"}),
            "compute.drain.timeout: 25h is not a time from 1s to 24h, such as 15m",
        ),
        (
            json!({"timeout": "soon"}),
            "compute.drain.timeout: soon is not a time from 1s to 24h, such as 15m",
        ),
        (
            json!({"atOnce": 0}),
            "compute.drain.atOnce: 0 is not from 1 to 32",
        ),
        (
            json!({"force": true}),
            "compute.drain.force: unknown field `force`, expected one of `mode`, `timeout`, `atOnce`, `evacuate`",
        ),
    ] {
        assert_eq!(read("Libvirt", &drain).unwrap_err(), expected);
    }
    let error = read("Fake", &json!({"mode": "Wait"})).unwrap_err();
    assert!(
        error.starts_with("compute.drain: it is for the driver Libvirt"),
        "{error}"
    );
}

#[test]
fn only_hypervisors_with_guests_that_are_not_ignored_are_guarded() {
    let parameters = |driver: &str, mode: &str| {
        let mut spec = json!({
            "release": "2026.1", "nodes": {"compute": {"compute": "enabled"}},
            "compute": {"driver": driver},
        });
        if driver == "Libvirt" {
            spec["compute"]["drain"] = json!({"mode": mode});
        }
        Parameters::read(&spec).unwrap().0
    };
    assert!(parameters("Libvirt", "LiveMigrate").drain().is_some());
    assert!(parameters("Libvirt", "Wait").drain().is_some());
    assert!(parameters("Libvirt", "Ignore").drain().is_none());
    assert!(parameters("Fake", "").drain().is_none());
}
