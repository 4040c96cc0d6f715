use serde_json::json;

use super::*;

fn cloud(release: &str, services: &Value, status: &Value) -> OpenStack {
    let object = json!({"apiVersion": "ferrostack.dev/v1alpha1", "kind": "OpenStack",
        "metadata": {"name": "cloud", "namespace": "openstack", "generation": 2},
        "spec": {"release": release, "services": services}, "status": status});
    serde_json::from_value(object).unwrap()
}

fn status(release: &Value, ready: (&str, &str), tasks: &str) -> Value {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({"type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-11-29T00:00:00Z"})
    };
    json!({"observedGeneration": 2, "release": release, "conditions": [
        condition("Ready", ready.0, ready.1, "why"),
        condition("TasksSucceeded", tasks, "TaskFailed", "nova-check: Job x has failed"),
    ]})
}

#[test]
fn phases_and_their_seconds_are_in_one_line() {
    let release = json!({"current": "2025.1", "from": "2025.1", "to": "2026.1", "phase": "Expand",
        "phases": [{"name": "Check", "seconds": 12}, {"name": "Expand"}]});
    let of = |release: &Value| line(&cloud("2026.1", &json!({}), &json!({"release": release})));
    assert_eq!(of(&release), "upgrade 2025.1 → 2026.1: Expand (Check 12 s)");
    let over = json!({"current": "2026.1", "from": "2025.1", "to": "2026.1", "phases": []});
    assert_eq!(of(&over), "upgraded 2025.1 → 2026.1");
    assert_eq!(of(&json!({"current": "2026.1"})), "");
}

#[test]
fn parameters_are_judged_by_the_new_release_before_anything_is_written() {
    let none = json!({});
    let error = |cloud: &OpenStack, to| judged(cloud, to).unwrap_err().to_string();
    let gone = json!({"nova": {"config": {"DEFAULT": {"enabled_apis": ["metadata"]}}}});
    let text = error(&cloud("2025.1", &gone, &none), Release::Gazpacho);
    assert!(
        text.contains("spec.services.nova.config.DEFAULT.enabled_apis")
            && text.contains("which 2025.1 had: remove it"),
        "{text}"
    );
    let text = error(&cloud("2026.1", &none, &none), Release::Epoxy);
    assert_eq!(
        text,
        "release: the cloud is of 2026.1, and a release is never lowered to 2025.1"
    );
    let text = error(&cloud("zed", &none, &none), Release::Gazpacho);
    assert_eq!(text, "release: no way leads from zed to 2026.1");
    let renamed = json!({"neutron": {"config": {"ml2": {"tenant_network_types": ["geneve"]}}}});
    let warnings = judged(&cloud("2025.1", &renamed, &none), Release::Gazpacho).unwrap();
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].contains("it is [ml2] project_network_types in 2026.1"),
        "{warnings:?}"
    );
    assert!(
        warnings[0].contains(r#"{"spec":{"services":{"neutron":"#),
        "{warnings:?}"
    );
}

#[test]
fn a_wait_ends_with_what_was_asked_for_or_with_what_does_not_go_on() {
    let to = Release::Gazpacho;
    let seen =
        |status: &Value, until| ended(&cloud("2026.1", &json!({}), status), until, "ferrostack");
    let at = |phase: &str| json!({"current": "2025.1", "from": "2025.1", "to": "2026.1", "phase": phase});
    let is = |status: &Value| seen(status, Until::Is(to));
    let busy = is(&status(&at("Roll"), ("False", "Progressing"), "True"))
        .unwrap()
        .unwrap();
    assert!(busy.starts_with("upgrade 2025.1 → 2026.1: Roll"), "{busy}");
    let over = json!({"current": "2026.1", "from": "2025.1", "to": "2026.1"});
    assert_eq!(
        is(&status(&over, ("True", "AllStepsReady"), "True")).unwrap(),
        None
    );
    assert!(
        is(&status(&over, ("False", "Progressing"), "True"))
            .unwrap()
            .is_some()
    );
    for (phase, advice) in [
        ("Check", "upgrade --abort` takes the cloud back"),
        ("Migrate", "no way back by image any more"),
    ] {
        let failed = is(&status(&at(phase), ("False", "TaskFailed"), "False"));
        let failed = failed.unwrap_err().to_string();
        assert!(
            failed.starts_with(&format!("{phase} fails: nova-check: ")) && failed.contains(advice),
            "{failed}"
        );
    }
    let refused = is(&status(&at("Roll"), ("False", "Conflict"), "True")).unwrap_err();
    assert_eq!(refused.to_string(), "why");
    // With the upgrade over, a certificate that cannot be used is what is left; before, the upgrade goes on.
    let unusable = ("False", Reason::CertificateUnusable.as_str());
    assert!(
        is(&status(&at("Roll"), unusable, "True"))
            .unwrap()
            .is_some()
    );
    let left = is(&status(&over, unusable, "True")).unwrap_err();
    assert_eq!(left.to_string(), "why");
    let mut checked = at("Check");
    checked["phases"] = json!([{"name": "Check", "seconds": 3}]);
    let checked = status(&checked, ("True", "AllStepsReady"), "True");
    assert_eq!(seen(&checked, Until::Checked(to)).unwrap(), None);
    assert!(is(&checked).unwrap().is_some());
    // What was seen of another generation is not believed.
    let mut old = status(&over, ("True", "AllStepsReady"), "True");
    old["observedGeneration"] = 1.into();
    assert!(
        is(&old)
            .unwrap()
            .unwrap()
            .contains("no controller has looked")
    );
}

#[test]
fn a_plan_has_the_phases_of_the_upgrade() {
    let phases = upgrade::outline(Release::Epoxy, false);
    let text = outlined(Release::Epoxy, Release::Gazpacho, &phases);
    assert!(text.starts_with("Upgrade 2025.1 → 2026.1: "), "{text}");
    assert!(
        text.contains("\n  Expand   keystone-expand, keystone-migrate, "),
        "{text}"
    );
    assert!(text.contains("\n  Infra    -\n"), "{text}");
    assert!(text.contains("\n  Backup   -\n"), "{text}");
    let saved = upgrade::outline(Release::Epoxy, true);
    let saved = outlined(Release::Epoxy, Release::Gazpacho, &saved);
    assert!(saved.contains("\n  Backup   upgrade-backup\n"), "{saved}");
    assert!(text.contains(", nova-compute, horizon\n"), "{text}");
    assert_eq!(text.lines().count(), 2 + 8);
    let json = document(Release::Epoxy, Release::Gazpacho, &phases);
    assert_eq!(
        (&json["from"], &json["to"]),
        (&json!("2025.1"), &json!("2026.1"))
    );
    let expand = &json["phases"][3];
    assert_eq!(
        (&expand["name"], &expand["leadsBack"]),
        (&json!("Expand"), &json!(true))
    );
    assert_eq!(expand["steps"][0], "keystone-expand");
    let contract = json!({"name": "Contract", "leadsBack": false,
        "steps": ["keystone-contract", "glance-contract", "neutron-contract"]});
    assert_eq!(json["phases"][6], contract);
}

#[tokio::test]
async fn failed_tasks_of_this_upgrade_alone_run_again() {
    let server = apiserver::ApiServer::open(apiserver::Options::default())
        .await
        .unwrap();
    let client = Client::new(server.in_process(), "openstack");
    let jobs: Api<Job> = Api::namespaced(client.clone(), "openstack");
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
    let namespace = json!({"metadata": {"name": "openstack"}});
    let namespace = serde_json::from_value(namespace).unwrap();
    namespaces
        .create(&Default::default(), &namespace)
        .await
        .unwrap();
    for (name, uid, step, failed) in [
        ("ours", "a1", "nova-check", "True"),
        ("theirs", "b2", "nova-check", "True"),
        ("running", "a1", "nova-check", "False"),
        ("schema", "a1", "nova-schema", "True"),
    ] {
        let job = json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "labels": {UID: uid, STEP: step}},
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "x", "image": "x"}]}}}});
        jobs.create(&Default::default(), &serde_json::from_value(job).unwrap())
            .await
            .unwrap();
        let condition = json!({"type": "Failed", "status": failed});
        let status = json!({"status": {"conditions": [condition]}});
        jobs.patch_status(name, &PatchParams::default(), &Patch::Merge(&status))
            .await
            .unwrap();
    }
    let mut noted = Vec::new();
    let cloud = cloud("2026.1", &json!({}), &json!({"uid": "a1"}));
    let again = try_again(&client, &cloud, |text| noted.push(text.to_owned())).await;
    assert!(again.unwrap());
    assert_eq!(noted, ["nova-check had failed, and runs again"]);
    let left = jobs.list(&ListParams::default()).await.unwrap().items;
    let is_there = |it: &&Job| it.metadata.deletion_timestamp.is_none();
    let left: Vec<String> = left
        .iter()
        .filter(is_there)
        .map(kube::ResourceExt::name_any)
        .collect();
    assert_eq!(left, ["running", "schema", "theirs"]);
}
