use rcgen::{
    BasicConstraints, Certificate, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair,
};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

const NAME: &str = "hook.default.svc";

fn params() -> CertificateParams {
    CertificateParams::new(vec![NAME.to_owned()]).unwrap()
}

/// The result of a handshake between a client that trusts `bundle` and a server with a certificate.
async fn handshake_with(
    serving: &Certificate,
    key: &KeyPair,
    bundle: &str,
    name: &str,
) -> Result<(), String> {
    let tls = crate::server_config(&serving.pem(), &key.serialize_pem(), None).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let _ = TlsAcceptor::from(tls).accept(stream).await;
    });
    let config = Authorities::default().config(bundle.as_bytes())?;
    let stream = TcpStream::connect(address).await.unwrap();
    let result = handshake(config, name, stream).await;
    server.await.unwrap();
    result.map(|_| ())
}

fn refusal(why: &str) -> Result<(), String> {
    Err(format!("tls: failed to verify certificate: x509: {why}"))
}

#[tokio::test]
async fn a_bundle_may_contain_the_serving_certificate_itself() {
    for authority in [
        IsCa::NoCa,
        IsCa::ExplicitNoCa,
        IsCa::Ca(BasicConstraints::Unconstrained),
    ] {
        let key = KeyPair::generate().unwrap();
        let mut params = params();
        params.is_ca = authority;
        let certificate = params.self_signed(&key).unwrap();
        let trusted = handshake_with(&certificate, &key, &certificate.pem(), NAME).await;
        assert_eq!(trusted, Ok(()), "{:?}", params.is_ca);
        assert_eq!(
            handshake_with(&certificate, &key, &certificate.pem(), "other.default.svc").await,
            refusal("certificate is not valid for other.default.svc")
        );
    }
}

#[tokio::test]
async fn a_certificate_is_trusted_by_itself_or_by_its_authority() {
    let key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = authority.self_signed(&key).unwrap();
    let issuer = Issuer::new(authority, key);
    let key = KeyPair::generate().unwrap();
    let issued = params().signed_by(&key, &issuer).unwrap();
    for bundle in [ca.pem(), issued.pem(), ca.pem() + &issued.pem()] {
        assert_eq!(handshake_with(&issued, &key, &bundle, NAME).await, Ok(()));
    }
    let other = params().self_signed(&KeyPair::generate().unwrap()).unwrap();
    assert_eq!(
        handshake_with(&issued, &key, &other.pem(), NAME).await,
        refusal("certificate signed by unknown authority")
    );
}

#[tokio::test]
async fn a_trusted_certificate_must_be_valid_now_and_for_servers() {
    let key = KeyPair::generate().unwrap();
    let mut old = params();
    old.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let mut early = params();
    early.not_before = rcgen::date_time_ymd(2999, 1, 1);
    let mut client = params();
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    for (params, why) in [
        (old, "certificate has expired or is not yet valid"),
        (early, "certificate has expired or is not yet valid"),
        (client, "certificate specifies an incompatible key usage"),
    ] {
        let certificate = params.self_signed(&key).unwrap();
        assert_eq!(
            handshake_with(&certificate, &key, &certificate.pem(), NAME).await,
            refusal(why)
        );
    }
}
