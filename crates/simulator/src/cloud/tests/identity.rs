use serde_json::json;

use super::*;

#[tokio::test]
async fn wrong_credentials_get_keystones_401() {
    let cloud = cloud().await;
    let client = Client {
        router: cloud.router(BASE),
        token: String::new(),
        project: String::new(),
        user: String::new(),
    };
    for change in [
        ("/auth/identity/password/user/password", "wrong"),
        ("/auth/identity/password/user/name", "nobody"),
        ("/auth/scope/project/name", "admin"),
    ] {
        let mut body = password("demo");
        *body.pointer_mut(change.0).unwrap() = json!(change.1);
        let got = client.post("/identity/v3/auth/tokens", body).await;
        assert_eq!(got.status, 401, "{change:?}");
        assert_eq!(got.body["error"]["code"], 401);
    }
    let got = client.get("/compute/v2.1/servers").await;
    assert_eq!(got.status, 401);
    assert!(got.headers.contains_key("www-authenticate"));
}

#[tokio::test]
async fn the_catalog_has_unversioned_urls_except_for_nova_and_cinder() {
    let (_cloud, client) = demo().await;
    let catalog = client.fetch("/identity/v3/auth/catalog").await;
    let url = |kind: &str| {
        let entry = catalog
            .as_array()
            .unwrap()
            .iter()
            .find(|entry| entry["type"] == kind)
            .unwrap();
        entry["endpoints"][0]["url"].as_str().unwrap().to_owned()
    };
    assert_eq!(url("network"), "http://simulated/network");
    assert_eq!(url("compute"), "http://simulated/compute/v2.1");
    assert_eq!(
        url("volumev3"),
        format!("http://simulated/volume/v3/{}", client.project)
    );
}

#[tokio::test]
async fn an_application_credential_logs_in_until_it_is_deleted() {
    let (_cloud, client) = demo().await;
    let path = format!("/identity/v3/users/{}/application_credentials", client.user);
    let created = client
        .make(&path, json!({"application_credential": {"name": "ac"}}))
        .await;
    let body = json!({"auth": {"identity": {"methods": ["application_credential"],
        "application_credential": {"id": created["id"], "secret": created["secret"]}}}});
    let got = client.post("/identity/v3/auth/tokens", body.clone()).await;
    assert_eq!(got.status, 201, "{}", got.text);
    assert_eq!(got.body["token"]["project"]["id"], client.project);
    let derived = Client {
        token: got.headers["x-subject-token"].to_str().unwrap().to_owned(),
        ..client.clone()
    };
    assert_eq!(derived.get("/compute/v2.1/servers").await.status, 200);

    let again = client
        .post(&path, json!({"application_credential": {"name": "ac"}}))
        .await;
    assert_eq!(again.status, 409);
    let found = client.fetch(&format!("{path}/{}", id(&created))).await;
    assert!(found.get("secret").is_none() && !found.to_string().contains("_secret"));

    assert_eq!(
        client
            .delete(&format!("{path}/{}", id(&created)))
            .await
            .status,
        204
    );
    let got = client.post("/identity/v3/auth/tokens", body).await;
    let message = format!("Could not find Application Credential: {}.", id(&created));
    assert_eq!(
        got.body["error"],
        json!({"code": 404, "title": "Not Found", "message": message})
    );
    assert_eq!(derived.get("/compute/v2.1/servers").await.status, 401);
}

#[tokio::test]
async fn an_application_credential_manages_others_only_if_it_is_unrestricted() {
    let (_cloud, client) = demo().await;
    let path = format!("/identity/v3/users/{}/application_credentials", client.user);
    for (unrestricted, expected) in [(false, [403, 403]), (true, [201, 204])] {
        let name = format!("unrestricted {unrestricted}");
        let body = json!({"application_credential": {"name": name, "unrestricted": unrestricted}});
        let created = client.make(&path, body).await;
        let login = json!({"auth": {"identity": {"methods": ["application_credential"],
            "application_credential": {"id": created["id"], "secret": created["secret"]}}}});
        let got = client.post("/identity/v3/auth/tokens", login).await;
        let derived = Client {
            token: got.headers["x-subject-token"].to_str().unwrap().to_owned(),
            ..client.clone()
        };
        assert_eq!(derived.get(&path).await.status, 200);
        let other = json!({"application_credential": {"name": format!("of {name}")}});
        let other_one = derived.post(&path, other).await;
        let one = format!("{path}/{}", id(&created));
        let deleted = derived.delete(&one).await;
        assert_eq!(
            [other_one.status, deleted.status],
            expected,
            "{}",
            other_one.text
        );
    }
}

#[tokio::test]
async fn an_application_credential_with_a_past_expiry_or_a_wrong_rule_is_refused() {
    let (_cloud, client) = demo().await;
    let path = format!("/identity/v3/users/{}/application_credentials", client.user);
    let rule =
        |method: &str, path: &str| json!([{"service": "compute", "method": method, "path": path}]);
    for (field, value) in [
        ("expires_at", json!("2001-01-01T00:00:00Z")),
        ("expires_at", json!("soon")),
        ("access_rules", rule("ANY", "/v2.1/servers")),
        ("access_rules", rule("GET", "v2.1/servers")),
        (
            "access_rules",
            rule("GET", &format!("/{}", "x".repeat(225))),
        ),
    ] {
        let body = json!({"application_credential": {"name": "ac", field: value}});
        let got = client.post(&path, body).await;
        assert_eq!(got.status, 400, "{field} {value}");
    }
    let secret = json!({"application_credential": {"name": "ac", "secret": "mine"}});
    let created = client.make(&path, secret).await;
    assert_eq!(created["secret"], "mine");
}

#[tokio::test]
async fn a_token_ends_with_its_lifetime_or_its_revocation() {
    let (cloud, client) = demo().await;
    let subject = [("x-subject-token", client.token.clone())];
    let headers = [("x-subject-token", subject[0].1.as_str())];
    let got = client
        .send(
            Method::GET,
            "/identity/v3/auth/tokens",
            &headers,
            &Value::Null,
        )
        .await;
    assert_eq!(got.status, 200);
    let other = Client::login(&cloud, "demo").await;
    let revoke = [("x-subject-token", other.token.as_str())];
    assert_eq!(
        other
            .send(
                Method::DELETE,
                "/identity/v3/auth/tokens",
                &revoke,
                &Value::Null
            )
            .await
            .status,
        204
    );
    assert_eq!(other.get("/network/v2.0/networks").await.status, 401);
    cloud.advance_clock(std::time::Duration::from_secs(25 * 3600));
    assert_eq!(client.get("/network/v2.0/networks").await.status, 401);
}

#[tokio::test]
async fn a_reader_reads_and_does_not_write() {
    let cloud = cloud().await;
    let admin = Client::login(&cloud, "admin").await;
    let project = admin
        .make(
            "/identity/v3/projects",
            json!({"project": {"name": "watch"}}),
        )
        .await;
    let user = admin
        .make(
            "/identity/v3/users",
            json!({"user": {"name": "watch", "password": "secret"}}),
        )
        .await;
    let roles = admin.fetch("/identity/v3/roles?name=reader").await;
    let grant = format!(
        "/identity/v3/projects/{}/users/{}/roles/{}",
        id(&project),
        id(&user),
        id(&roles[0])
    );
    assert_eq!(admin.put(&grant, Value::Null).await.status, 204);
    let reader = Client::login(&cloud, "watch").await;
    assert_eq!(reader.get("/network/v2.0/networks").await.status, 200);
    for (path, body, key) in [
        (
            "/network/v2.0/networks",
            json!({"network": {}}),
            "NeutronError",
        ),
        ("/compute/v2.1/servers", json!({"server": {}}), "forbidden"),
        (
            "/load-balancer/v2.0/lbaas/loadbalancers",
            json!({"loadbalancer": {}}),
            "faultcode",
        ),
    ] {
        let got = reader.post(path, body).await;
        assert_eq!(got.status, 403, "{path}");
        assert!(got.body.get(key).is_some(), "{path}: {}", got.text);
    }
}

#[tokio::test]
async fn projects_do_not_see_each_other() {
    let (cloud, demo) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    let created = admin
        .make(
            "/network/v2.0/networks",
            json!({"network": {"name": "theirs"}}),
        )
        .await;
    assert_eq!(
        demo.get(&format!("/network/v2.0/networks/{}", id(&created)))
            .await
            .status,
        404
    );
    let network = demo
        .make(
            "/network/v2.0/networks",
            json!({"network": {"name": "ours"}}),
        )
        .await;
    assert_eq!(
        admin
            .get(&format!("/network/v2.0/networks/{}", id(&network)))
            .await
            .status,
        200
    );
    let seen = demo.fetch("/network/v2.0/networks").await;
    let names: Vec<&str> = seen
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|n| n["name"].as_str())
        .collect();
    assert!(names.contains(&"ours") && names.contains(&"public") && !names.contains(&"theirs"));
}

#[tokio::test]
async fn version_documents_are_served_without_a_token() {
    let cloud = cloud().await;
    let client = Client {
        router: cloud.router(BASE),
        token: String::new(),
        project: String::new(),
        user: String::new(),
    };
    for (path, status, pointer, value) in [
        ("/identity/", 300, "/versions/values/0/id", "v3.14"),
        ("/identity/v3", 200, "/version/id", "v3.14"),
        ("/compute/", 200, "/versions/1/version", "2.93"),
        ("/compute/v2.1/", 200, "/version/min_version", "2.1"),
        ("/network/", 200, "/versions/0/id", "v2.0"),
        ("/image/", 300, "/versions/0/status", "CURRENT"),
        ("/volume/", 300, "/versions/0/version", "3.70"),
        ("/load-balancer/", 200, "/versions/26/id", "v2.26"),
        ("/placement/", 200, "/versions/0/max_version", "1.39"),
    ] {
        let got = client.get(path).await;
        assert_eq!(got.status, status, "{path}");
        assert_eq!(
            got.body.pointer(pointer),
            Some(&json!(value)),
            "{path}: {}",
            got.text
        );
    }
}

#[tokio::test]
async fn what_is_written_to_the_catalog_is_in_tokens_until_it_is_gone() {
    let cloud = cloud().await;
    let admin = Client::login(&cloud, "admin").await;
    let service = json!({"service": {"type": "dns", "name": "designate", "description": "ours"}});
    let service = admin.make("/identity/v3/services", service).await;
    let body = |interface: &str| {
        json!({"endpoint": {"service_id": service["id"], "interface": interface,
            "url": "http://dns:9001/%(project_id)s", "region_id": "RegionOne"}})
    };
    for interface in ["admin", "public"] {
        admin.make("/identity/v3/endpoints", body(interface)).await;
    }
    let demo = Client::login(&cloud, "demo").await;
    let urls = async || {
        let catalog = demo.fetch("/identity/v3/auth/catalog").await;
        let all = catalog.as_array().unwrap().iter();
        let found = all.filter(|it| it["type"] == "dns").flat_map(|it| {
            let endpoints = it["endpoints"].as_array().unwrap().iter();
            endpoints.map(|it| it["url"].as_str().unwrap().to_owned())
        });
        found.collect::<Vec<String>>()
    };
    let url = format!("http://dns:9001/{}", demo.project);
    assert_eq!(urls().await, [url.clone(), url]);
    let all = admin.fetch("/identity/v3/endpoints").await;
    let mut all = all.as_array().unwrap().iter();
    // The list has the URL as written.
    assert!(all.any(|it| it["url"] == "http://dns:9001/%(project_id)s"));

    let path = format!("/identity/v3/services/{}", id(&service));
    let off = json!({"service": {"enabled": false}});
    let got = admin.send(Method::PATCH, &path, &[], &off).await;
    assert_eq!(
        (got.status, &got.body["service"]["description"]),
        (200, &json!("ours"))
    );
    assert_eq!(urls().await, Vec::<String>::new());
    assert_eq!(demo.delete(&path).await.status, 403);
    assert_eq!(admin.delete(&path).await.status, 204);
    let left = admin.fetch("/identity/v3/endpoints").await;
    assert_eq!(left.as_array().unwrap().len(), 24);
}

#[tokio::test]
async fn a_store_without_a_catalog_gets_one() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        store: Some(directory.path().join("cloud.db")),
        ..Options::default()
    };
    let cloud = Cloud::open(options.clone()).await.unwrap();
    let admin = Client::login(&cloud, "admin").await;
    let catalog = admin.fetch("/identity/v3/auth/catalog").await;
    drop((cloud, admin));
    let file = directory.path().join("cloud.db");
    let store = rusqlite::Connection::open(file).unwrap();
    // The task of the cloud may have it for a moment.
    store
        .busy_timeout(std::time::Duration::from_secs(60))
        .unwrap();
    let kinds = "'service', 'endpoint', 'region'";
    let delete = format!("DELETE FROM resource WHERE kind IN ({kinds})");
    assert_eq!(store.execute(&delete, []).unwrap(), 33);
    drop(store);
    let cloud = Cloud::open(options).await.unwrap();
    let admin = Client::login(&cloud, "admin").await;
    assert_eq!(admin.fetch("/identity/v3/auth/catalog").await, catalog);
}

#[tokio::test]
async fn an_application_credential_with_an_empty_list_of_roles_has_all_roles_of_its_token() {
    let (_cloud, client) = demo().await;
    let path = format!("/identity/v3/users/{}/application_credentials", client.user);
    for (name, roles) in [("empty", json!([])), ("null", json!(null))] {
        let created = client
            .make(
                &path,
                json!({"application_credential": {"name": name, "roles": roles}}),
            )
            .await;
        let roles = created["roles"].as_array().unwrap();
        assert!(roles.iter().any(|it| it["name"] == "member"), "{created}");
        let body = json!({"auth": {"identity": {"methods": ["application_credential"],
            "application_credential": {"id": created["id"], "secret": created["secret"]}}}});
        let got = client.post("/identity/v3/auth/tokens", body).await;
        assert_eq!(got.status, 201, "{}", got.text);
    }
}

/// As in Keystone: "The token will be unscoped rather than scoped to the project."
#[tokio::test]
async fn a_login_by_default_project_without_a_role_there_gets_a_token_for_no_project() {
    let cloud = cloud().await;
    let admin = Client::login(&cloud, "admin").await;
    let project = json!({"project": {"name": "lone"}});
    let project = id(&admin.make("/identity/v3/projects", project).await);
    let user =
        json!({"user": {"name": "loner", "password": "secret", "default_project_id": project}});
    let user = id(&admin.make("/identity/v3/users", user).await);
    let mut login = password("loner");
    let mut with_scope = login.clone();
    with_scope["auth"]["scope"]["project"]["name"] = json!("lone");
    login["auth"].as_object_mut().unwrap().remove("scope");
    let logged_in = async || {
        let got = admin.post("/identity/v3/auth/tokens", login.clone()).await;
        assert_eq!(got.status, 201, "{}", got.text);
        got.body["token"].clone()
    };
    let token = logged_in().await;
    assert_eq!(token["user"]["id"], user.as_str());
    for absent in ["project", "roles", "catalog"] {
        assert!(token.get(absent).is_none(), "{absent}: {token}");
    }
    let got = admin.post("/identity/v3/auth/tokens", with_scope).await;
    assert_eq!(got.status, 401, "a scope that is asked for is no default");
    let role = id(&admin.fetch("/identity/v3/roles?name=member").await[0]);
    let grant = format!("/identity/v3/projects/{project}/users/{user}/roles/{role}");
    assert_eq!(admin.put(&grant, Value::Null).await.status, 204);
    assert_eq!(logged_in().await["project"]["id"], project.as_str());
    let path = format!("/identity/v3/projects/{project}");
    let disabled = json!({"project": {"enabled": false}});
    let got = admin.send(Method::PATCH, &path, &[], &disabled).await;
    assert_eq!(got.status, 200, "{}", got.text);
    assert!(logged_in().await.get("project").is_none());
}
