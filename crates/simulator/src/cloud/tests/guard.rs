use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::json;

use super::*;
use crate::cloud::Passwords;

async fn on_socket() -> Client {
    let passwords = Passwords {
        admin: "of-admin".to_owned(),
        demo: "of-demo".to_owned(),
    };
    let options = Options {
        passwords,
        ..Options::default()
    };
    let cloud = Cloud::open(options).await.unwrap();
    Client {
        router: cloud.router_of_socket(BASE),
        token: String::new(),
        project: String::new(),
        user: String::new(),
    }
}

#[tokio::test]
async fn the_operators_interface_of_a_socket_answers_to_names_of_this_machine_alone() {
    let client = on_socket().await;
    let get = async |path: &str, headers: &[(&str, &str)]| {
        let got = client.send(Method::GET, path, headers, &Value::Null).await;
        got.status
    };
    let path = "/_simulator/requests";
    for host in ["localhost:8774", "127.0.0.1:8774", "127.0.0.2", "[::1]:1"] {
        assert_eq!(get(path, &[("host", host)]).await, 200, "{host}");
    }
    for path in [path, "//_simulator/log", "/_simulator"] {
        assert_eq!(get(path, &[("host", "evil.test:8774")]).await, 403);
        assert_eq!(get(path, &[]).await, 403);
    }
    let here = ("host", "localhost");
    for (origin, status) in [
        ("http://localhost:3000", 200),
        ("http://127.0.0.1", 200),
        ("http://evil.test", 403),
        ("http://localhost.evil.test", 403),
        ("null", 403),
        ("", 403),
    ] {
        assert_eq!(
            get(path, &[here, ("origin", origin)]).await,
            status,
            "{origin}"
        );
    }
    // Paths outside of the operator's interface have Keystone's tokens.
    assert_eq!(get("/identity/v3", &[("host", "evil.test")]).await, 200);
}

#[tokio::test]
async fn changes_of_the_operator_want_the_administrators_password() {
    let client = on_socket().await;
    let rule = json!({"service": "compute", "status": 500});
    let change = async |method: Method, path: &str, user: &str| {
        let basic = format!("Basic {}", STANDARD.encode(user));
        let headers = [("host", "localhost"), ("authorization", basic.as_str())];
        client.send(method, path, &headers, &rule).await.status
    };
    for user in [
        "",
        "admin:secret",
        "admin:",
        "demo:of-demo",
        "admin:of-demo",
        "admin:of-admin ",
    ] {
        for (method, path) in [
            (Method::POST, "/_simulator/faults"),
            (Method::DELETE, "/_simulator/requests"),
            (Method::POST, "//_simulator//clock"),
        ] {
            assert_eq!(change(method, path, user).await, 401, "{user} {path}");
        }
    }
    let operator = "admin:of-admin";
    assert_eq!(
        change(Method::POST, "/_simulator/faults", operator).await,
        201
    );
    assert_eq!(
        change(Method::DELETE, "/_simulator/faults", operator).await,
        204
    );
    let other = [
        ("host", "evil.test"),
        ("authorization", "Basic YWRtaW46b2YtYWRtaW4="),
    ];
    let got = client
        .send(Method::POST, "/_simulator/faults", &other, &rule)
        .await;
    assert_eq!(got.status, 403);
}

#[tokio::test]
async fn each_user_of_a_new_cloud_has_the_password_that_the_clouds_yaml_says() {
    let passwords = Passwords::random();
    assert_ne!(passwords.admin, passwords.demo);
    assert!(!format!("{passwords:?}").contains(&passwords.admin));
    let options = Options {
        passwords: passwords.clone(),
        ..Options::default()
    };
    let cloud = Cloud::open(options).await.unwrap();
    let text = cloud.clouds_yaml(BASE);
    let client = Client {
        router: cloud.router(BASE),
        token: String::new(),
        project: String::new(),
        user: String::new(),
    };
    for (user, right, wrong) in [
        ("admin", &passwords.admin, &passwords.demo),
        ("demo", &passwords.demo, &passwords.admin),
    ] {
        assert!(
            text.contains(&format!("username: {user}\n      password: {right}\n")),
            "{text}"
        );
        for (password, status) in [(right, 201), (wrong, 401), (&"secret".to_owned(), 401)] {
            let mut login = super::password(user);
            login["auth"]["identity"]["password"]["user"]["password"] = json!(password);
            let got = client.post("/identity/v3/auth/tokens", login).await;
            assert_eq!(got.status, status, "{user}");
        }
    }
}
