//! The exchange with RabbitMQ was recorded from RabbitMQ 3.10.8 (Debian 12) and 4.0.5 (Debian 13).

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::broker::Broker;
use super::identity::Keystone;
use super::namespace::Bootstrap;
use super::*;
use crate::nodes::object::items;

#[test]
fn the_simulated_broker_answers_as_rabbitmq_does() {
    let broker = Broker::new(&BTreeMap::new());
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
    let broker = Broker::new(&BTreeMap::new());
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
    let options = [("default_user", "admin"), ("default_pass", "secret")];
    let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let broker = Broker::new(&options.into());
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

fn keystone() -> Keystone {
    let keystone = Keystone::default();
    let bootstrap = |job: &str, password: &str| Bootstrap {
        job: job.to_owned(),
        password: password.to_owned(),
        region: "One".to_owned(),
        url: "http://keystone:5000/v3".to_owned(),
        service_role: true,
    };
    keystone.bootstrap(&bootstrap("first", "other"));
    // Once more after the password was lost: nothing is made twice.
    keystone.bootstrap(&bootstrap("second", "secret"));
    keystone
}

fn id(keystone: &Keystone, kind: &str, name: &str) -> String {
    let (_, answer) = keystone.asked("GET", &format!("/v3/{kind}?name={name}"), &Value::Null);
    text(&answer[kind][0]["id"]).to_owned()
}

fn login(name: &str, password: &str, project: Option<&str>) -> Value {
    let domain = json!({"id": "default"});
    let user = json!({"name": name, "domain": domain, "password": password});
    let mut body = json!({"auth": {"identity": {"password": {"user": user}}}});
    if let Some(name) = project {
        body["auth"]["scope"] = json!({"project": {"name": name, "domain": domain}});
    }
    body
}

#[test]
fn the_simulated_keystone_answers_writes_with_the_statuses_of_the_real_one() {
    let keystone = keystone();
    let [admin, project, role] = [
        ("users", "admin"),
        ("projects", "admin"),
        ("roles", "member"),
    ]
    .map(|(kind, name)| id(&keystone, kind, name));
    let grant = format!("/v3/projects/{project}/users/{admin}/roles/{role}");
    let none = || Value::Null;
    let user = json!({"user": {"name": "nova", "domain_id": "default", "password": "x"}});
    for (method, path, body, status) in [
        ("POST", "/v3/users", user.clone(), 201),
        ("POST", "/v3/users", user, 409),
        ("POST", "/v3/users", json!({"user": {}}), 400),
        (
            "POST",
            "/v3/services",
            json!({"service": {"type": "x", "name": "x"}}),
            201,
        ),
        (
            "POST",
            "/v3/services",
            json!({"service": {"type": "x", "name": "x"}}),
            201,
        ),
        (
            "POST",
            "/v3/services",
            json!({"service": {"name": "x"}}),
            400,
        ),
        ("PUT", grant.as_str(), none(), 204),
        ("PUT", grant.as_str(), none(), 204),
        ("DELETE", grant.as_str(), none(), 204),
        ("DELETE", grant.as_str(), none(), 404),
        (
            "PATCH",
            "/v3/users/none",
            json!({"user": {"enabled": false}}),
            404,
        ),
        ("DELETE", "/v3/users/none", none(), 404),
    ] {
        let (found, answer) = keystone.asked(method, path, &body);
        assert_eq!(found, status, "{method} {path} {answer}");
        assert!(!answer.to_string().contains("password"), "{answer}");
    }
    let (_, endpoints) = keystone.asked("GET", "/v3/endpoints", &Value::Null);
    assert_eq!(items(&endpoints["endpoints"]).count(), 3);
}

#[test]
fn who_is_no_administrator_neither_reads_nor_writes_and_a_disabled_user_does_not_log_in() {
    let keystone = keystone();
    let user = json!({"user": {"name": "nova", "domain_id": "default", "password": "x"}});
    keystone.asked("POST", "/v3/users", &user);
    let ask = |method: &str, path: &str, token: &str, body: Value| {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("x-auth-token", token);
        let answer = keystone.answer(&request.body(body.to_string().into()).unwrap());
        let token = answer.headers().get("x-subject-token");
        let token = token.map(|it| it.to_str().unwrap().to_owned());
        (answer.status().as_u16(), token.unwrap_or_default())
    };
    let tokens = "/v3/auth/tokens";
    let (status, admin) = ask("POST", tokens, "", login("admin", "secret", Some("admin")));
    assert_eq!(
        (status, ask("GET", "/v3/users", &admin, Value::Null).0),
        (201, 200)
    );
    let (status, nova) = ask("POST", tokens, "", login("nova", "x", None));
    assert_eq!(
        (status, ask("GET", "/v3/users", &nova, Value::Null).0),
        (201, 403)
    );
    assert_eq!(ask("GET", "/v3/users", "", Value::Null).0, 401);
    for (name, password, project) in [
        ("admin", "other", Some("admin")),
        ("nova", "x", Some("admin")),
        ("nova", "y", None),
        ("none", "x", None),
    ] {
        let (status, _) = ask("POST", tokens, "", login(name, password, project));
        assert_eq!(status, 401, "{name} {password}");
    }
    let path = format!("/v3/users/{}", id(&keystone, "users", "nova"));
    keystone.asked("PATCH", &path, &json!({"user": {"enabled": false}}));
    assert_eq!(ask("POST", tokens, "", login("nova", "x", None)).0, 401);
}
