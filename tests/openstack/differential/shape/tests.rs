use serde_json::json;

use super::*;

fn found(real: &Value, simulated: &Value) -> Vec<String> {
    differences(&Shape::of(real, "7"), &Shape::of(simulated, "7"), &[])
        .found
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
    assert_eq!(
        found(&real, &json!({"all": [{"a": 1, "b": 2}]})),
        ["/all[]/a null|text integer"]
    );
}

#[test]
fn an_empty_array_agrees_with_an_empty_one_only() {
    let (some, none) = (json!({"all": [{"tags": ["a"]}]}), json!({"all": []}));
    assert_eq!(found(&some, &none), ["/all array of objects empty array"]);
    assert_eq!(found(&none, &some), ["/all empty array array of objects"]);
    assert_eq!(found(&none, &none), Vec::<String>::new());
    assert_eq!(
        found(&some, &json!({"all": [{"tags": []}]})),
        ["/all[]/tags array of text empty array"]
    );
}

#[test]
fn a_step_says_where_an_array_may_be_empty_and_says_no_more_than_it_needs() {
    let (some, none) = (json!({"all": [1], "b": []}), json!({"all": [], "b": []}));
    let (some, none) = (Shape::of(&some, "7"), Shape::of(&none, "7"));
    let allowed = ["/all", "/b"].map(str::to_owned);
    for (real, simulated) in [(&some, &none), (&none, &some)] {
        let differences = differences(real, simulated, &allowed);
        assert_eq!(differences.found, []);
        assert_eq!(differences.unneeded, ["/b"]);
    }
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
