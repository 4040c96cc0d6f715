use super::*;

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

fn deployment(spec: Value) -> DynamicObject {
    object(json!({"metadata": {"name": "demo-md-0", "uid": "d"}, "spec": spec}))
}

fn set(revision: &str, owner: &str, template: Value) -> DynamicObject {
    object(json!({
        "metadata": {
            "name": format!("set-{revision}"), "annotations": {REVISION: revision},
            "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": owner, "controller": true}],
        },
        "spec": {"template": template},
    }))
}

fn now() -> Timestamp {
    "2026-01-01T00:00:00.5Z".parse().unwrap()
}

#[test]
fn a_deployment_is_restarted_paused_and_resumed() {
    let of =
        |spec: &Value, request| change(Kind::MachineDeployment, &deployment(spec.clone()), request);
    let running = json!({"rollout": {"after": "2025-12-31T00:00:00Z"}});
    let paused = json!({"paused": true});
    let restarted = of(&running, Request::Restart(now())).unwrap();
    assert_eq!(
        restarted.patch(Some("7")),
        json!({"metadata": {"resourceVersion": "7"}, "spec": {"rollout": {"after": "2026-01-01T00:00:00Z"}}})
    );
    let begins = of(&running, Request::Pause).unwrap();
    assert_eq!(begins.patch["spec"], json!({"paused": true}));
    let ends = of(&paused, Request::Resume).unwrap();
    assert_eq!(ends.patch["spec"], json!({"paused": null}));
    let future = json!({"rollout": {"after": "2026-01-01T00:00:01Z"}});
    for (spec, request, expected) in [
        (&paused, Request::Restart(now()), "is paused"),
        (&paused, Request::Pause, "is paused already"),
        (&running, Request::Resume, "is not paused"),
        (&future, Request::Restart(now()), "in the future"),
    ] {
        let error = of(spec, request).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_control_plane_is_paused_by_its_annotation() {
    let running = object(json!({"metadata": {"name": "cp"}, "spec": {}}));
    let paused =
        object(json!({"metadata": {"name": "cp", "annotations": {PAUSED_ANNOTATION: "true"}}}));
    let of = |object, request| change(Kind::KubeadmControlPlane, object, request);
    let begins = of(&running, Request::Pause).unwrap().patch(Some("1"));
    assert_eq!(
        begins,
        json!({"metadata": {"annotations": {PAUSED_ANNOTATION: "true"}, "resourceVersion": "1"}})
    );
    let ends = of(&paused, Request::Resume).unwrap();
    let annotations = &ends.patch["metadata"]["annotations"];
    assert_eq!(annotations, &json!({PAUSED_ANNOTATION: null}));
    assert!(of(&paused, Request::Restart(now())).is_err());
    assert!(of(&running, Request::Restart(now())).is_ok());
}

#[test]
fn an_earlier_template_replaces_the_current_one_as_a_whole() {
    let current = json!({"metadata": {"labels": {"a": "1", "new": "1"}}, "spec": {"version": "v1.34.2", "failureDomain": "x"}});
    let earlier =
        json!({"metadata": {"labels": {"a": "0", HASH: "h"}}, "spec": {"version": "v1.34.1"}});
    let object = deployment(json!({"template": current}));
    let sets = [
        set("1", "d", json!({"spec": {"version": "v1.33.0"}})),
        set("2", "d", earlier),
        set("3", "d", current),
        set("9", "another", json!({})),
        set("x", "d", json!({})),
    ];
    let change = undo(&object, &sets, None).unwrap();
    assert_eq!(
        change.patch["spec"]["template"],
        json!({"metadata": {"labels": {"a": "0", "new": null}}, "spec": {"version": "v1.34.1", "failureDomain": null}})
    );
    assert!(change.done.contains("revision 2"), "{}", change.done);
    let first = undo(&object, &sets, Some(1)).unwrap();
    let template = &first.patch["spec"]["template"];
    assert_eq!(template["spec"]["version"], "v1.33.0");
    assert_eq!(template["metadata"], Value::Null);

    // The set of the current template is not there yet.
    let soon = undo(&object, &sets[..2], None).unwrap();
    assert!(soon.done.contains("revision 2"), "{}", soon.done);

    let rejected = |sets: &[DynamicObject], to| undo(&object, sets, to).unwrap_err();
    assert!(rejected(&sets, Some(7)).contains("no revision 7; there are: 1, 2, 3"));
    assert!(rejected(&sets, Some(3)).contains("the template of revision 3 already"));
    assert!(rejected(&sets[2..], None).contains("no earlier template"));
    assert!(rejected(&[], Some(1)).contains("no earlier template"));
    let paused = deployment(json!({"paused": true}));
    assert!(undo(&paused, &sets, None).unwrap_err().contains("paused"));
}
