//! The exchange below was recorded from RabbitMQ 3.10.8 (Debian 12) and 4.0.5 (Debian 13).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::broker::Broker;
use super::*;

#[test]
fn the_simulated_broker_answers_as_rabbitmq_does() {
    let broker = Broker::new(&[]);
    let none = Value::Null;
    let rights = json!({"configure": ".*", "write": ".*", "read": ".*"});
    let gone = json!({"error": "Object Not Found", "reason": "Not Found"});
    let bad = |reason: &str| json!({"error": "bad_request", "reason": reason});
    for (method, path, body, status, answer) in [
        ("PUT", "/vhosts/nova", json!({"tags": "a,b"}), 201, &none),
        ("PUT", "/vhosts/nova", json!({"tags": "a"}), 204, &none),
        ("GET", "/vhosts/none", none.clone(), 404, &gone),
        (
            "PUT",
            "/permissions/nova/nova",
            rights.clone(),
            400,
            &bad("vhost_or_user_not_found"),
        ),
        (
            "PUT",
            "/users/nova",
            json!({"password": "x"}),
            400,
            &bad("tags_not_present"),
        ),
        ("PUT", "/users/nova", json!({"tags": "a"}), 201, &none),
        (
            "PUT",
            "/users/nova",
            json!({"password": "x", "tags": ["a"]}),
            204,
            &none,
        ),
        ("PUT", "/permissions/nova/nova", rights.clone(), 201, &none),
        ("PUT", "/permissions/nova/nova", rights.clone(), 204, &none),
        (
            "PUT",
            "/permissions/none/nova",
            rights,
            400,
            &bad("vhost_or_user_not_found"),
        ),
        ("DELETE", "/permissions/nova/nova", none.clone(), 204, &none),
        ("DELETE", "/permissions/nova/nova", none.clone(), 404, &gone),
        ("DELETE", "/users/nova", none.clone(), 204, &none),
        ("DELETE", "/users/nova", none.clone(), 404, &gone),
        ("DELETE", "/vhosts/nova", none.clone(), 204, &none),
        ("DELETE", "/vhosts/nova", none.clone(), 404, &gone),
        ("GET", "/nosuch", none.clone(), 404, &gone),
        ("POST", "/vhosts", json!({}), 405, &none),
    ] {
        let found = broker.asked(method, &format!("/api{path}"), &body.to_string());
        assert_eq!(found, (status, answer.clone()), "{method} {path}");
    }
    let found = broker.asked("PUT", "/api/vhosts/nova", "{oops");
    assert_eq!(found, (400, bad("not_json")));
}

#[test]
fn what_is_put_replaces_all_of_it_and_who_makes_a_host_may_use_it() {
    let broker = Broker::new(&[]);
    let put = |path: &str, body: Value| broker.asked("PUT", path, &body.to_string());
    put("/api/vhosts/nova", json!({"tags": "a", "description": "b"}));
    let (_, host) = broker.asked("GET", "/api/vhosts/nova", "");
    assert_eq!(
        (&host["tags"], &host["description"]),
        (&json!(["a"]), &json!("b"))
    );
    let (_, all) = broker.asked("GET", "/api/permissions", "");
    let hosts: Vec<&Value> = items(&all).map(|it| &it["vhost"]).collect();
    assert_eq!(hosts, ["/", "nova"]);
    put("/api/vhosts/nova", json!({}));
    let (_, host) = broker.asked("GET", "/api/vhosts/nova", "");
    assert_eq!(
        (&host["tags"], &host["description"]),
        (&json!([]), &json!(""))
    );
}

#[tokio::test]
async fn the_first_user_is_that_of_the_files_and_others_are_rejected() {
    let text = STANDARD.encode("default_user = admin\ndefault_pass = secret\n");
    let broker = Broker::new(&[json!({"data": {"50-secret.conf": text}})]);
    for (login, status) in [
        ("admin:secret", 200),
        ("admin:other", 401),
        ("none:secret", 401),
    ] {
        let request = Request::get("/api/users")
            .header("authorization", format!("Basic {}", STANDARD.encode(login)))
            .body(Bytes::new())
            .unwrap();
        assert_eq!(broker.answer(&request).status(), status, "{login}");
    }
    let without = Request::get("/api/users").body(Bytes::new()).unwrap();
    assert_eq!(broker.answer(&without).status(), 401);
}
