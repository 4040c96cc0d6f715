use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Undecoded, decoded};

#[derive(Debug, PartialEq, Deserialize)]
struct Port {
    number: u16,
    #[serde(default)]
    names: Vec<String>,
    mode: Option<Mode>,
}

#[derive(Debug, PartialEq, Deserialize)]
enum Mode {
    Open,
    Limited(u8),
    Between { from: u8, to: u8 },
}

#[derive(Debug, PartialEq, Deserialize)]
struct Labels(BTreeMap<String, (i32, f64)>);

fn failure<T: DeserializeOwned>(value: &Value) -> Undecoded {
    decoded::<T>(value).err().unwrap()
}

/// Error of serde_json with the path of serde_path_to_error.
fn theirs<T: DeserializeOwned>(value: &Value) -> (String, String) {
    let error = serde_path_to_error::deserialize::<_, T>(value)
        .err()
        .unwrap();
    (error.path().to_string(), error.inner().to_string())
}

#[test]
fn values_are_those_of_serde_json() {
    let ports = json!([
        {"number": 80, "names": ["http", "web"], "mode": "Open", "unknown": {"of": [1, null]}},
        {"number": 443, "mode": {"Limited": 3}},
        {"number": 1, "mode": {"Between": {"from": 1, "to": 2}}},
        {"number": 65535, "names": [], "mode": null},
    ]);
    let read: Vec<Port> = decoded(&ports).unwrap();
    assert_eq!(read, serde_json::from_value::<Vec<Port>>(ports).unwrap());
    let labels = json!({"a": [-1, 1.5], "b": [2, 3]});
    let read: Labels = decoded(&labels).unwrap();
    assert_eq!(read, serde_json::from_value::<Labels>(labels).unwrap());
    let any = json!({"text": "a", "number": -5, "float": 0.25, "list": [true, null, {}]});
    assert_eq!(decoded::<Value>(&any).unwrap(), any);
}

#[test]
fn errors_name_the_field_in_serde_jsons_words() {
    let wrong = [
        json!([{"number": 80}, {"number": 70000}]),
        json!([{"number": -1}]),
        json!([{"number": "80"}]),
        json!([{"number": 1.5}]),
        json!([{"number": null}]),
        json!([{"names": []}]),
        json!([{"number": 1, "names": ["a", {"b": 1}]}]),
        json!([{"number": 1, "names": "a"}]),
        json!([{"number": 1, "mode": "Closed"}]),
        json!([{"number": 1, "mode": {"Limited": 256}}]),
        json!([{"number": 1, "mode": {"Between": {"from": 1, "to": true}}}]),
        json!([{"number": 1, "mode": 7}]),
        json!([{"number": 1, "mode": {"Limited": 1, "Open": null}}]),
        json!({"number": 1}),
        json!("ports"),
    ];
    for value in wrong {
        let error = failure::<Vec<Port>>(&value);
        let ours = (error.path(), error.message().to_owned());
        assert_eq!(ours, theirs::<Vec<Port>>(&value), "{value}");
    }
    for value in [json!({"a": [1, 2, 3]}), json!({"a": [1]}), json!({"b": 3})] {
        let error = failure::<Labels>(&value);
        let ours = (error.path(), error.message().to_owned());
        assert_eq!(ours, theirs::<Labels>(&value), "{value}");
    }
}

#[test]
fn a_list_of_fields_is_no_struct() {
    let error = failure::<Vec<Port>>(&json!([[80, [], null]]));
    assert_eq!(
        error.to_string(),
        "[0]: invalid type: sequence, expected struct Port"
    );
}
