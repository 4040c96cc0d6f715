use std::collections::BTreeMap;

use super::*;

const UID: &str = "0d4f3c2b-uid-of-kube-system";

fn now() -> Timestamp {
    "2026-11-28T12:00:00Z".parse().unwrap()
}

fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

fn thing(form: Form) -> Thing {
    Thing {
        cloud: String::new(),
        form,
        id: "id".to_owned(),
        name: "pvc-11111111".to_owned(),
        size: 1,
        status: "available".to_owned(),
        created_at: "2026-11-28T10:59:59.000000".to_owned(),
        metadata: pairs(&[
            ("cinder.csi.openstack.org/cluster", "blue"),
            ("cinder.csi.openstack.org/cluster-uid", UID),
            ("csi.storage.k8s.io/pv/name", "pvc-11111111"),
            (
                "csi.storage.k8s.io/volumesnapshotcontent/name",
                "snapcontent-1",
            ),
        ]),
        used_by: Vec::new(),
    }
}

fn claimed() -> Claimed {
    Claimed {
        cluster_uid: UID.to_owned(),
        handles: pairs(&[("other", "PersistentVolume/other")]),
        names: [(Form::Volume, "pvc-2".to_owned())].into(),
        uids: pairs(&[("22222222", "PersistentVolumeClaim/x in default")]),
    }
}

fn rules() -> Rules {
    Rules {
        cluster: "blue".to_owned(),
        older_than: Duration::from_secs(3600),
        without_uid: false,
    }
}

fn kept(words: &str) -> Verdict {
    Verdict::Kept(words.to_owned())
}

fn held(object: &str) -> Verdict {
    Verdict::Held(object.to_owned())
}

#[test]
fn an_orphan_has_the_mark_and_nothing_names_it() {
    for form in [Form::Volume, Form::Snapshot, Form::Backup] {
        let verdict = judge(&thing(form), &claimed(), &rules(), now());
        assert_eq!(verdict, Verdict::Orphan, "{form:?}");
    }
}

#[test]
fn nothing_is_ours_by_its_name_alone() {
    let volume = thing(Form::Volume);
    for metadata in [
        pairs(&[]),
        pairs(&[("csi.storage.k8s.io/pv/name", "pvc-11111111")]),
        pairs(&[("cinder.csi.openstack.org/cluster", "red")]),
        pairs(&[("cinder.csi.openstack.org/cluster-uid", UID)]),
        pairs(&[
            ("cinder.csi.openstack.org/cluster", "blue"),
            ("cinder.csi.openstack.org/cluster-uid", "of another cluster"),
        ]),
    ] {
        let other = Thing {
            metadata,
            ..volume.clone()
        };
        let rules = Rules {
            without_uid: true,
            ..rules()
        };
        assert_eq!(judge(&other, &claimed(), &rules, now()), Verdict::Foreign);
    }
    // A cluster without an identity owns nothing.
    let nobody = Claimed::default();
    assert_eq!(judge(&volume, &nobody, &rules(), now()), Verdict::Foreign);
}

#[test]
fn the_name_of_a_cluster_is_enough_only_if_the_user_says_so() {
    let volume = Thing {
        metadata: pairs(&[("cinder.csi.openstack.org/cluster", "blue")]),
        ..thing(Form::Volume)
    };
    let verdict = judge(&volume, &claimed(), &rules(), now());
    assert!(
        matches!(&verdict, Verdict::Kept(why) if why.contains("--without-uid")),
        "{verdict:?}"
    );
    let rules = Rules {
        without_uid: true,
        ..rules()
    };
    assert_eq!(judge(&volume, &claimed(), &rules, now()), Verdict::Orphan);
}

#[test]
fn what_an_object_names_or_waits_for_is_held() {
    let volume = thing(Form::Volume);
    let named = Claimed {
        handles: pairs(&[("id", "PersistentVolume/x")]),
        ..claimed()
    };
    let verdict = judge(&volume, &named, &rules(), now());
    assert_eq!(verdict, held("PersistentVolume/x"));
    let of_name = Claimed {
        names: [(Form::Volume, "pvc-11111111".to_owned())].into(),
        ..claimed()
    };
    let verdict = judge(&volume, &of_name, &rules(), now());
    assert_eq!(verdict, held("PersistentVolume/pvc-11111111"));
    // Its claim has no PersistentVolume yet.
    let waiting = Claimed {
        uids: pairs(&[("11111111", "PersistentVolumeClaim/y in default")]),
        ..claimed()
    };
    let verdict = judge(&volume, &waiting, &rules(), now());
    assert_eq!(verdict, held("PersistentVolumeClaim/y in default"));
    let content = Claimed {
        names: [(Form::Snapshot, "snapcontent-1".to_owned())].into(),
        ..claimed()
    };
    for form in [Form::Snapshot, Form::Backup] {
        let verdict = judge(&thing(form), &content, &rules(), now());
        assert_eq!(verdict, held("VolumeSnapshotContent/snapcontent-1"));
    }
    // That name is of a snapshot.
    assert_eq!(judge(&volume, &content, &rules(), now()), Verdict::Orphan);
}

#[test]
fn what_is_young_used_or_in_motion_is_kept() {
    let volume = thing(Form::Volume);
    type Change = fn(&mut Thing);
    let cases: [(Change, &str); 7] = [
        (
            |it| it.created_at = "2026-11-28T11:00:01".to_owned(),
            "it is too young",
        ),
        (
            |it| it.created_at = "2026-11-29T11:00:00".to_owned(),
            "its age is not known",
        ),
        (|it| it.created_at = String::new(), "its age is not known"),
        (|it| it.status = "deleting".to_owned(), "it is deleting"),
        (|it| it.status = "in-use".to_owned(), "it is in-use"),
        (
            |it| it.status = "error_deleting".to_owned(),
            "it is error_deleting",
        ),
        (
            |it| it.used_by = vec!["server s has it".to_owned()],
            "server s has it",
        ),
    ];
    for (change, words) in cases {
        let mut changed = volume.clone();
        change(&mut changed);
        assert_eq!(judge(&changed, &claimed(), &rules(), now()), kept(words));
    }
    let mut failed = volume;
    failed.status = "error".to_owned();
    assert_eq!(judge(&failed, &claimed(), &rules(), now()), Verdict::Orphan);
}
