use serde_json::{Value, json};

use super::Move::{Formed, Inside, New, Old, Renamed, Set, Text};
use super::*;

const DISK: &[Move] = &[Renamed("gib", "size.gib"), New("kind")];
const TABLE: &[Move] = &[
    New("network"),
    Renamed("networkId", "network.id"),
    Old("marker"),
    Set("tags"),
    Text("about"),
    Formed {
        old: "off",
        new: "on",
        how: "inverted",
        up: |value| Some(json!(value != json!(true))),
        down: |value| Some(json!(value != json!(true))),
    },
    Inside("disks[]", DISK),
    Inside("template.spec", DISK),
];

fn moved(value: Value, apply: fn(&mut Fields, &[Move]) -> Done) -> Result<Value, String> {
    let mut fields = value.as_object().unwrap().clone();
    apply(&mut fields, TABLE).map(|()| Value::Object(fields))
}

#[test]
fn a_table_is_read_in_both_directions() {
    let old = json!({"networkId": "n", "marker": "m", "tags": ["a", "b", "a"], "about": "", "off": true,
        "disks": [{"gib": 1}, 5], "template": {"spec": {"gib": 2}}, "kept": 1});
    let new = moved(old, up).unwrap();
    assert_eq!(
        new,
        json!({"network": {"id": "n"}, "tags": ["a", "b"], "on": false,
            "disks": [{"size": {"gib": 1}}, 5], "template": {"spec": {"size": {"gib": 2}}}, "kept": 1})
    );
    let new = json!({"network": {"id": "n", "name": "x"}, "on": false, "disks": [{"kind": "ssd", "size": {"gib": 1}}]});
    let old = json!({"networkId": "n", "off": true, "disks": [{"gib": 1}]});
    assert_eq!(moved(new, down).unwrap(), old);
}

#[test]
fn a_null_moves_and_an_absent_field_stays_absent() {
    assert_eq!(
        moved(json!({"networkId": null, "off": null}), up).unwrap(),
        json!({"network": {"id": null}, "on": null})
    );
    assert_eq!(moved(json!({}), up).unwrap(), json!({}));
    assert_eq!(moved(json!({}), down).unwrap(), json!({}));
}

#[test]
fn what_is_no_object_is_named_with_its_path() {
    let wrong = json!({"template": {"spec": 3}});
    assert_eq!(
        moved(wrong, up).unwrap_err(),
        "template.spec is not an object"
    );
}

#[test]
fn rows_have_the_paths_of_both_versions() {
    let rows = rows(TABLE, "spec");
    let texts: Vec<_> = rows
        .iter()
        .map(|row| format!("{}|{}|{}", row.old, row.new, row.how))
        .collect();
    assert!(
        texts.contains(&"spec.networkId|spec.network.id|".to_owned()),
        "{texts:?}"
    );
    assert!(texts.contains(&"|spec.disks[].kind|".to_owned()));
    assert!(texts.contains(&"spec.off|spec.on|inverted".to_owned()));
}
