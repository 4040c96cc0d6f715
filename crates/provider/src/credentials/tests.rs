use super::{certificates, with_authorities};

#[test]
fn a_cacert_holds_certificates_or_nothing() {
    assert_eq!(certificates(None), Ok(None));
    assert_eq!(certificates(Some(" \n")), Ok(None));
    let pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----";
    assert_eq!(certificates(Some(pem)), Ok(Some(pem)));
    let why = certificates(Some("/etc/ssl/ca.pem")).unwrap_err();
    assert!(why.contains("BEGIN CERTIFICATE"), "{why}");
}

#[test]
fn texts_of_the_cloud_escape_what_those_of_kubernetes_objects_do() {
    for letter in char::MIN..=char::MAX {
        let text = letter.to_string();
        let error = openstack::Error::new(openstack::ErrorKind::Protocol, &text);
        assert_eq!(error.message(), api::printable::line(&text));
    }
}

#[test]
fn authorities_of_the_flag_are_for_clouds_without_any() {
    let parse = |more: &str| {
        let text = format!(
            "clouds:\n  c:\n    auth: {{auth_url: 'https://k', username: u, password: p, project_name: d, user_domain_name: D, project_domain_name: D}}\n{more}"
        );
        openstack::CloudConfig::parse(&text, "c").unwrap()
    };
    let pem = |config: openstack::CloudConfig| with_authorities(config, Some("flag")).ca_pem;
    assert_eq!(pem(parse("")).as_deref(), Some(&b"flag"[..]));
    let of_secret = parse("").with_ca(Some("secret"));
    assert_eq!(pem(of_secret).as_deref(), Some(&b"secret"[..]));
    assert_eq!(pem(parse("    cacert: /etc/ca.pem\n")), None);
    assert_eq!(with_authorities(parse(""), None).ca_pem, None);
}
