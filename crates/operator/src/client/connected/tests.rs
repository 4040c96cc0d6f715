use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

/// Proxy that records the first line and the login of each request, and connects to nothing.
async fn proxy() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let count = stream.read(&mut request).await.unwrap();
            let text = String::from_utf8_lossy(&request[..count]).into_owned();
            noted.lock().push(text);
            let _ = stream.write_all(b"HTTP/1.1 503 no\r\n\r\n").await;
        }
    });
    (address, seen)
}

fn kubeconfig(server: &str, proxy: &str) -> Kubeconfig {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\n\
         clusters: [{{name: c, cluster: {{server: \"{server}\", proxy-url: \"{proxy}\"}}}}]\n\
         users: [{{name: u, user: {{token: t}}}}]\n\
         contexts: [{{name: x, context: {{cluster: c, user: u}}}}]\n"
    );
    Kubeconfig::from_yaml(&text).unwrap()
}

/// The error of a list at `server`.
async fn asked(server: &str, proxy: &str, proxies: &Proxies) -> String {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = KubeConfigOptions::default();
    let config = configured(kubeconfig(server, proxy), &options, proxies).await;
    let settings = Settings {
        name: "test".to_owned(),
        limits: Limits::WORKLOAD,
        shared: true,
    };
    let client = match config.and_then(|config| connected(config, &settings)) {
        Ok(client) => client,
        Err(error) => return error.to_string(),
    };
    let nodes: Api<Node> = Api::all(client);
    let error = nodes.list(&ListParams::default()).await.unwrap_err();
    crate::words::chain(&error)
}

#[tokio::test]
async fn a_request_goes_through_the_proxy_of_its_kubeconfig_or_of_the_environment_or_directly() {
    let (address, seen) = proxy().await;
    let url = format!("http://me:p%40ss@{address}");
    let variables = [("HTTPS_PROXY", url.as_str()), ("NO_PROXY", "192.0.2.0/24")];
    let find = |name: &str| variables.iter().find(|it| it.0 == name).map(|it| it.1);
    let proxies = Proxies::from_variables(find);
    let why = asked("https://api.example.test:6443", "", &proxies).await;
    let first = seen.lock().remove(0);
    assert!(
        first.starts_with("CONNECT api.example.test:6443 "),
        "{first}"
    );
    let login = first.to_ascii_lowercase();
    assert!(login.contains("proxy-authorization: basic "), "{first}");
    assert!(!why.contains("p%40ss") && !why.contains("p@ss"), "{why}");

    // Loopback is asked directly, whatever the environment says.
    let why = asked("https://127.0.0.1:1", "", &proxies).await;
    assert!(why.contains("connection refused"), "{why}");
    assert_eq!(seen.lock().len(), 0);

    // The kubeconfig's own is always used.
    let of_kubeconfig = format!("http://{address}");
    let _ = asked("https://127.0.0.1:1", &of_kubeconfig, &Proxies::default()).await;
    let first = seen.lock().remove(0);
    assert!(first.starts_with("CONNECT 127.0.0.1:1 "), "{first}");
}

#[tokio::test]
async fn a_proxy_that_cannot_be_used_is_named_without_its_login() {
    for url in [
        "ftp://me:hunter2@p:1",
        "me:hunter2@p:1",
        "http://me:hunter2@ p",
    ] {
        let why = asked("https://192.0.2.1", url, &Proxies::default()).await;
        assert!(why.starts_with("the proxy "), "{url}: {why}");
        assert!(!why.contains("hunter2"), "{url}: {why}");
    }
}

#[test]
fn a_host_is_named_without_a_login() {
    assert_eq!(
        host(&"https://me:hunter2@a.test:1/x".parse().unwrap()),
        "a.test:1"
    );
}
