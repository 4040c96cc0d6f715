use api::bootstrap::v1beta2 as spec;
use serde_json::Value;

use super::*;

fn document() -> Document {
    Document {
        command: Command::Init,
        certificates: vec![File::of_root(
            "/etc/kubernetes/pki/ca.key",
            "0600",
            SecretString::from("KEY\n"),
        )],
        files: Vec::new(),
        kubeadm: SecretString::from("kind: X\nname: ${COREOS_OPENSTACK_HOSTNAME}\n"),
        boot_commands: Vec::new(),
        pre_commands: vec!["envsubst < /etc/kubeadm.yml > /tmp/x".to_owned()],
        post_commands: vec!["echo done".to_owned()],
        verbosity: Some(5),
        users: Vec::new(),
        ntp: None,
        disks: None,
        mounts: Vec::new(),
    }
}

fn rendered(document: &Document, more: Option<&str>) -> Result<Value, String> {
    let more = more.map(|text| ContainerLinuxConfig {
        additional_config: Some(text.to_owned()),
        strict: None,
    });
    let text = render(document, more.as_ref());
    let text = text.map_err(|error| operator::words::chain(&error))?;
    Ok(serde_json::from_str(text.expose_secret()).unwrap())
}

/// The content of the file at `path`.
fn content(config: &Value, path: &str) -> String {
    let files = config["storage"]["files"].as_array().unwrap();
    let file = files.iter().find(|it| it["path"] == path).unwrap();
    let url = file["contents"]["source"].as_str().unwrap();
    let mut bytes = Vec::new();
    let mut rest = url.strip_prefix("data:,").unwrap().bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            other => other,
        });
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_unit_runs_kubeadm_once_between_the_commands_of_the_user() {
    let config = rendered(&document(), None).unwrap();
    assert_eq!(config["ignition"]["version"], "2.3.0");
    let unit = &config["systemd"]["units"][0];
    assert_eq!(
        (&unit["name"], &unit["enabled"]),
        (&json!("kubeadm.service"), &json!(true))
    );
    let text = unit["contents"].as_str().unwrap();
    assert!(text.contains("\nConditionPathExists=/etc/kubeadm.yml\n"));
    assert!(text.contains("\nType=oneshot\nExecStart=/etc/kubeadm.sh\n"));
    let script = content(&config, "/etc/kubeadm.sh");
    let lines: Vec<&str> = script.lines().filter(|it| !it.is_empty()).collect();
    assert_eq!(
        lines,
        [
            "#!/bin/bash",
            "set -e",
            "envsubst < /etc/kubeadm.yml > /tmp/x",
            "kubeadm init --config /etc/kubeadm.yml --v 5",
            "mkdir -p /run/cluster-api && echo success > /run/cluster-api/bootstrap-success.complete",
            "mv /etc/kubeadm.yml /tmp/",
            "echo done",
        ]
    );
    assert_eq!(
        content(&config, "/etc/kubeadm.yml"),
        "kind: X\nname: ${COREOS_OPENSTACK_HOSTNAME}\n"
    );
    assert_eq!(content(&config, "/etc/kubernetes/pki/ca.key"), "KEY\n");
}

#[test]
fn files_have_mode_owner_and_decoded_content() {
    let mut document = document();
    document.files = vec![File {
        path: "/etc/a".to_owned(),
        owner: Some("core:docker".to_owned()),
        permissions: Some("0640".to_owned()),
        encoding: Some(Encoding::Base64),
        append: true,
        content: SecretString::from("aGVsbG8K"),
    }];
    let config = rendered(&document, None).unwrap();
    let file = &config["storage"]["files"][1];
    assert_eq!(file["mode"], 0o640);
    assert_eq!(file["append"], true);
    assert_eq!(file["user"], json!({"name": "core"}));
    assert_eq!(file["group"], json!({"name": "docker"}));
    assert_eq!(content(&config, "/etc/a"), "hello\n");
}

#[test]
fn users_time_disks_and_mounts_become_what_flatcar_reads() {
    let mut document = document();
    document.users = vec![User {
        spec: spec::User {
            name: "core".to_owned(),
            groups: Some("wheel, docker".to_owned()),
            sudo: Some("ALL=(ALL) NOPASSWD:ALL".to_owned()),
            lock_password: Some(false),
            ssh_authorized_keys: vec!["ssh-ed25519 AAAA me".to_owned()],
            ..spec::User::default()
        },
        passwd: Some(SecretString::from("$6$x")),
    }];
    document.ntp = Some(spec::Ntp {
        servers: vec!["pool.ntp.org".to_owned()],
        enabled: Some(true),
    });
    document.disks = Some(spec::DiskSetup {
        partitions: vec![spec::Partition {
            device: "/dev/vdb".to_owned(),
            layout: Some(true),
            overwrite: Some(true),
            ..spec::Partition::default()
        }],
        filesystems: vec![spec::Filesystem {
            device: "/dev/vdb1".to_owned(),
            filesystem: "ext4".to_owned(),
            label: Some("etcd".to_owned()),
            ..spec::Filesystem::default()
        }],
    });
    document.mounts = vec![vec!["etcd".to_owned(), "/var/lib/etcd".to_owned()]];
    let config = rendered(&document, None).unwrap();
    let user = &config["passwd"]["users"][0];
    assert_eq!(user["groups"], json!(["wheel", "docker"]));
    assert_eq!(user["passwordHash"], "$6$x");
    assert_eq!(
        content(&config, "/etc/sudoers.d/core"),
        "core ALL=(ALL) NOPASSWD:ALL\n"
    );
    assert!(content(&config, "/etc/ssh/sshd_config").contains("Match User core\n"));
    assert!(content(&config, "/etc/ntp.conf").starts_with("server pool.ntp.org\n"));
    let disk = json!({"device": "/dev/vdb", "wipeTable": true, "partitions": [{}]});
    assert_eq!(config["storage"]["disks"], json!([disk]));
    assert_eq!(
        config["storage"]["filesystems"][0]["mount"]["label"],
        "etcd"
    );
    let units = config["systemd"]["units"].as_array().unwrap();
    let mount = units
        .iter()
        .find(|it| it["name"] == "var-lib-etcd.mount")
        .unwrap();
    let text = mount["contents"].as_str().unwrap();
    assert!(
        text.contains("\nWhat=/dev/vdb1\nWhere=/var/lib/etcd\n"),
        "{text}"
    );
}

#[test]
fn the_config_of_the_user_is_translated_and_appended() {
    let more = "
storage:
  links:
    - path: /etc/extensions/kubernetes.raw
      hard: false
      target: /opt/kubernetes.raw
  files:
    - path: /etc/sysupdate.d/noop.conf
      mode: 0600
      contents:
        remote:
          url: https://example.org/noop.conf
    - path: /etc/motd
      contents:
        inline: hello
systemd:
  units:
    - name: update-engine.service
      mask: true
    - name: kubeadm.service
      enabled: true
      dropins:
        - name: 10-flatcar.conf
          contents: |
            [Unit]
            Requires=coreos-metadata.service
passwd:
  users:
    - name: core
      ssh_authorized_keys: [key]
";
    let config = rendered(&document(), Some(more)).unwrap();
    let link = json!({"filesystem": "root", "path": "/etc/extensions/kubernetes.raw", "hard": false,
        "target": "/opt/kubernetes.raw"});
    assert_eq!(config["storage"]["links"], json!([link]));
    let files = config["storage"]["files"].as_array().unwrap();
    let of = |path: &str| files.iter().find(|it| it["path"] == path).unwrap();
    let noop = of("/etc/sysupdate.d/noop.conf");
    assert_eq!(noop["mode"], 0o600);
    assert_eq!(
        noop["contents"],
        json!({"source": "https://example.org/noop.conf", "verification": {}})
    );
    assert_eq!(of("/etc/motd")["mode"], 0o644);
    assert_eq!(content(&config, "/etc/motd"), "hello");
    let units = config["systemd"]["units"].as_array().unwrap();
    // The unit of kubeadm stays, and gets the additions.
    assert_eq!(units[0]["name"], "kubeadm.service");
    assert_eq!(
        units[1],
        json!({"name": "update-engine.service", "mask": true})
    );
    assert_eq!(units[2]["dropins"][0]["name"], "10-flatcar.conf");
    assert_eq!(
        config["passwd"]["users"][0]["sshAuthorizedKeys"],
        json!(["key"])
    );
    assert_eq!(
        rendered(&document(), Some("")).unwrap(),
        rendered(&document(), None).unwrap()
    );
}

#[test]
fn what_cannot_be_expressed_is_rejected_with_its_field() {
    for (more, message) in [
        ("- a", "the document: is not a mapping"),
        (
            "etcd: {}",
            "etcd: is none of the fields that can be used here: storage",
        ),
        (
            "systemd: {units: [{name: a, content: b}]}",
            "systemd.units[0].content: is none of",
        ),
        (
            "systemd: {units: [{contents: b}]}",
            "systemd.units[0].name: is required",
        ),
        (
            "storage: {files: [{path: /a, mode: u=rw}]}",
            "storage.files[0].mode: is not a number",
        ),
        (
            "storage: {files: [{mode: 0644}]}",
            "storage.files[0].path: is required",
        ),
        (
            "storage: {links: [{path: /a}]}",
            "storage.links[0].target: is required",
        ),
        (
            "storage: {files: [{path: /a, contents: {remote: {}}}]}",
            "storage.files[0].contents.remote.url: is required",
        ),
        ("a: [", "not a YAML document"),
    ] {
        let error = rendered(&document(), Some(more)).unwrap_err();
        let start = "spec.ignition.containerLinuxConfig.additionalConfig: ";
        let rest = error
            .strip_prefix(start)
            .unwrap_or_else(|| panic!("{error}"));
        assert!(rest.starts_with(message), "{rest}");
    }
    let mut gzip = document();
    gzip.files = vec![File {
        encoding: Some(Encoding::Gzip),
        ..File::of_root("/a", "0600", SecretString::from("x"))
    }];
    let error = rendered(&gzip, None).unwrap_err();
    assert!(error.starts_with("spec.files[0].encoding: "), "{error}");
    let mut mounts = document();
    mounts.mounts = vec![vec!["none".to_owned(), "/mnt".to_owned()]];
    let error = rendered(&mounts, None).unwrap_err();
    assert!(error.starts_with("spec.mounts[0]: "), "{error}");
}
