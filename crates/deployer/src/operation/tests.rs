use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use super::*;
use crate::desired::desired;
use crate::desired::tests::{cloud, full, held};
use crate::parameters::Parameters;

/// A certificate that no test opens.
pub(crate) fn certificate(kind: &'static rcgen::SignatureAlgorithm) -> String {
    let key = rcgen::KeyPair::generate_for(kind).unwrap();
    let parameters = rcgen::CertificateParams::new(vec!["backup".to_owned()]).unwrap();
    parameters.self_signed(&key).unwrap().pem()
}

fn spec() -> Json {
    let mut spec = full(Release::Gazpacho);
    let certificate = certificate(&rcgen::PKCS_ECDSA_P256_SHA256);
    spec["backup"] = json!({"claimName": "backups", "certificate": certificate});
    spec
}

fn asked(from: Option<&str>) -> Operation {
    Operation {
        name: "first".to_owned(),
        uid: "uid-1".to_owned(),
        from: from.map(str::to_owned),
    }
}

fn claim() -> Json {
    json!({"kind": "PersistentVolumeClaim", "metadata": {"name": "backups"}})
}

fn stages(from: Option<&str>) -> Stages {
    let cloud = cloud(&spec());
    let whole = desired(&cloud, &held());
    Stages::new(&cloud, &held(), &whole, &asked(from), &[claim()]).unwrap()
}

#[test]
fn a_backup_needs_a_volume_and_a_certificate_that_encrypts() {
    let wrong = |field: &str, value: Json| {
        let mut spec = spec();
        spec["backup"][field] = value;
        Parameters::read(&spec).unwrap_err().to_string()
    };
    for (field, value) in [
        ("claimName", json!("Not A Name")),
        ("keep", json!(0)),
        ("certificate", json!("none")),
        ("certificate", json!(certificate(&rcgen::PKCS_ED25519))),
        (
            "certificate",
            json!(certificate(&rcgen::PKCS_ECDSA_P256_SHA256).repeat(2)),
        ),
    ] {
        let text = wrong(field, value);
        assert!(text.starts_with(&format!("backup.{field}: ")), "{text}");
    }
    let bare = cloud(&full(Release::Gazpacho));
    let whole = desired(&bare, &held());
    let lacks = |cloud: &Cloud, objects: &[Json]| {
        Stages::new(cloud, &held(), &whole, &asked(None), objects).unwrap_err()
    };
    assert!(lacks(&bare, &[claim()]).starts_with("spec.backup of the cloud cloud is not set"));
    let lost = lacks(&cloud(&spec()), &[]);
    assert!(
        lost.contains("there is no PersistentVolumeClaim backups"),
        "{lost}"
    );
}

#[test]
fn a_task_may_reach_the_stores_and_its_secrets_are_in_secrets() {
    for (from, phase) in [
        (None, Phase::Backup),
        (Some("first"), Phase::Check),
        (Some("first"), Phase::Load),
    ] {
        let stages = stages(from);
        let step = &stages.tasks[&phase];
        let names: Vec<String> = step
            .objects
            .iter()
            .map(|it| it.reference().to_string())
            .collect();
        for store in ["mariadb", "ovn-nb", "memcached"] {
            let policy = format!("NetworkPolicy operation-{store}");
            assert!(names.contains(&policy), "{names:?}");
        }
        let job = step.objects.last().unwrap();
        assert_eq!(job.reference().kind, ObjectKind::Job);
        let held = held();
        for object in &step.objects {
            let public = object.public().to_string();
            assert_eq!(held.masked(&public), public, "{}", object.reference());
        }
        let mounts = job.public().to_string();
        let has_keys = mounts.contains("/keys/openstack-accounts");
        assert_eq!(has_keys, phase == Phase::Backup);
    }
}

#[test]
fn a_restore_keeps_stores_and_what_they_need_and_no_program_of_a_service() {
    let stages = stages(Some("first"));
    let names: BTreeSet<&str> = stages
        .base
        .steps
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    let expected = [
        "configuration",
        "mariadb",
        "mariadb-install",
        "memcached",
        "ovn-nb",
        "ovn-nb-create",
        "secrets",
    ];
    assert_eq!(names, expected.into());
    let running = |name: &str| json!({"kind": "Deployment", "metadata": {"name": name, "labels": {UID: held().uid()}}});
    let uid = held().uid().to_owned();
    assert!(!is_stopped(&uid, &[running("nova-api")], &[]));
    assert!(is_stopped(&uid, &[running("edge")], &[]));
    let pod = |phase: &str| {
        json!({"metadata": {"labels": {UID: uid, "app.kubernetes.io/name": "nova-api"}},
            "status": {"phase": phase}})
    };
    assert!(!is_stopped(&uid, &[], &[pod("Running")]));
    assert!(is_stopped(&uid, &[], &[pod("Succeeded")]));
}

#[test]
fn the_task_of_a_restore_is_the_same_whatever_else_changes() {
    let of = |spec: &Json| {
        let cloud = cloud(spec);
        let whole = desired(&cloud, &held());
        let stages = Stages::new(&cloud, &held(), &whole, &asked(Some("first")), &[claim()]);
        stages.unwrap().tasks[&Phase::Load]
            .objects
            .last()
            .unwrap()
            .reference()
            .clone()
    };
    let spec = spec();
    let mut other = spec.clone();
    other["services"]["nova"] = json!({"config": {"DEFAULT": {"debug": true}}});
    assert_eq!(of(&spec), of(&other));
}

#[test]
fn a_report_is_awaited_as_long_as_a_pod_of_the_task_is_there() {
    let stages = stages(None);
    let job = stages.tasks[&Phase::Backup]
        .objects
        .last()
        .unwrap()
        .exposed();
    let mut job = job.clone();
    job["metadata"]["uid"] = "job-1".into();
    let objects = [job];
    let pod = |terminated: Json| {
        json!({"metadata": {"ownerReferences": [{"uid": "job-1"}]},
            "status": {"containerStatuses": [{"state": {"terminated": terminated}}]}})
    };
    let good = json!({"exitCode": 0,
        "message": r#"{"backup": "first", "digest": "0ad0", "size": 1, "removed": []}"#});
    let failed = pod(json!({"exitCode": 1, "message": "No space left"}));
    let running = json!({"metadata": {"ownerReferences": [{"uid": "job-1"}]}});
    let other = json!({"metadata": {"ownerReferences": [{"uid": "job-2"}]}});
    assert!(!stages.is_ahead(&objects, std::slice::from_ref(&other)));
    assert!(stages.is_ahead(&objects, &[failed.clone(), running]));
    let pods = [other, failed, pod(good)];
    assert!(!stages.is_ahead(&objects, &pods));
    assert_eq!(stages.report(&objects, &pods).unwrap().digest, "0ad0");
    assert_eq!(stages.report(&[], &pods), None);
    assert!(!stages.is_ahead(&[], &pods));
}

/// A volume, and programs that stand for those of the image: the real ones are in `tests/deployer/backup`.
struct Volume(tempfile::TempDir);

impl Volume {
    fn new() -> Self {
        let volume = Self(tempfile::tempdir().unwrap());
        for directory in [
            "backups",
            "etc/accounts",
            "etc/backup",
            "dev",
            "bin",
            "keys/openstack-accounts",
        ] {
            std::fs::create_dir_all(volume.path(directory)).unwrap();
        }
        std::fs::write(volume.path("keys/openstack-accounts/names"), "a password").unwrap();
        volume.program(
            "mariadb-dump",
            "echo 'CREATE DATABASE nova;'; echo '-- Dump completed'",
        );
        volume.program("ovsdb-client", "echo networks");
        volume.program(
            "openssl",
            "while test \"$1\" != -out; do shift; done; echo encrypted >$2",
        );
        volume
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.0.path().join(path)
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs the program for this cloud; the end of what it says if it fails.
    fn run(&self, word: &str, change: Json) -> Result<Report, String> {
        let mut about = json!({"name": "first", "stamped": false, "operation": "uid-1", "cloud": "cloud",
            "uid": "uid-a", "release": "2026.1", "databases": ["nova"], "keys": {"a/b": "00"}, "keep": 2,
            "secrets": {"openstack-accounts": {"name": "openstack-accounts"}},
            "northbound": "tcp:ovn:6641", "cache": "memcached:11211"});
        about
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        std::fs::write(self.path("etc/backup/cloud.json"), about.to_string()).unwrap();
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/operation/backup.py");
        let path = format!(
            "{}:{}",
            self.path("bin").display(),
            std::env::var("PATH").unwrap()
        );
        let done = Command::new("python3")
            .args([program.to_str().unwrap(), word])
            .env("PATH", path)
            .env("BACKUP_ROOT", self.0.path())
            .output()
            .unwrap();
        match done.status.success() {
            true => {
                let text = std::fs::read_to_string(self.path("dev/termination-log")).unwrap();
                Ok(serde_json::from_str(&text).unwrap())
            }
            false => Err(String::from_utf8(done.stderr).unwrap()),
        }
    }

    fn names(&self) -> Vec<String> {
        let all = std::fs::read_dir(self.path("backups")).unwrap();
        let mut names: Vec<String> = all
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn a_backup_has_its_name_when_it_is_whole_and_is_made_once() {
    let volume = Volume::new();
    volume.program("ovsdb-client", "echo cannot connect >&2; exit 1");
    let error = volume.run("backup", json!({})).unwrap_err();
    assert_eq!(error, "ovsdb-client has failed: cannot connect\n");
    volume.program("mariadb-dump", "echo half");
    volume.program("ovsdb-client", "echo networks");
    let error = volume.run("backup", json!({})).unwrap_err();
    assert!(error.contains("databases.sql.gz has no end"), "{error}");
    assert!(
        volume.names().iter().all(|it| it.starts_with(".part-")),
        "{:?}",
        volume.names()
    );
    volume.program("mariadb-dump", "echo '-- Dump completed'");
    let report = volume.run("backup", json!({})).unwrap();
    assert_eq!((report.backup.as_str(), report.digest.len()), ("first", 64));
    assert_eq!(volume.names(), ["first"]);
    // Killed after its end: the same is text again.
    assert_eq!(volume.run("backup", json!({})).unwrap(), report);
    let error = volume
        .run("backup", json!({"operation": "uid-2"}))
        .unwrap_err();
    assert!(error.contains("has a backup first already"), "{error}");
}

#[test]
fn a_load_that_is_not_read_to_the_end_has_failed() {
    let volume = Volume::new();
    volume.program("mariadb", "head -n 1 >/dev/null");
    let nothing = volume.path("etc/accounts/client.cnf");
    std::fs::write(nothing, "").unwrap();
    volume.run("backup", json!({})).unwrap();
    volume.program("ovsdb-client", "echo it was asked >&2; exit 1");
    let error = volume.run("load", json!({})).unwrap_err();
    assert_eq!(error, "mariadb has not read all of databases.sql.gz\n");
    volume.program(
        "mariadb",
        "cat >/dev/null; echo lost connection >&2; exit 1",
    );
    let error = volume.run("load", json!({})).unwrap_err();
    assert_eq!(error, "mariadb has failed: lost connection\n");
}

#[test]
fn what_another_cloud_is_writing_stays_and_what_this_one_left_goes() {
    let volume = Volume::new();
    for name in [".part-uid-b-host", ".part-uid-a-host"] {
        std::fs::create_dir(volume.path("backups").join(name)).unwrap();
    }
    volume.run("backup", json!({})).unwrap();
    assert_eq!(volume.names(), [".part-uid-b-host", "first"]);
}

#[test]
fn a_report_fits_in_the_status_of_a_pod_and_an_error_of_the_system_is_one_line() {
    let volume = Volume::new();
    let name = |number: usize| format!("{}-{number:02}", "long".repeat(60));
    for number in 0..17 {
        let change = json!({"name": name(number), "operation": number.to_string(), "keep": 100});
        volume.run("backup", change).unwrap();
    }
    let change = json!({"name": name(17), "operation": "last", "keep": 1});
    let report = volume.run("backup", change).unwrap();
    let text = std::fs::read(volume.path("dev/termination-log")).unwrap();
    assert!(
        text.len() <= 4096 && report.removed.len() > 10,
        "{report:?}"
    );
    assert_eq!(volume.names(), [name(17)]);
    let long = json!({"name": "x".repeat(300), "operation": "long"});
    let error = volume.run("backup", long).unwrap_err();
    assert!(
        error.lines().count() == 1 && error.contains("File name too long"),
        "{error}"
    );
}

#[test]
fn a_backup_that_is_not_of_this_cloud_or_not_whole_is_refused() {
    let volume = Volume::new();
    volume.run("backup", json!({})).unwrap();
    volume.run("check", json!({"operation": "uid-2"})).unwrap();
    let refused = |change: Json| volume.run("check", change).unwrap_err();
    for (change, words) in [
        (
            json!({"uid": "uid-b"}),
            "is of another cloud: of cloud with the uid uid-a",
        ),
        (
            json!({"release": "2025.1"}),
            "is of 2026.1, and the cloud of 2025.1",
        ),
        (
            json!({"keys": {"a/b": "01"}}),
            "are not those of the backup first: a/b",
        ),
        (
            json!({"databases": ["nova", "cinder"]}),
            "has the databases nova, and the cloud nova, cinder",
        ),
        (
            json!({"name": "other"}),
            "there is no backup other on the volume; there are: first",
        ),
        (
            json!({"name": "../backups/first"}),
            "there is no backup ../backups/first",
        ),
    ] {
        let text = refused(change);
        assert!(text.contains(words), "{text}");
    }
    // A key that a newer version has made is none of the backup's.
    volume
        .run("check", json!({"keys": {"a/b": "00", "a/c": "02"}}))
        .unwrap();
    for part in ["cloud.json", "databases.sql.gz", "ovn-nb.db", "keys.cms"] {
        let path = volume.path("backups/first").join(part);
        let content = std::fs::read(&path).unwrap();
        std::fs::write(&path, &content[..content.len() / 2]).unwrap();
        let text = refused(json!({}));
        assert!(text.contains(&format!("is broken: {part}")), "{text}");
        std::fs::remove_file(&path).unwrap();
        let text = refused(json!({}));
        assert!(text.contains(&format!("is not whole: {part}")), "{text}");
        std::fs::write(&path, content).unwrap();
    }
    volume.run("check", json!({})).unwrap();
}

#[test]
fn the_oldest_backups_of_this_cloud_go_and_those_of_others_stay() {
    let volume = Volume::new();
    let other = json!({"uid": "uid-b", "name": "other", "operation": "o"});
    volume.run("backup", other).unwrap();
    let mut removed = Vec::new();
    for name in ["a", "b", "c", "d"] {
        let report = volume
            .run("backup", json!({"name": name, "operation": name}))
            .unwrap();
        removed.extend(report.removed);
        // In the order of their times, which have seconds.
        let about = volume.path("backups").join(name).join("cloud.json");
        let text = std::fs::read_to_string(&about).unwrap();
        let mut document: Json = serde_json::from_str(&text).unwrap();
        document["taken"] = format!("2026-11-29T00:00:0{name}").into();
        std::fs::write(&about, document.to_string()).unwrap();
    }
    assert_eq!(removed, ["a", "b"]);
    assert_eq!(volume.names(), ["c", "d", "other"]);
}
