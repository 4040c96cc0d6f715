use super::*;
use crate::desired::desired;
use crate::desired::tests::{cloud, full, held};
use crate::held::FERNET;
use crate::held::tests::swapped as swapped_in;
use crate::object::Object;
use crate::release::Release;

fn swapped(held: &Credentials, swap: &Swap) -> Credentials {
    swapped_in(held, ACCOUNTS, swap)
}

/// The cloud with the second half of every account in use, and the first one dropped.
fn dropped() -> Credentials {
    let chosen: BTreeSet<&str> = ROTATED.into();
    let both = swapped(&held(), &held().with_next(&chosen, || 5));
    let used = swapped(&both, &both.used());
    let dropped = swapped(&used, &used.without_former());
    swapped(&dropped, &dropped.with_administrator())
}

fn texts(graph: &Graph) -> Vec<String> {
    let objects = graph.objects().map(|(_, it)| it.exposed());
    objects
        .flat_map(|it| {
            let data = it["data"].as_object().cloned().unwrap_or_default();
            data.into_values()
        })
        .filter_map(|it| {
            use base64::Engine as _;
            let text = it.as_str()?;
            let decoded = base64::engine::general_purpose::STANDARD.decode(text);
            Some(
                decoded
                    .ok()
                    .and_then(|it| String::from_utf8(it).ok())
                    .unwrap_or_else(|| text.to_owned()),
            )
        })
        .collect()
}

#[test]
fn programs_have_the_half_in_use_and_no_former_password() {
    for release in Release::ALL {
        let cloud = cloud(&full(release));
        let (before, after) = (held(), dropped());
        let graph = desired(&cloud, &after);
        let files = texts(&graph);
        let is_in_a_file = |text: &str| files.iter().any(|it| it.contains(text));
        let has = |service: &&str| match *service {
            "cinder" => release.has_volumes(),
            "octavia" => release.has_balancers(),
            _ => true,
        };
        let of_databases = [
            "cinder",
            "glance",
            "keystone",
            "neutron",
            "nova",
            "octavia",
            "placement",
        ];
        for service in of_databases.into_iter().filter(has) {
            let url = format!("mysql+pymysql://{service}-b:");
            assert!(is_in_a_file(&url), "{url}");
            assert!(!is_in_a_file(&format!("mysql+pymysql://{service}:")));
        }
        for service in ["cinder", "neutron", "nova"].into_iter().filter(has) {
            let url = format!("rabbit://{service}-b:");
            assert!(is_in_a_file(&url), "{url}");
            // The virtual host stays.
            assert!(is_in_a_file(&format!("@rabbitmq:5672/{service}\n")));
        }
        let of_identity = [
            "cinder",
            "glance",
            "neutron",
            "nova",
            "octavia",
            "placement",
        ];
        for service in of_identity.into_iter().filter(has) {
            assert!(is_in_a_file(&format!("username = {service}-b\n")));
            assert!(!is_in_a_file(&format!("username = {service}\n")));
        }
        let is_held = |it: &&Object| it.reference().name == ACCOUNTS;
        for account in ROTATED {
            let former = before.password(account);
            let mut objects = graph.objects().map(|(_, it)| it);
            let found = objects.find(|it| {
                use base64::Engine as _;
                let encoded = base64::engine::general_purpose::STANDARD.encode(former.expose());
                let text = it.exposed().to_string();
                !is_held(it) && (text.contains(former.expose()) || text.contains(&encoded))
            });
            assert_eq!(found, None, "{account}");
        }
    }
}

#[test]
fn a_database_has_both_halves_and_then_drops_the_former_one() {
    let cloud = cloud(&full(Release::Gazpacho));
    let sql = |held: &Credentials| {
        let files = texts(&desired(&cloud, held));
        let mut files = files.into_iter();
        files.find(|it| it.contains("CREATE DATABASE")).unwrap()
    };
    let both = swapped(&held(), &held().with_next(&["database-nova"].into(), || 5));
    let text = sql(&both);
    for user in ["nova", "nova-b"] {
        assert!(text.contains(&format!("GRANT ALL ON `nova_cell0`.* TO '{user}'@'%';")));
    }
    assert!(!text.contains("DROP USER"), "{text}");
    let text = sql(&dropped());
    assert!(text.contains("DROP USER IF EXISTS 'nova'@'%';"), "{text}");
    assert!(!text.contains("TO 'nova'@'%'"), "{text}");
    assert!(!sql(&held()).contains("DROP USER"));
}

#[test]
fn a_store_or_an_account_can_be_chosen() {
    let cloud = cloud(&full(Release::Gazpacho));
    let whole = desired(&cloud, &held());
    let chosen = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
        let stages = Stages::rotation(&cloud, &held(), &whole, &names, || 5);
        let Kind::Rotate(rotation) = stages.kind else {
            panic!("it is none");
        };
        let swaps = rotation.make.into_iter().chain(rotation.dropped);
        let names = |(secret, swap): (&str, Swap)| match KEYS.iter().find(|it| it.1 == secret) {
            Some((name, _)) => vec![(*name).to_owned()],
            None => swap
                .keys()
                .map(|it| it.trim_start_matches("next.").to_owned())
                .collect(),
        };
        swaps.flat_map(names).collect::<BTreeSet<_>>()
    };
    let all = ROTATED.into_iter().chain(["credential", "fernet"]);
    let all: BTreeSet<String> = all.map(str::to_owned).collect();
    assert_eq!(chosen(&[]), all);
    assert_eq!(
        chosen(&["messaging", "database-nova"]),
        [
            "database-nova",
            "messaging-cinder",
            "messaging-neutron",
            "messaging-nova",
        ]
        .map(str::to_owned)
        .into()
    );
    assert_eq!(chosen(&["fernet"]), ["fernet".to_owned()].into());
}

#[test]
fn a_pod_with_a_former_file_is_named() {
    let cloud = cloud(&full(Release::Gazpacho));
    let graph = desired(&cloud, &dropped());
    let secret = |graph: &Graph| {
        let mut all = graph.objects().map(|(_, it)| it.reference());
        let found = all.find(|it| it.name.starts_with("nova-api-secret-"));
        found.unwrap().name.clone()
    };
    let pod = |secret: &str, status: &str| {
        json!({"metadata": {"name": "nova-api-1", "namespace": "openstack", "labels": {UID: graph.uid}},
            "spec": {"nodeName": "node-7", "volumes": [
                {"name": "tmp", "emptyDir": {}},
                {"name": "given", "secret": {"secretName": "somebodys"}},
                {"name": "nova-api-secret", "secret": {"secretName": secret}}]},
            "status": {"phase": status}})
    };
    let former = secret(&desired(&cloud, &held()));
    assert_ne!(former, secret(&graph));
    assert_eq!(behind(&graph, &[pod(&secret(&graph), "Running")]), None);
    assert_eq!(behind(&graph, &[pod(&former, "Succeeded")]), None);
    let mut hanging = pod(&former, "Running");
    let words = behind(&graph, std::slice::from_ref(&hanging)).unwrap();
    assert!(words.contains("Pod nova-api-1 on node-7"), "{words}");
    assert!(words.contains("delete pod nova-api-1"), "{words}");
    hanging["metadata"]["deletionTimestamp"] = "2026-11-30T00:00:00Z".into();
    let words = behind(&graph, &[hanging]).unwrap();
    assert!(words.ends_with("its end is awaited"), "{words}");
}

#[test]
fn the_task_reaches_the_stores_and_what_it_tries_is_in_a_secret() {
    let cloud = cloud(&full(Release::Gazpacho));
    let held = dropped();
    let step = check(&cloud, &held);
    let names: Vec<String> = step
        .objects
        .iter()
        .map(|it| it.reference().to_string())
        .collect();
    for store in ["mariadb", "rabbitmq"] {
        let policy = format!("NetworkPolicy rotation-{store}");
        assert!(names.contains(&policy), "{names:?}");
    }
    assert_eq!(held.dropped().len(), ROTATED.len());
    for object in &step.objects {
        let public = object.public().to_string();
        assert_eq!(held.masked(&public), public, "{}", object.reference());
    }
}

#[test]
fn pods_of_keystone_are_made_anew_for_keys_and_an_older_one_is_named() {
    let cloud = cloud(&full(Release::Gazpacho));
    let before = desired(&cloud, &held());
    let staged = swapped_in(&held(), FERNET, &held().staged(FERNET, || 5));
    let after = desired(&cloud, &staged);
    let differs = |(one, other): (&Step, &Step)| (one != other).then(|| one.name.clone());
    let changed: Vec<String> = before
        .steps
        .iter()
        .zip(&after.steps)
        .filter_map(differs)
        .collect();
    assert_eq!(changed, ["secrets", "keystone-api"]);
    let pod = |annotations: Json| {
        json!({"metadata": {"name": "keystone-api-1", "annotations": annotations,
            "labels": {UID: after.uid, "app.kubernetes.io/name": "keystone-api"}}})
    };
    let former = pod(json!({}));
    assert_eq!(late(&before, std::slice::from_ref(&former)), None);
    let words = late(&after, &[former]).unwrap();
    assert!(words.contains("Pod keystone-api-1"), "{words}");
    let new = pod(json!({REVISION: staged.revision().unwrap()}));
    assert_eq!(late(&after, &[new]), None);
}

#[test]
fn credentials_are_migrated_by_another_task_for_each_key() {
    let cloud = cloud(&full(Release::Gazpacho));
    let moved = |byte: u8| {
        let staged = swapped_in(&held(), CREDENTIAL, &held().staged(CREDENTIAL, || byte));
        swapped_in(
            &staged,
            CREDENTIAL,
            &staged.promoted(CREDENTIAL, || byte + 1),
        )
    };
    let job = |held: &Credentials| {
        let step = migrate(&cloud, held).unwrap();
        step.objects.last().unwrap().clone()
    };
    let one = job(&moved(3));
    assert_ne!(one.reference(), job(&moved(7)).reference());
    let text = one.public().to_string();
    assert!(text.contains("credential_migrate") && text.contains("/etc/keystone/credential-keys"));
    assert_eq!(moved(3).masked(&text), text);
}
