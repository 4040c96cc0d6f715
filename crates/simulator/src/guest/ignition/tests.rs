use serde_json::json;

use super::*;
use crate::guest::user_data;

fn instance() -> Instance {
    Instance {
        id: "5f8a".to_owned(),
        name: "node-1".to_owned(),
        project_id: "p".to_owned(),
        user_data: None,
        fixed_ips: vec!["10.6.0.5".parse().unwrap()],
        availability_zone: "nova".to_owned(),
        metadata: BTreeMap::new(),
        hostname: "node-1.novalocal".to_owned(),
        running: true,
        boot: 0,
        disk: 0,
        vcpus: 2,
        memory_mib: 4096,
        disk_gib: 20,
        image: "flatcar-stable".to_owned(),
    }
}

fn file(path: &str, mode: u32, content: &str) -> Value {
    let content = STANDARD.encode(content);
    json!({"filesystem": "root", "path": path, "mode": mode,
        "contents": {"source": format!("data:;base64,{content}"), "verification": {}}})
}

/// A document as the bootstrap provider writes it.
fn document() -> Value {
    let script = "#!/bin/bash\nset -e\nexport COREOS_OPENSTACK_HOSTNAME=${COREOS_OPENSTACK_HOSTNAME%.*}\n\
        envsubst < /etc/kubeadm.yml > /etc/kubeadm.yml.tmp\nmv /etc/kubeadm.yml.tmp /etc/kubeadm.yml\n\n\
        kubeadm init --config /etc/kubeadm.yml\n";
    let unit = "[Unit]\nConditionPathExists=/etc/kubeadm.yml\n[Service]\nType=oneshot\nExecStart=/etc/kubeadm.sh\n\
        [Install]\nWantedBy=multi-user.target\n";
    let drop_in = "[Unit]\nRequires=containerd.service coreos-metadata.service\n\
        After=containerd.service coreos-metadata.service\n[Service]\nEnvironmentFile=/run/metadata/flatcar\n";
    json!({"ignition": {"version": "2.3.0"},
    "storage": {
        "files": [
            file("/etc/kubeadm.sh", 0o700, script),
            file("/etc/kubeadm.yml", 0o600, "name: ${COREOS_OPENSTACK_HOSTNAME}\nid: ${COREOS_OPENSTACK_INSTANCE_UUID}\n"),
            {"filesystem": "root", "path": "/opt/x.raw", "contents": {"source": "https://example.org/x.raw"}},
        ],
        "links": [{"filesystem": "root", "path": "/etc/extensions/x.raw", "target": "/opt/x.raw"}]},
    "systemd": {"units": [
        {"name": "kubeadm.service", "enabled": true, "contents": unit},
        {"name": "kubeadm.service", "enabled": true, "dropins": [{"name": "10-flatcar.conf", "contents": drop_in}]},
    ]}})
}

fn booted(document: &Value) -> Result<CloudConfig, Error> {
    boot(document.to_string().as_bytes(), &instance())
}

#[test]
fn the_unit_runs_the_script_with_the_metadata_of_the_machine() {
    let config = booted(&document()).unwrap();
    let line = "kubeadm init --config /etc/kubeadm.yml".to_owned();
    assert_eq!(config.commands, [Command::Shell(line)]);
    let kubeadm = String::from_utf8(config.files["/etc/kubeadm.yml"].clone()).unwrap();
    assert_eq!(kubeadm, "name: node-1\nid: 5f8a\n");
    assert_eq!(config.files["/opt/x.raw"], b"");
}

/// Changes the document at a JSON pointer.
fn with(pointer: &str, value: Value) -> Value {
    let mut document = document();
    *document.pointer_mut(pointer).unwrap() = value;
    document
}

#[test]
fn without_an_enabled_unit_kubeadm_does_not_run() {
    let off = with(
        "/systemd/units/1",
        json!({"name": "kubeadm.service", "enabled": false}),
    );
    let masked = with(
        "/systemd/units/1",
        json!({"name": "kubeadm.service", "mask": true}),
    );
    let unneeded = with("/storage/files/1/path", json!("/etc/other.yml"));
    let mut no_install = document();
    let unit = no_install.pointer_mut("/systemd/units/0/contents").unwrap();
    *unit = json!(
        unit.as_str()
            .unwrap()
            .replace("WantedBy=multi-user.target", "")
    );
    for document in [off, masked, unneeded, no_install] {
        assert!(booted(&document).unwrap().commands.is_empty(), "{document}");
    }
}

#[test]
fn what_ignition_or_systemd_refuses_is_refused_here() {
    let drop_in = |text: &str| {
        let drop_in = json!([{"name": "10.conf", "contents": text}]);
        with("/systemd/units/1/dropins", drop_in)
    };
    for (document, message) in [
        (
            with("/ignition/version", json!("3.3.0")),
            "unsupported config version 3.3.0",
        ),
        (
            with("/storage/files/0/path", json!("etc")),
            "storage.files[0].path: path not absolute",
        ),
        (
            with("/storage/files/0/filesystem", json!("data")),
            "storage.files[0].filesystem: ",
        ),
        (
            with("/storage/files/0/contents/source", json!("ftp://x")),
            "invalid url scheme",
        ),
        (
            with("/systemd/units/0/name", json!("kubeadm")),
            "systemd.units[0].name",
        ),
        (
            with("/storage/files/0/mode", json!(0o600)),
            "/etc/kubeadm.sh: Permission denied",
        ),
        (
            with("/storage/files/0/path", json!("/elsewhere")),
            "/etc/kubeadm.sh: No such file or directory",
        ),
        (
            drop_in("[Unit]\nRequires=ghost.service"),
            "Unit ghost.service not found",
        ),
        (
            drop_in("[Service]\nEnvironmentFile=/run/metadata/flatcar"),
            "/run/metadata/flatcar: No such file",
        ),
    ] {
        let error = booted(&document).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    assert!(matches!(
        boot(b"#cloud-config\n", &instance()),
        Err(Error::Json(_))
    ));
}

#[test]
fn a_machine_with_cloud_init_does_not_read_ignition() {
    let raw = document().to_string();
    let parsed = user_data::parse(raw.as_bytes(), &user_data::facts(&instance()));
    assert_eq!(parsed.unwrap_err(), user_data::Error::Unknown);
    let other = Instance {
        image: "ubuntu-24.04-kubernetes".to_owned(),
        ..instance()
    };
    assert!(is_flatcar(&instance()) && !is_flatcar(&other));
}
