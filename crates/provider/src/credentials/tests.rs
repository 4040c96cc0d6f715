use super::certificates;

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
