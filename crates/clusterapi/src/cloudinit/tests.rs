use api::bootstrap::v1beta2 as spec;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::{Command, Document, File, User, render};

fn document(command: Command) -> Document {
    Document {
        command,
        certificates: Vec::new(),
        files: Vec::new(),
        kubeadm: SecretString::from("---\nkind: X\n"),
        boot_commands: Vec::new(),
        pre_commands: Vec::new(),
        post_commands: Vec::new(),
        verbosity: None,
        users: Vec::new(),
        ntp: None,
        disks: None,
        mounts: Vec::new(),
    }
}

fn full() -> Document {
    Document {
        certificates: vec![
            File::of_root(
                "/etc/kubernetes/pki/ca.crt",
                "0640",
                SecretString::from("CERT\nMORE\n"),
            ),
            File::of_root(
                "/etc/kubernetes/pki/ca.key",
                "0600",
                SecretString::from("KEY\n"),
            ),
        ],
        files: vec![File {
            path: "/etc/cloud.conf".to_owned(),
            owner: Some("1000:1000".to_owned()),
            permissions: Some("0600".to_owned()),
            encoding: Some(spec::Encoding::GzipBase64),
            append: true,
            content: SecretString::from("H4sI"),
        }],
        kubeadm: SecretString::from("kind: X\nname: '{{ local_hostname }}'\n"),
        boot_commands: vec!["echo early".to_owned()],
        pre_commands: vec!["echo \"{{ instance_id }}\" > /a".to_owned()],
        post_commands: vec!["echo done".to_owned()],
        verbosity: Some(5),
        users: vec![User {
            spec: spec::User {
                name: "core".to_owned(),
                sudo: Some("ALL=(ALL) NOPASSWD:ALL".to_owned()),
                lock_password: Some(false),
                ssh_authorized_keys: vec!["ssh-ed25519 AAAA me".to_owned()],
                ..spec::User::default()
            },
            passwd: Some(SecretString::from("$6$x")),
        }],
        ntp: Some(spec::Ntp {
            servers: vec!["pool.ntp.org".to_owned()],
            enabled: Some(true),
        }),
        disks: Some(spec::DiskSetup {
            partitions: vec![spec::Partition {
                device: "/dev/vdb".to_owned(),
                layout: Some(true),
                overwrite: Some(false),
                table_type: Some(spec::TableType::Gpt),
                ..spec::Partition::default()
            }],
            filesystems: vec![spec::Filesystem {
                device: "/dev/vdb".to_owned(),
                filesystem: "ext4".to_owned(),
                label: Some("etcd".to_owned()),
                extra_opts: vec!["-E".to_owned(), "lazy_itable_init=1".to_owned()],
                ..spec::Filesystem::default()
            }],
        }),
        mounts: vec![vec!["LABEL=etcd".to_owned(), "/var/lib/etcd".to_owned()]],
        ..document(Command::Init)
    }
}

#[test]
fn a_full_document_has_every_section_in_order() {
    insta::assert_snapshot!(render(&full()).expose_secret());
}

#[test]
fn a_small_document_has_only_what_a_join_needs() {
    insta::assert_snapshot!(render(&document(Command::Join)).expose_secret());
}

#[test]
fn the_document_is_yaml_after_jinja() {
    let text = render(&full())
        .expose_secret()
        .replace("{{ local_hostname }}", "node-1");
    let read: Value = serde_saphyr::from_str(&text).unwrap();
    let files = read["write_files"].as_array().unwrap();
    assert_eq!(files.len(), 5);
    assert_eq!(files[0]["content"], "CERT\nMORE\n");
    assert_eq!(files[3]["content"], "kind: X\nname: 'node-1'\n");
    assert_eq!(read["runcmd"].as_array().unwrap().len(), 3);
    assert_eq!(read["users"][0]["passwd"], "$6$x");
}

#[test]
fn secrets_do_not_show_in_debug_output() {
    let debug = format!("{:?}", full());
    for secret in ["KEY", "H4sI", "$6$x", "local_hostname"] {
        assert!(!debug.contains(secret), "{debug}");
    }
}
