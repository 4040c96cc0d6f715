use serde_json::json;

use super::*;

pub(crate) fn counter() -> impl FnMut() -> u8 {
    let mut next = 0_u8;
    move || {
        next = next.wrapping_add(1);
        next
    }
}

/// The Secrets as the cluster has them.
pub(crate) fn stored(held: &Credentials, cloud: &str) -> Vec<Json> {
    use base64::engine::general_purpose::STANDARD;
    SECRETS
        .iter()
        .map(|(name, _)| {
            let data: BTreeMap<String, String> = held
                .secret(name)
                .into_iter()
                .map(|(key, value)| (key, STANDARD.encode(value.expose())))
                .collect();
            json!({"kind": "Secret", "metadata": {"name": name,
                "labels": {PART_OF: cloud, UID: held.uid()},
                "annotations": {GENERATED: Credentials::generated(name)}}, "data": data})
        })
        .collect()
}

/// The cloud after a swap of a Secret.
pub(crate) fn swapped(held: &Credentials, secret: &str, swap: &halves::Swap) -> Credentials {
    use base64::engine::general_purpose::STANDARD;
    let mut objects = stored(held, "cloud");
    let mut all = objects.iter_mut();
    let object = all.find(|it| it["metadata"]["name"] == secret).unwrap();
    let data = object["data"].as_object_mut().unwrap();
    for (key, value) in swap {
        match value {
            Some(value) => data.insert(key.clone(), STANDARD.encode(value.expose()).into()),
            None => data.remove(key),
        };
    }
    Credentials::complete("cloud", &objects, || unreachable!("nothing is made anew"))
}

#[test]
fn passwords_have_32_letters_and_digits_and_keys_are_32_bytes() {
    let held = Credentials::complete("cloud", &[], counter());
    for (name, keys) in SECRETS {
        for key in keys {
            let text = held.secret(name)[*key].expose().to_owned();
            if name == ACCOUNTS {
                assert_eq!(text.len(), 32, "{key}");
                assert!(text.chars().all(|it| it.is_ascii_alphanumeric()), "{key}");
            } else {
                assert_eq!(URL_SAFE.decode(&text).unwrap().len(), 32, "{key}");
            }
        }
    }
    let accounts = held.secret(ACCOUNTS);
    let different: std::collections::BTreeSet<&str> =
        accounts.values().map(Password::expose).collect();
    assert_eq!(different.len(), accounts.len());
}

#[test]
fn what_is_there_is_kept_and_a_key_that_an_earlier_version_did_not_make_is_made() {
    let held = Credentials::complete("cloud", &[], counter());
    let mut objects = stored(&held, "cloud");
    assert_eq!(Credentials::complete("cloud", &objects, || 7), held);
    objects[0]["data"]
        .as_object_mut()
        .unwrap()
        .remove("database-nova");
    let listed = Credentials::generated(ACCOUNTS).replace("database-nova,", "");
    objects[0]["metadata"]["annotations"][GENERATED] = listed.into();
    objects[0]["data"]["of-an-earlier-version"] = "eA==".into();
    let again = Credentials::complete("cloud", &objects, || 7);
    assert_eq!(again.uid(), held.uid());
    assert_eq!(again.problems(), [""; 0]);
    assert_eq!(again.password("database-nova").expose(), "H".repeat(32));
    assert_eq!(
        again.password("database-glance"),
        held.password("database-glance")
    );
    assert_eq!(again.password("of-an-earlier-version").expose(), "x");
}

#[test]
fn secrets_of_another_cloud_are_not_used() {
    let held = Credentials::complete("cloud", &[], counter());
    let other = Credentials::complete("other", &stored(&held, "cloud"), || 7);
    assert_ne!(other.uid(), held.uid());
    assert_ne!(other.password("names"), held.password("names"));
}

#[test]
fn no_debug_form_has_a_password() {
    let held = Credentials::complete("cloud", &[], counter());
    let text = format!("{held:?}");
    assert!(!text.contains(held.password("identity-admin").expose()));
    assert!(text.contains("********"));
}

#[test]
fn a_password_that_ends_a_line_is_rejected_and_not_shown() {
    let mut objects = stored(&Credentials::complete("cloud", &[], counter()), "cloud");
    // `canary` and a line break.
    objects[0]["data"]["database-nova"] = "Y2FuYXJ5Cg==".into();
    let problems = Credentials::complete("cloud", &objects, counter()).problems();
    assert_eq!(
        problems,
        [
            "Secret openstack-accounts: database-nova may only have letters, digits, `-`, `.`, `_` and `~`, and no line break at its end"
        ]
    );
}

#[test]
fn a_key_that_is_gone_or_empty_is_named_with_what_to_do() {
    let held = Credentials::complete("cloud", &[], counter());
    let stored = stored(&held, "cloud");
    let problems = |change: &dyn Fn(&mut [Json])| {
        let mut objects = stored.clone();
        change(&mut objects);
        Credentials::complete("cloud", &objects, counter()).problems()
    };
    assert_eq!(problems(&|_| {}), [""; 0]);
    let without = |it: &mut Json, key: &str| drop(it["data"].as_object_mut().unwrap().remove(key));
    let set = "Secret openstack-accounts has lost its key database-nova: restore it from a backup, or set another one there, which is passed on";
    assert_eq!(
        problems(&|all| without(&mut all[0], "database-nova")),
        [set]
    );
    assert_eq!(
        problems(&|all| all[0]["data"]["database-nova"] = "".into()),
        [set]
    );
    // A Secret of before the annotation.
    let earlier = |all: &mut [Json]| {
        without(&mut all[0], "database-nova");
        all[0]["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("annotations");
    };
    assert_eq!(problems(&earlier), [set]);
    let kept = "Secret openstack-accounts has lost its key identity-admin: restore it from a backup, or delete the cloud with its data";
    assert_eq!(
        problems(&|all| without(&mut all[0], "identity-admin")),
        [kept]
    );
    // Emptied as a whole.
    let keys = ["0", "1"].map(|key| {
        format!("Secret keystone-fernet-keys has lost its key {key}: restore it from a backup, or delete the cloud with its data")
    });
    assert_eq!(problems(&|all| all[1]["data"] = json!({})), keys);
    assert_eq!(problems(&|all| all[1]["data"] = Json::Null), keys);
}

#[test]
fn a_secret_that_is_gone_is_named_while_volumes_of_the_cloud_are_there() {
    let held = Credentials::complete("cloud", &[], counter());
    let mut objects = stored(&held, "cloud");
    objects.remove(0);
    let incomplete = Credentials::complete("cloud", &objects, counter());
    assert_eq!(incomplete.problems(), [""; 0]);
    objects.push(
        json!({"kind": "PersistentVolumeClaim", "metadata": {"name": "mariadb-data",
        "labels": {PART_OF: "cloud", UID: held.uid()}}}),
    );
    let problems = Credentials::complete("cloud", &objects, counter()).problems();
    assert_eq!(
        problems,
        [
            "Secret openstack-accounts, which was made for this cloud, is gone: restore it from a backup, or delete the cloud with its data"
        ]
    );
}
