//! Bad input, each of which ends in one sentence, and secrets, which are in no output.

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::{Keystone, prepare, refused};
use crate::process::texts;

/// What is in no output.
const CANARY: &str = "canary-8c11f0d2a7";

/// What is wrong, the variables that differ, and a part of the sentence.
type Row<'a> = (&'a str, Vec<(&'static str, String)>, &'a str);

/// A server that answers all requests with this, and then more of `endless` until nobody reads it.
async fn server(answer: &'static str, endless: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v3", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = connection.read(&mut request).await;
                let _ = connection.write_all(answer.as_bytes()).await;
                while !endless.is_empty() && connection.write_all(endless).await.is_ok() {}
            });
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn each_mistake_ends_in_one_sentence() {
    let keystone = Keystone::start().await;
    let demo = keystone.demo();
    let page = server(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 20\r\n\r\n<html>hello</html>\r\n",
        b"",
    );
    let page = page.await;
    let html = server(
        "HTTP/1.1 201 Created\r\nx-subject-token: t\r\ncontent-length: 6\r\n\r\n<html>",
        b"",
    );
    let html = html.await;
    let endless = server(
        "HTTP/1.1 201 Created\r\nx-subject-token: t\r\ncontent-type: application/json\r\n\r\n",
        &[b'['; 65_536],
    );
    let endless = endless.await;
    let closed = server("", b"").await;
    let info = |text: &str| ("KUBERNETES_EXEC_INFO", text.to_owned());
    let url = |url: &str| ("OS_AUTH_URL", url.to_owned());
    let rows: Vec<Row<'_>> = vec![
        (
            "no URL",
            vec![url("")],
            "no Keystone is named: give --keystone-url or OS_AUTH_URL",
        ),
        (
            "no password",
            vec![("OS_PASSWORD", String::new())],
            "auth.password is missing",
        ),
        (
            "no user",
            vec![("OS_USERNAME", String::new())],
            "auth.username or auth.user_id is missing",
        ),
        (
            "no cloud",
            vec![("OS_CLOUD", "nowhere".to_owned())],
            "there is no clouds.yaml",
        ),
        (
            "a wrong password",
            vec![("OS_PASSWORD", CANARY.to_owned())],
            "does not accept the credential",
        ),
        (
            "no project",
            vec![("OS_PROJECT_NAME", "nothing".to_owned())],
            "does not accept the credential",
        ),
        (
            "another way",
            vec![("OS_AUTH_TYPE", "v3kerberos".to_owned())],
            "auth_type `v3kerberos` is not",
        ),
        (
            "no passcode",
            vec![("OS_AUTH_TYPE", "v3multifactor".to_owned())],
            "auth.passcode is missing",
        ),
        (
            "no CA",
            vec![("OS_CACERT", "/nowhere".to_owned())],
            "cannot read the CAs in /nowhere",
        ),
        (
            "no CA inside",
            vec![("OS_CACERT", "/etc/hostname".to_owned())],
            "the CA bundle (cacert)",
        ),
        (
            "no certificate",
            vec![("OS_KEY", "/nowhere".to_owned())],
            "no certificate (cert)",
        ),
        (
            "no key",
            vec![("OS_CERT", "/etc/hostname".to_owned())],
            "the client certificate (cert)",
        ),
        (
            "no URL at all",
            vec![url("ftp://k")],
            "auth.auth_url must begin with http://",
        ),
        (
            "nobody there",
            vec![url("http://127.0.0.1:1/v3")],
            "127.0.0.1:1 cannot be reached",
        ),
        (
            "a page",
            vec![url(&page)],
            "no X-Subject-Token; is auth_url a Keystone v3?",
        ),
        ("HTML", vec![url(&html)], "is not JSON"),
        (
            "an endless answer",
            vec![url(&endless)],
            "the answer is larger than",
        ),
        (
            "a closed connection",
            vec![url(&closed)],
            "cannot be reached",
        ),
        (
            "no JSON from kubectl",
            vec![info(CANARY)],
            "KUBERNETES_EXEC_INFO cannot be used: it is not JSON",
        ),
        (
            "half of it",
            vec![info("{\"kind\":")],
            "the JSON ends early, at line 1",
        ),
        (
            "another kind",
            vec![info("{\"kind\": \"Pod\"}")],
            "its kind is not ExecCredential",
        ),
        (
            "an old version",
            vec![info(
                "{\"kind\": \"ExecCredential\", \"apiVersion\": \"client.authentication.k8s.io/v1alpha1\"}",
            )],
            "correct that of the exec plugin in the kubeconfig",
        ),
    ];
    for (what, changes, expected) in rows {
        let mut variables = demo.clone();
        variables.extend(changes);
        let sentence = refused(&keystone.run(&["--cache"], &variables).await);
        assert!(sentence.contains(expected), "{what}: {sentence}");
        assert!(!sentence.contains(CANARY), "{what}: {sentence}");
        assert_eq!(keystone.cache(), None, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_in_no_output_and_in_no_log() {
    let keystone = Keystone::start().await;
    prepare(&keystone).await;
    let demo = keystone.id("users", "demo").await;
    let body = json!({"user": {"password": CANARY}});
    keystone
        .ask(Method::PATCH, &format!("/users/{demo}"), body)
        .await;
    let mut variables = keystone.demo();
    variables.insert("OS_PASSWORD", CANARY.to_owned());
    variables.insert("FERROSTACK_LOG", "trace".to_owned());
    let output = keystone.run(&["--cache"], &variables).await;
    let (out, errors) = texts(&output);
    let answer: Value = serde_json::from_str(&out).unwrap();
    let token = answer["status"]["token"].as_str().unwrap();
    assert!(
        errors.contains("/v3/auth/tokens"),
        "it logs something: {errors}"
    );
    for secret in [CANARY, token] {
        assert!(!errors.contains(secret), "{errors}");
    }
    assert!(!out.contains(CANARY));
    let kept = std::fs::read_to_string(keystone.cache().unwrap()).unwrap();
    assert!(!kept.contains(CANARY));
    for wrong in [("OS_USERNAME", "careful"), ("OS_PROJECT_NAME", "nothing")] {
        let mut variables = variables.clone();
        variables.insert(wrong.0, wrong.1.to_owned());
        let output = keystone.run(&["--cache"], &variables).await;
        let (out, errors) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(!format!("{out}{errors}").contains(CANARY), "{errors}");
    }
}
