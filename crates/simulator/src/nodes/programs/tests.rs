//! The exchange with RabbitMQ was recorded from RabbitMQ 3.10.8 (Debian 12) and 4.0.5 (Debian 13).

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::broker::Broker;
use super::deployed::Deployed;
use super::*;
use crate::cloud::Bootstrap;
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

async fn keystone() -> Deployed {
    let keystone = Deployed::open(None).await.unwrap();
    let bootstrap = |job: &str, password: &str| {
        let given = Bootstrap {
            password: password.to_owned(),
            region: "One".to_owned(),
            url: "http://keystone:5000/v3".to_owned(),
            service_role: true,
        };
        keystone.bootstrap(job, &given).unwrap();
    };
    let (status, _) = keystone.asked(Service::Identity, "GET", "/v3/users", &Value::Null);
    assert_eq!(status, 401, "before the bootstrap");
    bootstrap("first", "other");
    // Once more after the password was lost: nothing is made twice.
    bootstrap("second", "secret");
    keystone
}

fn id(keystone: &Deployed, kind: &str, name: &str) -> String {
    let (_, answer) = keystone.asked(
        Service::Identity,
        "GET",
        &format!("/v3/{kind}?name={name}"),
        &Value::Null,
    );
    text(&answer[kind][0]["id"]).to_owned()
}

fn login(name: &str, password: &str, project: Option<&str>) -> Value {
    let domain = json!({"id": "default"});
    let user = json!({"name": name, "domain": domain, "password": password});
    let identity = json!({"methods": ["password"], "password": {"user": user}});
    let mut body = json!({"auth": {"identity": identity}});
    if let Some(name) = project {
        body["auth"]["scope"] = json!({"project": {"name": name, "domain": domain}});
    }
    body
}

#[tokio::test]
async fn the_simulated_keystone_answers_writes_with_the_statuses_of_the_real_one() {
    let keystone = keystone().await;
    let [admin, project, role, own] = [
        ("users", "admin"),
        ("projects", "admin"),
        ("roles", "member"),
        ("services", "keystone"),
    ]
    .map(|(kind, name)| id(&keystone, kind, name));
    let grant = format!("/v3/projects/{project}/users/{admin}/roles/{role}");
    let fixed = format!("/v3/roles/{role}");
    let endpoint = |service: &str, interface: &str, region: &str| {
        let url = "http://x:1/%(project_id)s";
        json!({"endpoint": {"service_id": service, "interface": interface, "url": url,
            "region_id": region}})
    };
    let none = || Value::Null;
    let user = json!({"user": {"name": "nova", "domain_id": "default", "password": "x"}});
    let service = json!({"service": {"type": "x", "name": "x"}});
    let role = json!({"role": {"name": "x"}});
    let off = json!({"user": {"enabled": false}});
    for (method, path, body, status) in [
        ("POST", "/v3/users", user.clone(), 201),
        ("POST", "/v3/users", user, 409),
        ("POST", "/v3/users", json!({"user": {}}), 400),
        ("POST", "/v3/services", service.clone(), 201),
        ("POST", "/v3/services", service, 201),
        ("POST", "/v3/services", json!({"service": {}}), 400),
        (
            "POST",
            "/v3/endpoints",
            endpoint(&own, "public", "One"),
            201,
        ),
        (
            "POST",
            "/v3/endpoints",
            endpoint(&own, "public", "Two"),
            400,
        ),
        ("POST", "/v3/endpoints", endpoint(&own, "other", "One"), 400),
        ("POST", "/v3/endpoints", endpoint("x", "admin", "One"), 400),
        ("POST", "/v3/roles", role.clone(), 201),
        ("POST", "/v3/roles", role, 409),
        ("DELETE", fixed.as_str(), none(), 403),
        ("PUT", grant.as_str(), none(), 204),
        ("PUT", grant.as_str(), none(), 204),
        ("DELETE", grant.as_str(), none(), 204),
        ("DELETE", grant.as_str(), none(), 404),
        ("PATCH", "/v3/users/none", off, 404),
        ("DELETE", "/v3/users/none", none(), 404),
        ("DELETE", "/v3/services/none", none(), 404),
        ("DELETE", "/v3/endpoints/none", none(), 404),
    ] {
        let (found, answer) = keystone.asked(Service::Identity, method, path, &body);
        assert_eq!(found, status, "{method} {path} {answer}");
        assert!(!answer.to_string().contains("password\""), "{answer}");
    }
    let (_, endpoints) = keystone.asked(Service::Identity, "GET", "/v3/endpoints", &Value::Null);
    assert_eq!(items(&endpoints["endpoints"]).count(), 4);
    // The endpoints of a service go with it.
    let path = format!("/v3/services/{own}");
    assert_eq!(
        keystone
            .asked(Service::Identity, "DELETE", &path, &Value::Null)
            .0,
        204
    );
    let (_, endpoints) = keystone.asked(Service::Identity, "GET", "/v3/endpoints", &Value::Null);
    assert_eq!(items(&endpoints["endpoints"]).count(), 0);
}

/// Status, token and body of an answer on the port of Keystone.
async fn ask(
    keystone: &Deployed,
    (method, path): (&str, &str),
    token: &str,
    body: &Value,
) -> (u16, String, Value) {
    let request = Request::builder().method(method).uri(path);
    let request = request.header("x-auth-token", token);
    let request = request.header("host", "keystone:5000");
    let request = request.body(body.to_string().into()).unwrap();
    let answer = keystone.answer(Service::Identity, request).await;
    let token = answer.headers().get("x-subject-token");
    let token = token.map(|it| it.to_str().unwrap().to_owned());
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    (status, token.unwrap_or_default(), body)
}

#[tokio::test]
async fn who_is_no_administrator_neither_reads_nor_writes_and_a_disabled_user_does_not_log_in() {
    let keystone = keystone().await;
    let user = json!({"user": {"name": "nova", "domain_id": "default", "password": "x"}});
    keystone.asked(Service::Identity, "POST", "/v3/users", &user);
    let tokens = ("POST", "/v3/auth/tokens");
    let users = ("GET", "/v3/users");
    let none = Value::Null;
    let log_in = login("admin", "secret", Some("admin"));
    let (status, admin, answer) = ask(&keystone, tokens, "", &log_in).await;
    assert_eq!(status, 201);
    // In the cluster, the catalog is as it was written.
    let url = &answer["token"]["catalog"][0]["endpoints"][0]["url"];
    assert_eq!(*url, "http://keystone:5000/v3");
    let (status, _, all) = ask(&keystone, users, &admin, &none).await;
    assert_eq!(status, 200);
    let link = text(&all["users"][0]["links"]["self"]);
    assert!(link.starts_with("http://keystone:5000/v3/users/"), "{link}");
    let (status, nova, _) = ask(&keystone, tokens, "", &login("nova", "x", None)).await;
    let (denied, ..) = ask(&keystone, users, &nova, &none).await;
    assert_eq!((status, denied), (201, 403));
    assert_eq!(ask(&keystone, users, "", &none).await.0, 401);
    for (name, password, project) in [
        ("admin", "other", Some("admin")),
        ("nova", "x", Some("admin")),
        ("nova", "y", None),
        ("none", "x", None),
    ] {
        let log_in = login(name, password, project);
        let (status, ..) = ask(&keystone, tokens, "", &log_in).await;
        assert_eq!(status, 401, "{name} {password}");
    }
    let path = format!("/v3/users/{}", id(&keystone, "users", "nova"));
    keystone.asked(
        Service::Identity,
        "PATCH",
        &path,
        &json!({"user": {"password": "z"}}),
    );
    assert_eq!(ask(&keystone, users, &nova, &none).await.0, 401);
    let log_in = login("nova", "z", None);
    assert_eq!(ask(&keystone, tokens, "", &log_in).await.0, 201);
    keystone.asked(
        Service::Identity,
        "PATCH",
        &path,
        &json!({"user": {"enabled": false}}),
    );
    assert_eq!(ask(&keystone, tokens, "", &log_in).await.0, 401);
}

#[test]
fn a_broker_has_what_is_on_its_volume_after_a_restart() {
    use std::os::unix::fs::PermissionsExt as _;

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("new/volume.rabbitmq.json");
    let options = BTreeMap::new();
    let open = || Broker::open(&options, Some(file.clone()));
    let lists = |broker: &Broker| {
        ["vhosts", "users", "permissions"].map(|it| broker.asked("GET", it, "").1)
    };
    let broker = open().unwrap();
    for (path, body) in [
        (
            "vhosts/nova",
            json!({"description": "of nova", "tags": "a,b"}),
        ),
        ("users/nova", json!({"tags": "x", "password": "secret"})),
        (
            "permissions/nova/nova",
            json!({"configure": "", "write": ".*", "read": "a"}),
        ),
        ("vhosts/gone", json!({})),
    ] {
        assert_eq!(
            broker.asked("PUT", path, &body.to_string()).0,
            201,
            "{path}"
        );
    }
    assert_eq!(broker.asked("DELETE", "vhosts/gone", "").0, 204);
    let again = open().unwrap();
    assert_eq!(lists(&again), lists(&broker));
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for broken in ["", "[]", "{\"vhosts\": []}"] {
        std::fs::write(&file, broken).unwrap();
        let why = open().err().unwrap_or_default();
        assert!(why.contains("volume.rabbitmq.json: "), "{broken}: {why}");
    }
}
