use std::io::Write as _;

use proptest::prelude::*;

use super::*;

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn facts() -> Value {
    json!({"instance_id": "i-1", "local_hostname": "node-0"})
}

fn file(config: &CloudConfig, path: &str) -> String {
    String::from_utf8(config.files[path].clone()).unwrap()
}

const DOCUMENT: &str = r#"## template: jinja
#cloud-config

write_files:
-   path: /etc/kubernetes/pki/ca.crt
    owner: root:root
    permissions: '0640'
    content: |
      -----BEGIN CERTIFICATE-----
      AAAA
      -----END CERTIFICATE-----

-   path: /run/kubeadm/kubeadm.yaml
    owner: root:root
    permissions: '0640'
    content: |
      ---
      kind: InitConfiguration
      nodeRegistration:
        name: '{{ local_hostname }}'
        kubeletExtraArgs:
        - name: provider-id
          value: openstack:///'{{ instance_id }}'
-   path: /run/cluster-api/placeholder
    owner: root:root
    permissions: '0640'
    content: "This placeholder file is used to create the /run/cluster-api sub directory in a way that is compatible with both Linux and Windows (mkdir -p /run/cluster-api does not work with Windows)"
runcmd:
  - "echo hello"
  - 'kubeadm init --config /run/kubeadm/kubeadm.yaml  && echo success > /run/cluster-api/bootstrap-success.complete'
  - [touch, /tmp/x, 5]
"#;

#[test]
fn the_document_of_the_kubeadm_provider_is_read_with_its_variables() {
    let config = parse(DOCUMENT.as_bytes(), &facts()).unwrap();
    assert_eq!(
        file(&config, "/run/kubeadm/kubeadm.yaml"),
        "---\nkind: InitConfiguration\nnodeRegistration:\n  name: 'node-0'\n  kubeletExtraArgs:\n  - name: provider-id\n    value: openstack:///'i-1'\n"
    );
    assert!(file(&config, "/etc/kubernetes/pki/ca.crt").contains("AAAA"));
    assert_eq!(config.commands.len(), 3);
    assert_eq!(
        config.commands[2],
        Command::Program(vec![
            "touch".to_owned(),
            "/tmp/x".to_owned(),
            "5".to_owned()
        ])
    );
    assert_eq!(parse(&gzip(DOCUMENT.as_bytes()), &facts()).unwrap(), config);
}

#[test]
fn without_the_jinja_line_braces_stay() {
    let text = "#cloud-config\nwrite_files:\n- path: /a\n  content: '{{ instance_id }}'\n";
    assert_eq!(
        file(&parse(text.as_bytes(), &facts()).unwrap(), "/a"),
        "{{ instance_id }}"
    );
}

#[test]
fn files_are_decoded_and_appended_in_order() {
    let packed = STANDARD.encode(gzip(b"packed"));
    let text = format!(
        "#cloud-config\nwrite_files:\n- {{path: /b, encoding: b64, content: aGVsbG8=}}\n- {{path: /b, append: true, content: ' world'}}\n- {{path: /g, encoding: gzip+base64, content: {packed}}}\n- {{path: /o, content: first}}\n- {{path: /o, content: second}}\n- {{path: /empty}}\n"
    );
    let config = parse(text.as_bytes(), &facts()).unwrap();
    assert_eq!(file(&config, "/b"), "hello world");
    assert_eq!(file(&config, "/g"), "packed");
    assert_eq!(file(&config, "/o"), "second");
    assert_eq!(file(&config, "/empty"), "");
}

#[test]
fn what_cannot_be_used_says_what_and_where() {
    for (text, message) in [
        (
            "Content-Type: multipart/mixed; boundary=x\n",
            "multi-part MIME",
        ),
        ("MIME-Version: 1.0\n", "multi-part MIME"),
        (
            "{\"ignition\": {\"version\": \"3.0.0\"}}",
            "no format that cloud-init knows",
        ),
        ("hello", "no format that cloud-init knows"),
        (
            "## template: jinja\n#cloud-config\na: {% if x %}\n",
            "line 2",
        ),
        ("#cloud-config\na: [", "not valid YAML"),
        ("#cloud-config\n- a\n", "not a mapping"),
        (
            "#cloud-config\nwrite_files: {}\n",
            "write_files: expected a list",
        ),
        (
            "#cloud-config\nwrite_files:\n- content: x\n",
            "write_files[0].path",
        ),
        (
            "#cloud-config\nwrite_files:\n- {path: /a, encoding: rot13, content: x}\n",
            "rot13",
        ),
        (
            "#cloud-config\nwrite_files:\n- {path: /a, encoding: b64, content: '*'}\n",
            "not base64",
        ),
        (
            "#cloud-config\nwrite_files:\n- {path: /a, permissions: 'rwx'}\n",
            "octal",
        ),
        ("#cloud-config\nruncmd:\n- {a: b}\n", "runcmd[0]"),
    ] {
        let error = parse(text.as_bytes(), &facts()).unwrap_err().to_string();
        assert!(
            error.contains(message),
            "{text:?} gave {error:?}, expected {message:?}"
        );
    }
    assert_eq!(parse(&[0xff, 0xfe, 0x00], &facts()), Err(Error::NotText));
    assert!(matches!(
        parse(&[0x1f, 0x8b, 1], &facts()),
        Err(Error::Gzip(_))
    ));
    assert_eq!(
        parse(&gzip(&vec![b' '; 5 << 20]), &facts()),
        Err(Error::TooLarge)
    );
}

#[test]
fn broken_yaml_is_reported_without_showing_it() {
    let text = "#cloud-config\nwrite_files:\n- {path: /a, content: hunter2\n";
    let error = parse(text.as_bytes(), &facts()).unwrap_err().to_string();
    assert!(
        error.contains("not valid YAML") && !error.contains("hunter2"),
        "{error}"
    );
}

#[test]
fn nothing_and_scripts_ask_for_nothing() {
    assert_eq!(parse(b"", &facts()).unwrap(), CloudConfig::default());
    assert_eq!(
        parse(b"#cloud-config\n", &facts()).unwrap(),
        CloudConfig::default()
    );
    assert!(parse(b"#!/bin/sh\ntrue\n", &facts()).unwrap().script);
}

#[test]
fn secrets_in_files_are_not_printed_by_debug() {
    let config = parse(DOCUMENT.as_bytes(), &facts()).unwrap();
    assert!(!format!("{config:?}").contains("AAAA"));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(raw in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse(&raw, &facts());
        let mut packed = vec![0x1f, 0x8b];
        packed.extend(&raw);
        let _ = parse(&packed, &facts());
    }

    #[test]
    fn arbitrary_cloud_configs_never_panic(body in "[-\\[\\]{}:,'\"|>& \na-z*!#?0-9_]{0,120}") {
        let _ = parse(format!("#cloud-config\n{body}").as_bytes(), &facts());
        let _ = parse(format!("## template: jinja\n#cloud-config\nwrite_files:\n{body}").as_bytes(), &facts());
    }
}
