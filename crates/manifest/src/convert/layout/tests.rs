use serde_json::json;

use super::*;

const ORIGINAL: &str = "\
# Of the whole.
kind: Thing # what it is
apiVersion: a/v1
metadata:
  # Of the name.
  name: x
spec:
  zones:
  # Of the first.
  - name: a # one
    size: 1
  - name: b
  # Of what goes.
  gone:
    deep: 1 # of deep
  script: |
    # no comment
    echo

    done
  empty: {}
  list: []
  'odd: key': 'yes'
# At the end.
";

#[test]
fn order_and_comments_stay() {
    let value: Value = serde_saphyr::from_str(ORIGINAL).unwrap();
    let found = text(&value, ORIGINAL).unwrap();
    assert_eq!(found.replace('\'', "\""), ORIGINAL.replace('\'', "\""));
}

#[test]
fn comments_of_what_is_gone_stand_above_what_is_left() {
    let mut value: Value = serde_saphyr::from_str(ORIGINAL).unwrap();
    value["spec"]["new"] = json!({"b": [[1, 2], {"c": null}]});
    value["spec"].as_object_mut().unwrap().remove("gone");
    value["spec"]["zones"].as_array_mut().unwrap().clear();
    let found = text(&value, ORIGINAL).unwrap();
    for comment in ["# Of the first.", "# one", "# Of what goes.", "# of deep"] {
        assert_eq!(found.matches(comment).count(), 1, "{comment}: {found}");
    }
    assert_eq!(serde_saphyr::from_str::<Value>(&found).unwrap(), value);
    assert!(
        found.starts_with("# Of the whole.\nkind: Thing # what it is\napiVersion"),
        "{found}"
    );
    assert!(found.ends_with("# At the end.\n"), "{found}");
}

#[test]
fn what_has_no_place_in_the_manifest_begins_with_what_names_it() {
    let value =
        json!({"spec": {}, "kind": "A", "metadata": {}, "apiVersion": "v1", "extra": "a\n b\n\n"});
    assert_eq!(
        text(&value, "")
            .unwrap()
            .lines()
            .take(4)
            .collect::<Vec<_>>(),
        ["apiVersion: v1", "kind: A", "metadata: {}", "spec: {}"]
    );
    assert_eq!(
        serde_saphyr::from_str::<Value>(&text(&value, "").unwrap()).unwrap(),
        value
    );
}
