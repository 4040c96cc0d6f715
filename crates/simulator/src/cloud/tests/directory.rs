//! Groups, domains, places of roles, and the validation of tokens.

use serde_json::json;

use super::*;

const TOKENS: &str = "/identity/v3/auth/tokens";

/// A user of a domain, with the password `secret`.
async fn user(admin: &Client, name: &str, domain: &str) -> String {
    let body = json!({"user": {"name": name, "password": "secret", "domain_id": domain}});
    id(&admin.make("/identity/v3/users", body).await)
}

async fn group(admin: &Client, name: &str, domain: &str) -> String {
    let body = json!({"group": {"name": name, "domain_id": domain}});
    id(&admin.make("/identity/v3/groups", body).await)
}

async fn domain(admin: &Client, name: &str) -> String {
    let body = json!({"domain": {"name": name}});
    id(&admin.make("/identity/v3/domains", body).await)
}

async fn role(admin: &Client, name: &str) -> String {
    id(&admin
        .fetch(&format!("/identity/v3/roles?name={name}"))
        .await[0])
}

/// The answer to a login of a user by id.
async fn log_in(client: &Client, user: &str, scope: Value) -> Got {
    let body = json!({"auth": {"identity": {"methods": ["password"],
        "password": {"user": {"id": user, "password": "secret"}}}, "scope": scope}});
    client.post(TOKENS, body).await
}

fn token(got: &Got) -> String {
    assert_eq!(got.status, 201, "{}", got.text);
    got.headers["x-subject-token"].to_str().unwrap().to_owned()
}

fn with(client: &Client, token: &str) -> Client {
    Client {
        token: token.to_owned(),
        ..client.clone()
    }
}

/// The answer to a validation of `subject` by `client`.
async fn validated(client: &Client, method: Method, subject: &str) -> Got {
    let headers = [("x-subject-token", subject)];
    client.send(method, TOKENS, &headers, &Value::Null).await
}

fn names(list: &Value) -> Vec<&str> {
    let list = list.as_array().unwrap().iter();
    list.map(|it| it["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn groups_have_members_whose_own_groups_they_alone_and_administrators_see() {
    let (cloud, demo) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    let (devs, ops) = (
        group(&admin, "devs", "default").await,
        group(&admin, "ops", "default").await,
    );
    let again = json!({"group": {"name": "devs"}});
    assert_eq!(
        admin.post("/identity/v3/groups", again).await.status,
        409,
        "names are unique"
    );
    let member = format!("/identity/v3/groups/{devs}/users/{}", demo.user);
    let send =
        async |method: Method, path: &str| admin.send(method, path, &[], &Value::Null).await.status;
    assert_eq!(send(Method::HEAD, &member).await, 404);
    assert_eq!(demo.put(&member, Value::Null).await.status, 403);
    assert_eq!(send(Method::PUT, &member).await, 204);
    assert_eq!(send(Method::PUT, &member).await, 204, "a second time, too");
    assert_eq!(send(Method::HEAD, &member).await, 204);
    let nobody = format!("/identity/v3/groups/{devs}/users/nobody");
    assert_eq!(send(Method::PUT, &nobody).await, 404);

    let of_demo = format!("/identity/v3/users/{}/groups", demo.user);
    let got = demo.get(&of_demo).await;
    assert_eq!(got.status, 200, "{}", got.text);
    let expected = json!([{"id": devs, "name": "devs", "domain_id": "default", "description": "", "membership_expires_at": null,
        "links": {"self": format!("{BASE}/identity/v3/groups/{devs}")}}]);
    assert_eq!(got.body["groups"], expected);
    assert_eq!(names(&admin.fetch(&of_demo).await), ["devs"]);
    let of_admin = format!("/identity/v3/users/{}/groups", admin.user);
    assert_eq!(demo.get(&of_admin).await.status, 403);
    let of_nobody = "/identity/v3/users/nobody/groups";
    assert_eq!(demo.get(of_nobody).await.status, 403);
    assert_eq!(admin.get(of_nobody).await.status, 404);
    assert_eq!(demo.post(&of_demo, json!({})).await.status, 405);
    let members = admin
        .fetch(&format!("/identity/v3/groups/{devs}/users"))
        .await;
    assert_eq!(names(&members), ["demo"]);
    assert!(!members.to_string().contains("_password"), "{members}");

    assert_eq!(send(Method::DELETE, &member).await, 204);
    assert_eq!(send(Method::DELETE, &member).await, 404);
    let one = format!("/identity/v3/groups/{ops}");
    let renamed = json!({"group": {"name": "devs"}});
    let got = admin.send(Method::PATCH, &one, &[], &renamed).await;
    assert_eq!(got.status, 409);
    assert_eq!(send(Method::DELETE, &one).await, 204);
    assert_eq!(names(&admin.fetch("/identity/v3/groups").await), ["devs"]);
    let demo = Client::login(&cloud, "demo").await;
    assert_eq!(demo.get("/identity/v3/groups").await.status, 403);
}

#[tokio::test]
async fn a_group_has_roles_for_its_members_as_long_as_they_are_in_it() {
    let (cloud, demo) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    let (alice, devs) = (
        user(&admin, "alice", "default").await,
        group(&admin, "devs", "default").await,
    );
    let member = role(&admin, "member").await;
    let grant = format!(
        "/identity/v3/projects/{}/groups/{devs}/roles/{member}",
        demo.project
    );
    assert_eq!(admin.put(&grant, Value::Null).await.status, 204);
    assert_eq!(admin.get(&grant).await.status, 204);
    let scope = json!({"project": {"id": demo.project}});
    assert_eq!(log_in(&demo, &alice, scope.clone()).await.status, 401);
    let membership = format!("/identity/v3/groups/{devs}/users/{alice}");
    assert_eq!(admin.put(&membership, Value::Null).await.status, 204);
    let got = log_in(&demo, &alice, scope).await;
    // Keystone's members are readers, too.
    assert_eq!(names(&got.body["token"]["roles"]), ["member", "reader"]);
    let alice_here = with(&demo, &token(&got));
    assert_eq!(
        names(&alice_here.fetch("/identity/v3/auth/projects").await),
        ["demo"]
    );
    let path = format!("/identity/v3/role_assignments?user.id={alice}");
    assert_eq!(alice_here.get(&path).await.status, 403);
    assert_eq!(
        alice_here
            .send(Method::HEAD, &membership, &[], &Value::Null)
            .await
            .status,
        403
    );
    let path = format!("/identity/v3/role_assignments?group.id={devs}&include_names=true");
    let found = admin.fetch(&path).await;
    assert_eq!(found[0]["group"]["name"], "devs");
    assert_eq!(found[0]["scope"]["project"]["domain"]["name"], "Default");
    assert_eq!(alice_here.get("/network/v2.0/networks").await.status, 200);
    assert_eq!(admin.delete(&membership).await.status, 204);
    assert_eq!(alice_here.get("/network/v2.0/networks").await.status, 401);
    let got = validated(&admin, Method::GET, &alice_here.token).await;
    assert_eq!(got.status, 404, "no roles are left in the scope");
}

#[tokio::test]
async fn who_leaves_a_group_or_had_roles_by_a_deleted_one_logs_in_anew() {
    let (cloud, demo) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    let alice = user(&admin, "alice", "default").await;
    let status = async |client: &Client| client.get("/identity/v3/auth/projects").await.status;
    for (with_role, deleted, expected) in
        [(false, false, 401), (true, true, 401), (false, true, 200)]
    {
        let devs = group(&admin, "devs", "default").await;
        let path = format!("/identity/v3/groups/{devs}");
        let membership = format!("{path}/users/{alice}");
        assert_eq!(admin.put(&membership, Value::Null).await.status, 204);
        if with_role {
            let reader = role(&admin, "reader").await;
            let grant = format!("/identity/v3/system/groups/{devs}/roles/{reader}");
            assert_eq!(admin.put(&grant, Value::Null).await.status, 204);
        }
        let got = log_in(&demo, &alice, json!("unscoped")).await;
        let alice = with(&demo, &token(&got));
        assert_eq!(status(&alice).await, 200);
        if !deleted {
            assert_eq!(admin.delete(&membership).await.status, 204);
            assert_eq!(status(&alice).await, expected);
        }
        assert_eq!(admin.delete(&path).await.status, 204);
        assert_eq!(status(&alice).await, expected, "{with_role} {deleted}");
    }
}

#[tokio::test]
async fn users_of_one_name_in_two_domains_are_two() {
    let cloud = cloud().await;
    let admin = Client::login(&cloud, "admin").await;
    let acme = domain(&admin, "acme").await;
    let first = user(&admin, "alice", "default").await;
    let second = user(&admin, "alice", &acme).await;
    assert_ne!(first, second);
    let again = json!({"user": {"name": "alice", "domain_id": acme}});
    assert_eq!(admin.post("/identity/v3/users", again).await.status, 409);
    let project = json!({"project": {"name": "demo", "domain_id": acme}});
    let project = id(&admin.make("/identity/v3/projects", project).await);
    let member = role(&admin, "member").await;
    let grant = format!("/identity/v3/projects/{project}/users/{second}/roles/{member}");
    assert_eq!(admin.put(&grant, Value::Null).await.status, 204);
    let body = |domain: &str| {
        json!({"auth": {"identity": {"methods": ["password"], "password": {"user": {
            "name": "alice", "domain": {"name": domain}, "password": "secret"}}},
            "scope": {"project": {"name": "demo", "domain": {"name": domain}}}}})
    };
    let got = admin.post(TOKENS, body("acme")).await;
    assert_eq!(got.body["token"]["user"]["domain"]["name"], "acme");
    assert_eq!(got.body["token"]["user"]["id"], second.as_str());
    let alice = with(&admin, &token(&got));
    assert_eq!(admin.post(TOKENS, body("Default")).await.status, 401);

    // While a domain is disabled, its users have nothing.
    let path = format!("/identity/v3/domains/{acme}");
    let set = async |enabled: bool| {
        let body = json!({"domain": {"enabled": enabled}});
        admin.send(Method::PATCH, &path, &[], &body).await.status
    };
    assert_eq!(admin.delete(&path).await.status, 403, "it is enabled");
    assert_eq!(set(false).await, 200);
    assert_eq!(admin.post(TOKENS, body("acme")).await.status, 401);
    assert_eq!(alice.get("/identity/v3/auth/projects").await.status, 401);
    assert_eq!(set(true).await, 200);
    assert_eq!(alice.get("/identity/v3/auth/projects").await.status, 200);
    assert_eq!(admin.post(TOKENS, body("acme")).await.status, 201);
    assert_eq!(set(false).await, 200);
    assert_eq!(admin.delete(&path).await.status, 204);
    let gone = format!("/identity/v3/users/{second}");
    assert_eq!(admin.get(&gone).await.status, 404);
}

#[tokio::test]
async fn a_token_of_another_is_validated_for_administrators_services_and_readers_of_the_system() {
    let (cloud, demo) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    let body = json!({"role": {"name": "service"}});
    let service = id(&admin.make("/identity/v3/roles", body).await);
    let (nova, auditor) = (
        user(&admin, "nova", "default").await,
        user(&admin, "auditor", "default").await,
    );
    let grant = format!(
        "/identity/v3/projects/{}/users/{nova}/roles/{service}",
        demo.project
    );
    assert_eq!(admin.put(&grant, Value::Null).await.status, 204);
    let reader = role(&admin, "reader").await;
    let grant = format!("/identity/v3/system/users/{auditor}/roles/{reader}");
    assert_eq!(admin.put(&grant, Value::Null).await.status, 204);
    let got = log_in(&demo, &nova, json!({"project": {"id": demo.project}})).await;
    let nova = with(&demo, &token(&got));
    let got = log_in(&demo, &auditor, json!({"system": {"all": true}})).await;
    assert_eq!(got.body["token"]["system"], json!({"all": true}));
    let auditor = with(&demo, &token(&got));

    let other = Client::login(&cloud, "demo").await;
    let unknown = "gAAAAABunknown";
    let rows = [
        (&demo, demo.token.as_str(), 200),
        (&demo, other.token.as_str(), 200),
        (&demo, admin.token.as_str(), 403),
        (&demo, unknown, 404),
        (&admin, demo.token.as_str(), 200),
        (&admin, unknown, 404),
        (&nova, demo.token.as_str(), 200),
        (&auditor, admin.token.as_str(), 200),
    ];
    for (number, (client, subject, status)) in rows.into_iter().enumerate() {
        for method in [Method::GET, Method::HEAD] {
            let got = validated(client, method, subject).await;
            assert_eq!(got.status, status, "row {number}: {}", got.text);
        }
    }
    let without = |client: &Client| {
        let client = client.clone();
        async move { client.get(TOKENS).await.status }
    };
    assert_eq!((without(&demo).await, without(&admin).await), (403, 404));
    let revoked = |client: &Client| {
        let (client, subject) = (client.clone(), other.token.clone());
        async move { validated(&client, Method::DELETE, &subject).await.status }
    };
    assert_eq!(revoked(&nova).await, 403, "a service validates only");
    assert_eq!(revoked(&admin).await, 204);
    assert_eq!(
        validated(&admin, Method::GET, &other.token).await.status,
        404
    );

    cloud.advance_clock(std::time::Duration::from_secs(25 * 3600));
    let admin = Client::login(&cloud, "admin").await;
    assert_eq!(
        validated(&admin, Method::GET, &demo.token).await.status,
        404
    );
    let path = format!("{TOKENS}?allow_expired=1");
    let headers = [("x-subject-token", demo.token.as_str())];
    let got = admin.send(Method::GET, &path, &headers, &Value::Null).await;
    assert_eq!(got.status, 200, "{}", got.text);
}

#[tokio::test]
async fn who_is_disabled_has_no_tokens_and_a_user_never_again_the_old_ones() {
    let (cloud, demo) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    for (path, key, again) in [
        (
            format!("/identity/v3/projects/{}", demo.project),
            "project",
            200,
        ),
        (format!("/identity/v3/users/{}", demo.user), "user", 404),
    ] {
        let before = Client::login(&cloud, "demo").await;
        for (enabled, status, of_login) in [(false, 404, 401), (true, again, 201)] {
            let body = json!({key: {"enabled": enabled}});
            let got = admin.send(Method::PATCH, &path, &[], &body).await;
            assert_eq!(got.status, 200, "{}", got.text);
            let got = validated(&admin, Method::GET, &before.token).await;
            assert_eq!(got.status, status, "{key} {enabled}");
            let got = admin.post(TOKENS, password("demo")).await;
            assert_eq!(got.status, of_login, "{key} {enabled}");
        }
    }
}

#[tokio::test]
async fn roles_in_a_domain_and_in_the_system_give_tokens_for_them() {
    let (cloud, demo) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    let acme = domain(&admin, "acme").await;
    let (in_domain, in_system) = (
        json!({"domain": {"id": acme}}),
        json!({"system": {"all": true}}),
    );
    assert_eq!(
        log_in(&demo, &demo.user, in_domain.clone()).await.status,
        401
    );
    assert_eq!(
        log_in(&demo, &demo.user, in_system.clone()).await.status,
        401
    );
    let reader = role(&admin, "reader").await;
    for path in [format!("domains/{acme}"), "system".to_owned()] {
        let grant = format!("/identity/v3/{path}/users/{}/roles/{reader}", demo.user);
        assert_eq!(admin.put(&grant, Value::Null).await.status, 204);
    }
    let got = log_in(&demo, &demo.user, in_domain).await;
    assert_eq!(
        got.body["token"]["domain"],
        json!({"id": acme, "name": "acme"})
    );
    assert!(got.body["token"].get("project").is_none(), "{}", got.text);
    let here = with(&demo, &token(&got));
    assert_eq!(
        names(&here.fetch("/identity/v3/auth/domains").await),
        ["acme"]
    );
    assert_eq!(
        here.fetch("/identity/v3/auth/system").await,
        json!([{"all": true}])
    );
    let got = log_in(&demo, &demo.user, in_system).await;
    assert_eq!(names(&got.body["token"]["roles"]), ["reader"]);
    let catalog = got.body["token"]["catalog"].to_string();
    assert!(
        !catalog.contains("/volume/v3/"),
        "no URL lacks its project: {catalog}"
    );
    let path = format!("/identity/v3/role_assignments?user.id={}", demo.user);
    let found = admin.fetch(&format!("{path}&scope.system=all")).await;
    assert_eq!(found[0]["scope"], json!({"system": {"all": true}}));
    let found = admin.fetch(&format!("{path}&scope.domain.id={acme}")).await;
    assert_eq!(found[0]["scope"], json!({"domain": {"id": acme}}));
}

#[tokio::test]
async fn a_token_with_access_rules_is_validated_for_those_who_enforce_them() {
    let (cloud, demo) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    let path = format!("/identity/v3/users/{}/application_credentials", demo.user);
    let rules = json!([{"service": "kubernetes", "path": "/api/**", "method": "GET"}]);
    let body = json!({"application_credential": {"name": "cut", "access_rules": rules}});
    let created = demo.make(&path, body).await;
    let body = json!({"auth": {"identity": {"methods": ["application_credential"],
        "application_credential": {"id": created["id"], "secret": created["secret"]}}}});
    let got = demo.post(TOKENS, body).await;
    let cut = with(&demo, &token(&got));
    for (client, version, status) in [
        (&cut, None, 404),
        (&admin, None, 404),
        (&admin, Some("0.9"), 404),
        (&admin, Some("1.0"), 200),
        (&cut, Some("1.0"), 200),
    ] {
        let mut headers = vec![("x-subject-token", cut.token.as_str())];
        headers.extend(version.map(|it| ("openstack-identity-access-rules", it)));
        let got = client
            .send(Method::GET, TOKENS, &headers, &Value::Null)
            .await;
        assert_eq!(got.status, status, "{version:?}: {}", got.text);
        if status == 200 {
            let of_token = &got.body["token"]["application_credential"];
            assert_eq!(of_token["access_rules"][0]["path"], "/api/**");
            assert_eq!(of_token["restricted"], true);
        }
    }
    let again = json!({"auth": {"identity": {"methods": ["token"], "token": {"id": cut.token}}}});
    assert_eq!(demo.post(TOKENS, again).await.status, 404);
    // Keystone itself does not enforce the rules.
    assert_eq!(cut.get("/identity/v3/auth/projects").await.status, 200);
}

#[tokio::test]
async fn a_token_by_a_token_ends_with_it_and_is_for_another_scope() {
    let (_cloud, demo) = demo().await;
    let by_token = json!({"auth": {"identity": {"methods": ["token"], "token": {"id": demo.token}},
        "scope": {"project": {"id": demo.project}}}});
    let got = demo.post(TOKENS, by_token).await;
    let first = validated(&demo, Method::GET, &demo.token).await;
    assert_eq!(
        got.body["token"]["expires_at"],
        first.body["token"]["expires_at"]
    );
    assert_eq!(got.body["token"]["methods"], json!(["token", "password"]));
    let ids = got.body["token"]["audit_ids"].as_array().unwrap();
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[1], first.body["token"]["audit_ids"][0]);
}

#[tokio::test]
async fn services_enforce_access_rules() {
    let (_cloud, demo) = demo().await;
    let path = format!("/identity/v3/users/{}/application_credentials", demo.user);
    let rules = json!([{"service": "network", "path": "/v2.0/networks", "method": "GET"}]);
    let body = json!({"application_credential": {"name": "cut", "access_rules": rules}});
    let created = demo.make(&path, body).await;
    let body = json!({"auth": {"identity": {"methods": ["application_credential"],
        "application_credential": {"id": created["id"], "secret": created["secret"]}}}});
    let cut = with(&demo, &token(&demo.post(TOKENS, body).await));
    assert_eq!(cut.get("/network/v2.0/networks").await.status, 200);
    assert_eq!(cut.get("/network/v2.0/ports").await.status, 401);
    assert_eq!(cut.get("/compute/v2.1/servers").await.status, 401);
}
