use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustls_pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

use super::http_client::ConnectionPools;
use super::{HttpTransport, Limits, Transport, TransportError, Trust};
use crate::ErrorKind;

/// TLS server with a self-signed certificate and the answer 200 to every connection. Returns its URL and the PEM of the
/// certificate.
async fn server() -> (String, String) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let generated = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(generated.signing_key.serialize_der().into());
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![generated.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
            let _ = stream.write_all(answer).await;
            let _ = stream.shutdown().await;
        }
    });
    (url, generated.cert.pem())
}

async fn get(trust: &Trust, url: &str) -> Result<Bytes, TransportError> {
    let request = http::Request::get(url).body(Bytes::new()).unwrap();
    let transport = HttpTransport::new(trust).unwrap();
    Ok(transport
        .send(request, Limits::object(Duration::from_secs(60)))
        .await?
        .into_body())
}

#[tokio::test]
async fn only_the_given_ca_is_trusted_unless_checking_is_off() {
    let (url, pem) = server().await;
    let (_, other) = server().await;
    let trust = |verify, pem: Option<&str>| Trust {
        verify,
        ca_pem: pem.map(Into::into),
        client_certificate: None,
    };
    assert_eq!(get(&trust(true, Some(&pem)), &url).await.unwrap(), "ok");
    assert_eq!(get(&trust(false, None), &url).await.unwrap(), "ok");
    let both = format!("{other}\n{pem}");
    assert_eq!(get(&trust(true, Some(&both)), &url).await.unwrap(), "ok");
    for wrong in [trust(true, Some(&other)), trust(true, None)] {
        let error = get(&wrong, &url).await.unwrap_err();
        assert!(error.never_sent, "{error}");
        assert!(error.message.contains("certificate"), "{error}");
    }
}

#[tokio::test]
async fn sessions_of_equal_trust_share_a_pool_while_it_is_used() {
    let (_, pem) = server().await;
    let pools = ConnectionPools::default();
    let system = Trust {
        verify: true,
        ca_pem: None,
        client_certificate: None,
    };
    let custom = Trust {
        verify: true,
        ca_pem: Some(pem.into()),
        client_certificate: None,
    };
    let first = pools.get(&system).unwrap();
    assert!(Arc::ptr_eq(&first, &pools.get(&system).unwrap()));
    assert!(!Arc::ptr_eq(&first, &pools.get(&custom).unwrap()));
}

#[tokio::test]
async fn a_bundle_without_certificates_is_rejected() {
    server().await;
    for pem in [
        "x",
        "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
    ] {
        let trust = Trust {
            verify: true,
            ca_pem: Some(pem.into()),
            client_certificate: None,
        };
        let error = HttpTransport::new(&trust).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains("cacert"), "{error}");
    }
}

/// A cloud that a tenant named sends no token of the controller elsewhere.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let elsewhere = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let location = format!("http://{}/", elsewhere.local_addr().unwrap());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 1024];
        let _ = stream.read(&mut request).await;
        let answer = format!(
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"
        );
        let _ = stream.write_all(answer.as_bytes()).await;
    });
    let request = http::Request::get(&url)
        .header("x-auth-token", "t")
        .body(Bytes::new())
        .unwrap();
    let trust = Trust {
        verify: true,
        ca_pem: None,
        client_certificate: None,
    };
    let transport = HttpTransport::new(&trust).unwrap();
    let limits = Limits::object(Duration::from_secs(60));
    // Followed, it would be without an answer: nobody accepts connections there.
    let answer = transport.send(request, limits).await.unwrap();
    assert_eq!(answer.status(), 307);
}
