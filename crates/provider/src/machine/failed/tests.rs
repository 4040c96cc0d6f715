use openstack::compute::Fault;
use serde_json::json;

use super::*;

fn machine(annotations: serde_json::Value, provider_id: Option<&str>) -> OpenStackMachine {
    serde_json::from_value(
        json!({"metadata": {"name": "m", "annotations": annotations},
        "spec": {"flavor": {"id": "f"}, "image": {"id": "i"}, "providerID": provider_id}}),
    )
    .unwrap()
}

fn place(zone: Option<&str>, flavor: Option<&str>) -> Placement {
    Placement {
        zone: zone.map(str::to_owned),
        zone_field: match zone {
            None | Some("a") => "failureDomain",
            Some(_) => RETRY_ZONES_ANNOTATION,
        },
        flavor: flavor.map(str::to_owned),
    }
}

#[test]
fn all_zones_come_first_and_then_the_same_with_the_next_flavor_and_it_begins_again() {
    let lists = json!({RETRY_ZONES_ANNOTATION: "b, a,,c", RETRY_FLAVORS_ANNOTATION: "large"});
    let machine = machine(lists, None);
    let at = |place| {
        let failed = Failed {
            place,
            ..Failed::default()
        };
        Placement::new(&machine, Some("a".to_owned()), &failed)
    };
    let expected = [
        place(Some("a"), None),
        place(Some("b"), None),
        place(Some("c"), None),
        place(Some("a"), Some("large")),
        place(Some("b"), Some("large")),
        place(Some("c"), Some("large")),
        place(Some("a"), None),
    ];
    assert_eq!([0, 1, 2, 3, 4, 5, 6].map(at), expected);
}

#[test]
fn without_lists_the_place_is_that_of_the_machine() {
    let failed = Failed {
        place: 7,
        ..Failed::default()
    };
    let machine = machine(json!({}), None);
    assert_eq!(Placement::new(&machine, None, &failed), place(None, None));
}

#[test]
fn after_a_refusal_for_want_of_quota_the_next_flavor_is_in_the_same_zone() {
    let lists = json!({RETRY_ZONES_ANNOTATION: "a,b", RETRY_FLAVORS_ANNOTATION: "large"});
    let listed = machine(lists, None);
    let zone = Some("a".to_owned());
    let refused = Failed::refused(&listed, zone.clone()).unwrap();
    assert_eq!(refused.failed, 0);
    let next = Placement::new(&listed, zone, &refused);
    assert_eq!(next, place(Some("a"), Some("large")));
    assert_eq!(next.flavor_field(), RETRY_FLAVORS_ANNOTATION);
    let without = machine(json!({RETRY_ZONES_ANNOTATION: "b"}), None);
    assert_eq!(Failed::refused(&without, None), None);
}

#[test]
fn the_pause_doubles_up_to_ten_minutes() {
    let pause = |failed| {
        let failed = Failed {
            failed,
            ..Failed::default()
        };
        failed.pause().as_secs()
    };
    assert_eq!(
        [1, 2, 3, 4, 5, 6, 99].map(pause),
        [30, 60, 120, 240, 480, 600, 600]
    );
}

#[test]
fn a_server_is_counted_once_and_a_record_that_cannot_be_read_is_none() {
    let once = Failed::default().with("s1");
    assert_eq!((once.failed, once.place), (1, 1));
    assert_eq!(once.with("s1"), once);
    assert_eq!(once.with("s2").failed, 2);
    let broken = machine(json!({FAILED_SERVERS_ANNOTATION: "{"}), None);
    assert_eq!(Failed::from_object(&broken), Failed::default());
    let text = serde_json::to_string(&once).unwrap();
    let known = machine(json!({FAILED_SERVERS_ANNOTATION: text}), None);
    assert_eq!(Failed::from_object(&known), once);
}

#[test]
fn only_a_server_that_was_never_used_lacks_room() {
    let failed = |message: &str| Server {
        status: "ERROR".to_owned(),
        fault: Some(Fault {
            message: message.to_owned(),
            ..Fault::default()
        }),
        ..Server::default()
    };
    let fresh = machine(json!({}), None);
    for message in [
        "No valid host was found. ",
        "Exceeded maximum number of retries. Exhausted all hosts available",
        "Quota exceeded for ports",
    ] {
        assert!(is_without_room(&fresh, &failed(message)), "{message}");
    }
    assert!(!is_without_room(
        &fresh,
        &failed("Volume did not finish being created")
    ));
    let ran = machine(json!({}), Some("openstack:///s"));
    assert!(!is_without_room(&ran, &failed("No valid host was found.")));
}
