use serde_json::json;

use super::*;

fn found(real: &Value, simulated: &Value) -> Vec<String> {
    differences(&Shape::of(real, "7"), &Shape::of(simulated, "7"))
        .into_iter()
        .map(|one| format!("{} {} {}", one.at, one.real, one.simulated))
        .collect()
}

#[test]
fn a_field_that_one_lacks_is_a_difference() {
    assert_eq!(
        found(&json!({"a": {"b": 1}}), &json!({"a": {}})),
        ["/a/b integer -"]
    );
    assert_eq!(found(&json!({}), &json!({"c": null})), ["/c - null"]);
}

#[test]
fn states_are_compared_by_value_and_names_are_not() {
    assert_eq!(
        found(
            &json!({"status": "ACTIVE", "name": "x"}),
            &json!({"status": "DOWN", "name": "y"})
        ),
        ["/status =ACTIVE =DOWN"]
    );
}

#[test]
fn elements_of_arrays_are_compared_as_their_union() {
    let real = json!({"all": [{"a": null}, {"a": "x", "b": 1}]});
    assert_eq!(
        found(&real, &json!({"all": [{"a": "y", "b": 2}]})),
        Vec::<String>::new()
    );
    assert_eq!(found(&real, &json!({"all": []})), Vec::<String>::new());
    assert_eq!(
        found(&real, &json!({"all": [{"a": 1, "b": 2}]})),
        ["/all[]/a null|text integer"]
    );
}

#[test]
fn times_with_and_without_a_zone_differ() {
    let at = |text: &str| json!({"at": text});
    assert_eq!(
        found(&at("2026-01-02T03:04:05Z"), &at("2026-01-02T03:04:05")),
        ["/at time-z time"]
    );
}

#[test]
fn the_name_of_the_run_is_not_part_of_a_field() {
    assert_eq!(
        found(&json!({"diff-7": 1}), &json!({"diff-7": 2})),
        Vec::<String>::new()
    );
}
