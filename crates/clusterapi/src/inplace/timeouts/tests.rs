use serde_json::json;

use super::super::{MACHINE_SET, reduce};
use super::*;

fn entry(manager: &str, operation: &str, fields: &[&str]) -> Value {
    let fields: Map<String, Value> = fields
        .iter()
        .map(|field| ((*field).to_owned(), json!({})))
        .collect();
    json!({
        "manager": manager, "operation": operation, "apiVersion": "g/v1", "fieldsType": "FieldsV1",
        "fieldsV1": { "f:spec": { "f:deletion": fields, "f:x": {} } },
    })
}

fn machine(deletion: &Value, managed: &[Value]) -> Machine {
    serde_json::from_value(json!({
        "metadata": { "name": "m", "managedFields": managed },
        "spec": {
            "clusterName": "c",
            "bootstrap": {},
            "infrastructureRef": { "apiGroup": "g", "kind": "K", "name": "m" },
            "deletion": deletion,
        },
    }))
    .unwrap()
}

#[test]
fn timeouts_follow_the_template_and_what_a_user_has_set_stays_where_it_has_none() {
    let ours = entry("capi-machineset", "Apply", &[DRAIN]);
    let former = entry("ferrostack-machineset", "Update", &[DRAIN]);
    let users = entry("kubectl-edit", "Update", &[DRAIN]);
    let drain = |seconds: i32| json!({ "nodeDrainTimeoutSeconds": seconds });
    let none = json!({});
    let cases = [
        // (on the machine, claimed by, in the template, then)
        (drain(60), vec![users.clone()], none.clone(), drain(60)),
        (drain(60), vec![users.clone()], drain(7), drain(7)),
        (drain(7), vec![ours.clone()], none.clone(), none.clone()),
        (drain(7), vec![former], none.clone(), none.clone()),
        (drain(7), vec![], none.clone(), drain(7)),
        (none.clone(), vec![ours], drain(7), drain(7)),
        (
            json!({ "nodeVolumeDetachTimeoutSeconds": 5, "nodeDeletionTimeoutSeconds": 10 }),
            vec![users],
            drain(7),
            json!({
                "nodeDrainTimeoutSeconds": 7,
                "nodeVolumeDetachTimeoutSeconds": 5,
                "nodeDeletionTimeoutSeconds": 10,
            }),
        ),
    ];
    for (on_machine, claimed, template, then) in cases {
        let case = format!("{on_machine} {claimed:?} {template}");
        let mut machine = machine(&on_machine, &claimed);
        let template: MachineDeletion = serde_json::from_value(template).unwrap();
        let after = deletion(&machine, &template, &MACHINE_SET);
        assert_eq!(serde_json::to_value(after).unwrap(), then, "{case}");
        // The reduced managedFields of caches lead to the same result.
        reduce(machine.metadata.managed_fields.get_or_insert_default());
        let cached = deletion(&machine, &template, &MACHINE_SET);
        assert_eq!(
            serde_json::to_value(cached).unwrap(),
            then,
            "{case}, cached"
        );
    }
}

#[test]
fn a_machine_without_timeouts_gets_none() {
    let machine = machine(&Value::Null, &[]);
    let after = deletion(&machine, &MachineDeletion::default(), &MACHINE_SET);
    assert_eq!(after, None);
}
