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
