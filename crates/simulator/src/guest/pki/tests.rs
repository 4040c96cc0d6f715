use base64::Engine as _;
use proptest::prelude::*;
use rcgen::BasicConstraints;

use super::*;

/// The files of a control plane machine, with new ECDSA CAs.
pub(crate) fn files() -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for name in ["ca", "etcd/ca", "front-proxy-ca"] {
        let (certificate, key) = self_signed(true);
        files.insert(format!("{DIRECTORY}/{name}.crt"), certificate.into_bytes());
        files.insert(
            format!("{DIRECTORY}/{name}.key"),
            key.serialize_pem().into_bytes(),
        );
    }
    let key = KeyPair::generate().unwrap();
    files.insert(
        format!("{DIRECTORY}/sa.key"),
        key.serialize_pem().into_bytes(),
    );
    files.insert(
        format!("{DIRECTORY}/sa.pub"),
        key.public_key_pem().into_bytes(),
    );
    files
}

type Files = BTreeMap<String, Vec<u8>>;

fn self_signed(ca: bool) -> (String, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "kubernetes");
    if ca {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    (params.self_signed(&key).unwrap().pem(), key)
}

/// The certificate and key, as PEM, of a client with a certificate of the cluster's CA.
pub(crate) fn client(
    files: &BTreeMap<String, Vec<u8>>,
    name: &str,
    group: &str,
) -> (String, String) {
    client_under("ca", files, name, group)
}

/// The same with another CA.
pub(crate) fn client_under(
    authority_name: &str,
    files: &BTreeMap<String, Vec<u8>>,
    name: &str,
    group: &str,
) -> (String, String) {
    let ca = authority(files, authority_name, now()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params
        .distinguished_name
        .push(DnType::OrganizationName, group);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let issuer = Issuer::from_ca_cert_der(&ca.der, &ca.key).unwrap();
    (
        params.signed_by(&key, &issuer).unwrap().pem(),
        key.serialize_pem(),
    )
}

pub(crate) fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

#[test]
fn a_complete_set_is_accepted_and_issues_server_certificates() {
    let pki = Pki::load(&files(), false, now()).unwrap();
    assert!(pki.ca.hash().starts_with("sha256:"));
    assert_eq!(pki.ca.hash().len(), 7 + 64);
    pki.ca
        .server_config(&["127.0.0.1".to_owned(), "kubernetes".to_owned()], VALIDITY)
        .unwrap();
}

#[test]
fn certificates_are_valid_as_long_as_kubeadms_and_for_what_kubeadms_are() {
    let pki = Pki::load(&files(), false, now()).unwrap();
    let day = Duration::from_secs(86_400);
    for (usages, for_clients) in [
        (vec![ExtendedKeyUsagePurpose::ServerAuth], false),
        (
            vec![
                ExtendedKeyUsagePurpose::ServerAuth,
                ExtendedKeyUsagePurpose::ClientAuth,
            ],
            true,
        ),
    ] {
        let (pem, _) = pki
            .ca
            .issue(Request {
                what: "test",
                common_name: "node-1",
                names: &["node-1".to_owned()],
                usages,
                validity: 30 * day,
            })
            .unwrap();
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let (_, certificate) = X509Certificate::from_der(&der).unwrap();
        assert_eq!(certificate.subject().to_string(), "CN=node-1");
        let validity = certificate.validity();
        let length = validity.not_after.timestamp() - validity.not_before.timestamp();
        assert_eq!(length, 30 * 86_400 + 300);
        assert!(validity.not_before.timestamp() < now());
        let constraints = certificate.basic_constraints().unwrap();
        assert!(!constraints.unwrap().value.ca);
        let usage = certificate.extended_key_usage().unwrap().unwrap();
        assert!(usage.value.server_auth);
        assert_eq!(usage.value.client_auth, for_clients);
    }
}

#[test]
fn every_defect_names_its_file() {
    let load = |change: &dyn Fn(&mut Files)| {
        let mut files = files();
        change(&mut files);
        Pki::load(&files, false, now()).unwrap_err()
    };
    let path = |name: &str| format!("{DIRECTORY}/{name}");
    for name in [
        "ca.crt",
        "ca.key",
        "etcd/ca.crt",
        "front-proxy-ca.key",
        "sa.pub",
        "sa.key",
    ] {
        let error = load(&|files| drop(files.remove(&path(name))));
        assert!(
            matches!(&error, Error::Absent { path, .. } if path.ends_with(name)),
            "{error}"
        );
        let error = load(&|files| drop(files.insert(path(name), b"junk".to_vec())));
        assert!(
            matches!(&error, Error::Unreadable { path, .. } if path.ends_with(name)),
            "{error}"
        );
    }
    for (name, broken) in [
        ("ca.key", "ca.crt"),
        ("etcd/ca.key", "etcd/ca.crt"),
        ("sa.key", "sa.pub"),
    ] {
        let other = KeyPair::generate().unwrap().serialize_pem();
        let error = load(&|files| drop(files.insert(path(name), other.clone().into_bytes())));
        assert_eq!(error, Error::Mismatch { path: path(broken) });
    }
    let (certificate, key) = self_signed(false);
    let error = load(&|files| {
        files.insert(path("ca.crt"), certificate.clone().into_bytes());
        files.insert(path("ca.key"), key.serialize_pem().into_bytes());
    });
    assert_eq!(
        error,
        Error::NotAuthority {
            path: path("ca.crt")
        }
    );
    assert!(matches!(
        Pki::load(&files(), false, 0),
        Err(Error::Expired { .. })
    ));
}

#[test]
fn external_etcd_needs_no_etcd_authority() {
    let mut files = files();
    files.retain(|path, _| !path.contains("/etcd/"));
    assert!(Pki::load(&files, true, now()).is_ok());
    assert!(Pki::load(&files, false, now()).is_err());
}

/// The key formats of Cluster API: RSA as PKCS#1 by default. The fixtures were generated with openssl for this test and
/// are used nowhere else.
#[test]
fn rsa_and_p384_sets_in_the_traditional_forms_are_accepted() {
    for (key, public) in [
        (
            &include_bytes!("fixtures/rsa-pkcs1.key")[..],
            &include_bytes!("fixtures/rsa-pkcs1.pub")[..],
        ),
        (
            include_bytes!("fixtures/p384-sec1.key"),
            include_bytes!("fixtures/p384.pub"),
        ),
    ] {
        let mut files = files();
        let mut put = |name: &str, content: &[u8]| {
            files.insert(format!("{DIRECTORY}/{name}"), content.to_vec());
        };
        put("ca.crt", include_bytes!("fixtures/rsa.crt"));
        put("ca.key", include_bytes!("fixtures/rsa-pkcs1.key"));
        put("sa.key", key);
        put("sa.pub", public);
        let pki = Pki::load(&files, false, now()).unwrap();
        pki.ca
            .server_config(&["127.0.0.1".to_owned()], VALIDITY)
            .unwrap();
    }
}

#[test]
fn the_key_forms_that_go_writes_are_read() {
    let sec1 = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIIjzUKU2ZSrLsXLIjKAGX6ycJFcyhxS1CfLpXnL9gMqxoAoGCCqGSM49\nAwEHoUQDQgAE\n-----END EC PRIVATE KEY-----\n";
    // Truncated on purpose: it must be rejected without a panic.
    let files = BTreeMap::from([("/k".to_owned(), sec1.as_bytes().to_vec())]);
    assert!(key_pair(&files, "/k").is_err());

    // A PKCS#8 P-256 key contains the SEC 1 key, but without the curve's name, which Go adds.
    let key = KeyPair::generate().unwrap();
    let der = key.serialize_der();
    // PrivateKeyInfo: SEQ, INT 0, AlgorithmIdentifier (21 bytes), OCTET STRING with the SEC 1 key.
    let at = der.windows(P256_LEN).position(|w| w == P256_ID).unwrap() + P256_LEN + 2;
    let inner = &der[at..];
    // Version (3 bytes) and private key (34), then the parameters [0], then the public key [1].
    let (head, tail) = inner[2..].split_at(37);
    let mut content = head.to_vec();
    content.extend([
        0xa0, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07,
    ]);
    content.extend(tail);
    let sec1 = element(0x30, &content).unwrap();
    let text = base64::engine::general_purpose::STANDARD.encode(sec1);
    let pem = format!("-----BEGIN EC PRIVATE KEY-----\n{text}\n-----END EC PRIVATE KEY-----\n");
    let files = BTreeMap::from([("/k".to_owned(), pem.into_bytes())]);
    let read = key_pair(&files, "/k").unwrap();
    assert_eq!(read.public_key_raw(), key.public_key_raw());
}

const P256_LEN: usize = 21;
const P256_ID: &[u8] = &[
    0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
    0xce, 0x3d, 0x03, 0x01, 0x07,
];

proptest! {
    #[test]
    fn arbitrary_files_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut files = files();
        files.insert(format!("{DIRECTORY}/ca.crt"), bytes.clone());
        prop_assert!(Pki::load(&files, false, now()).is_err());
        let body = base64::engine::general_purpose::STANDARD.encode(&bytes);
        for kind in ["EC PRIVATE KEY", "RSA PRIVATE KEY", "PRIVATE KEY"] {
            let pem = format!("-----BEGIN {kind}-----\n{body}\n-----END {kind}-----\n");
            files.insert("/k".to_owned(), pem.into_bytes());
            let _ = key_pair(&files, "/k");
        }
    }
}
