use clap::Parser;
use rustls::{CipherSuite, ClientConfig, ProtocolVersion, RootCertStore};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;
use crate::pki;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    args: CloudControllerManager,
}

fn args(flags: &[&str]) -> Result<CloudControllerManager, String> {
    let words = ["ccm", "--cloud-config", "cloud.conf"].into_iter();
    let parsed = Command::try_parse_from(words.chain(flags.iter().copied()));
    let args = parsed.map_err(|error| error.to_string())?.args;
    check(&args).map_err(|error| error.to_string())?;
    Ok(args)
}

const SUITES: [&str; 6] = [
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];
const NEWEST: [&str; 3] = [
    "TLS13_AES_256_GCM_SHA384",
    "TLS13_AES_128_GCM_SHA256",
    "TLS13_CHACHA20_POLY1305_SHA256",
];

fn list(suites: &[&str]) -> String {
    format!("--tls-cipher-suites={}", suites.join(","))
}

/// A server with these flags, and the authority of its certificate.
fn server(flags: &[&str]) -> (Arc<ServerConfig>, String) {
    let args = args(flags).unwrap();
    let (authority, identity) = pki::self_issued("ccm", vec!["localhost".to_owned()]).unwrap();
    let config = config(&args, &identity.certificate, &identity.key).unwrap();
    (config, authority)
}

/// The version and suite on which a client that has one suite alone agrees with the server.
async fn handshake(
    (server, authority): &(Arc<ServerConfig>, String),
    suite: &str,
) -> Option<(ProtocolVersion, CipherSuite)> {
    let mut provider = ring::default_provider();
    provider
        .cipher_suites
        .retain(|known| known.suite().as_str() == Some(suite));
    assert_eq!(provider.cipher_suites.len(), 1, "{suite}");
    let version = provider.cipher_suites[0].version();
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap())
        .unwrap();
    let client = ClientConfig::builder_with_provider(Arc::new(provider));
    let client = client.with_protocol_versions(&[version]).unwrap();
    let client = client.with_root_certificates(roots).with_no_client_auth();
    let (near, far) = tokio::io::duplex(1 << 16);
    let connector = TlsConnector::from(Arc::new(client));
    let (client, server) = tokio::join!(
        connector.connect("localhost".try_into().unwrap(), near),
        TlsAcceptor::from(Arc::clone(server)).accept(far)
    );
    assert_eq!(client.is_ok(), server.is_ok(), "{suite}");
    let client = client.ok()?;
    let connection = client.get_ref().1;
    let agreed = connection.negotiated_cipher_suite().unwrap().suite();
    Some((connection.protocol_version().unwrap(), agreed))
}

/// The certificate that is made at the start has a key of ECDSA, so that suites of RSA fit none here.
#[tokio::test]
async fn each_suite_of_tls_1_2_is_agreed_on_if_it_is_listed_and_those_of_tls_1_3_always() {
    let lists = [&SUITES[..1], &SUITES[1..2], &SUITES[1..3], &SUITES[..]];
    for listed in lists {
        let server = server(&[&list(listed)]);
        for suite in &SUITES[..3] {
            let agreed = handshake(&server, suite).await;
            assert_eq!(
                agreed.is_some(),
                listed.contains(suite),
                "{suite} {listed:?}"
            );
        }
        for suite in NEWEST {
            let (version, agreed) = handshake(&server, suite).await.unwrap();
            assert_eq!(
                (version, agreed.as_str()),
                (ProtocolVersion::TLSv1_3, Some(suite))
            );
        }
    }
}

#[test]
fn exactly_the_listed_suites_are_offered_under_their_names_and_the_older_ones() {
    for (index, suite) in SUITES.iter().enumerate() {
        let others = [SUITES[(index + 1) % 6], *suite];
        let (config, _) = server(&[&list(&others)]);
        let offered = names(config.crypto_provider());
        assert_eq!(offered.len(), 2, "{offered:?}");
        assert!(
            others.iter().all(|name| offered.contains(name)),
            "{offered:?}"
        );
        assert_eq!(config.crypto_provider().cipher_suites.len(), 5);
        let older = suite.strip_suffix("_SHA256");
        let older = older.filter(|older| older.ends_with("CHACHA20_POLY1305"));
        let (config, _) = server(&[&list(&[older.unwrap_or(suite)])]);
        assert_eq!(names(config.crypto_provider()), [*suite]);
    }
    for flags in [&[] as &[&str], &["--tls-cipher-suites="]] {
        let (config, _) = server(flags);
        assert_eq!(names(config.crypto_provider()), SUITES);
    }
}

#[tokio::test]
async fn the_least_version_decides_whether_tls_1_2_is_taken_with_any_list() {
    let two = list(&SUITES[..2]);
    for flags in [
        &["--tls-min-version=VersionTLS12"][..],
        &["--tls-min-version=VersionTLS12", &two],
    ] {
        let server = server(flags);
        let (version, _) = handshake(&server, SUITES[0]).await.unwrap();
        assert_eq!(version, ProtocolVersion::TLSv1_2);
        assert!(handshake(&server, NEWEST[0]).await.is_some());
    }
    for flags in [
        &["--tls-min-version=VersionTLS13"][..],
        &["--tls-min-version=VersionTLS13", &two],
    ] {
        let server = server(flags);
        assert!(handshake(&server, SUITES[0]).await.is_none());
        assert!(handshake(&server, NEWEST[0]).await.is_some());
    }
    let error = args(&["--tls-min-version=1.3"]).unwrap_err();
    assert!(error.contains("VersionTLS10, VersionTLS11"), "{error}");
}

/// Ciphers of TLS 1.2 are not offered then: fewer than the flags name, never more.
#[tokio::test]
async fn a_list_of_suites_that_the_server_does_not_have_leaves_tls_1_3() {
    for listed in ["TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_AES_128_GCM_SHA256"] {
        let server = server(&[&list(&[listed])]);
        assert!(handshake(&server, SUITES[0]).await.is_none());
        assert!(handshake(&server, NEWEST[0]).await.is_some());
    }
}

#[test]
fn a_name_that_is_no_suite_is_refused_with_those_that_the_server_has() {
    for name in [
        "TLS_ECDHE_RSA_WITH_AES_128_GCM",
        "TLS_CHACHA20_POLY1305",
        "TLS13_AES_128_GCM_SHA256",
        "",
    ] {
        let error = args(&[&list(&[&SUITES[..], &[name]].concat())]).unwrap_err();
        assert!(
            error.contains(&format!("`{name}` is no cipher suite")),
            "{error}"
        );
        for offered in SUITES {
            assert!(error.contains(offered), "{error}");
        }
    }
}

#[test]
fn the_suites_that_gardener_passes_are_taken() {
    let passed = "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,\
        TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,\
        TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256,\
        TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305";
    args(&[
        "--cluster-name=shoot",
        "--allocate-node-cidrs=true",
        "--cluster-cidr=100.64.0.0/11",
        "--concurrent-service-syncs=10",
        "--leader-elect=true",
        passed,
        "--v=2",
    ])
    .unwrap();
}
