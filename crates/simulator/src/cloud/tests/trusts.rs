use serde_json::json;

use super::*;

/// A trust of demo's member role to the user admin, and the answer to a login with it.
async fn trusted(client: &Client, admin: &Client, extra: Value) -> (Value, Got) {
    let mut trust = json!({"trustor_user_id": client.user, "trustee_user_id": admin.user,
        "project_id": client.project, "impersonation": true, "roles": [{"name": "member"}]});
    for (name, value) in extra.as_object().unwrap() {
        trust[name] = value.clone();
    }
    let created = client
        .make("/identity/v3/OS-TRUST/trusts", json!({"trust": trust}))
        .await;
    let got = admin
        .post("/identity/v3/auth/tokens", by_trust(admin, &created))
        .await;
    (created, got)
}

fn by_trust(trustee: &Client, trust: &Value) -> Value {
    json!({"auth": {"identity": {"methods": ["token"], "token": {"id": trustee.token}},
        "scope": {"OS-TRUST:trust": {"id": trust["id"]}}}})
}

async fn both() -> (Cloud, Client, Client) {
    let (cloud, client) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    (cloud, client, admin)
}

#[tokio::test]
async fn a_trustee_acts_as_the_trustor_with_the_roles_of_the_trust() {
    let (_cloud, client, admin) = both().await;
    let (created, got) = trusted(&client, &admin, json!({})).await;
    assert_eq!(got.status, 201, "{}", got.text);
    let token = &got.body["token"];
    assert_eq!(token["user"]["id"], client.user);
    assert_eq!(token["project"]["id"], client.project);
    assert_eq!(token["OS-TRUST:trust"]["id"], created["id"]);
    assert_eq!(token["roles"].as_array().unwrap().len(), 1);
    assert!(token["roles"][0]["options"].is_object(), "{token}");
    assert!(token.get("is_domain").is_none(), "{token}");
    let mut acting = admin.clone();
    acting.token = got.headers["x-subject-token"].to_str().unwrap().to_owned();
    let network = acting
        .make("/network/v2.0/networks", json!({"network": {"name": "n"}}))
        .await;
    assert_eq!(network["project_id"], client.project);
}

/// For Keystone such a token is the trustee's, and its bearer the trustor.
#[tokio::test]
async fn a_token_as_the_trustor_is_not_validated_by_itself_nor_for_the_trustor() {
    let (cloud, demo, admin) = both().await;
    let user = json!({"user": {"name": "alice", "password": "secret", "domain_id": "default"}});
    let user = id(&admin.make("/identity/v3/users", user).await);
    let unscoped = json!({"auth": {"identity": {"methods": ["password"],
        "password": {"user": {"id": user, "password": "secret"}}}}});
    let got = admin.post("/identity/v3/auth/tokens", unscoped).await;
    let bearer = |got: &Got, user: &str| Client {
        token: got.headers["x-subject-token"].to_str().unwrap().to_owned(),
        user: user.to_owned(),
        router: cloud.router(BASE),
        project: demo.project.clone(),
    };
    let alice = bearer(&got, &user);
    for (impersonation, by_itself, by_trustor) in [(true, 403, 403), (false, 200, 403)] {
        let trust = json!({"trustee_user_id": user, "trustor_user_id": demo.user,
            "project_id": demo.project, "impersonation": impersonation, "roles": [{"name": "member"}]});
        let path = "/identity/v3/OS-TRUST/trusts";
        let trust = demo.make(path, json!({"trust": trust})).await;
        let path = "/identity/v3/auth/tokens";
        let got = alice.post(path, by_trust(&alice, &trust)).await;
        assert_eq!(got.status, 201, "{}", got.text);
        let acting = bearer(&got, &demo.user);
        let subject = [("x-subject-token", acting.token.as_str())];
        for (who, expected) in [
            (&acting, by_itself),
            (&demo, by_trustor),
            (&alice, 200),
            (&admin, 200),
        ] {
            let got = who.send(Method::GET, path, &subject, &Value::Null).await;
            assert_eq!(got.status, expected, "{impersonation}: {}", got.text);
        }
        if impersonation {
            let got = acting.send(Method::DELETE, path, &subject, &Value::Null);
            assert_eq!(got.await.status, 403);
        }
    }
}

#[tokio::test]
async fn tokens_of_a_trust_end_with_it() {
    let (_cloud, client, admin) = both().await;
    let (created, got) = trusted(&client, &admin, json!({"impersonation": false})).await;
    assert_eq!(got.body["token"]["user"]["id"], admin.user);
    let mut acting = admin.clone();
    acting.token = got.headers["x-subject-token"].to_str().unwrap().to_owned();
    assert_eq!(acting.get("/compute/v2.1/servers").await.status, 200);
    let one = format!("/identity/v3/OS-TRUST/trusts/{}", id(&created));
    assert_eq!(client.delete(&one).await.status, 204);
    assert_eq!(acting.get("/compute/v2.1/servers").await.status, 401);
    assert_eq!(client.get(&one).await.status, 404);
}

#[tokio::test]
async fn a_trust_with_one_use_is_used_once() {
    let (_cloud, client, admin) = both().await;
    let (created, got) = trusted(&client, &admin, json!({"remaining_uses": 1})).await;
    assert_eq!(got.status, 201);
    let again = admin
        .post("/identity/v3/auth/tokens", by_trust(&admin, &created))
        .await;
    assert_eq!(again.status, 401);
}

#[tokio::test]
async fn trusts_are_refused_as_keystone_refuses_them() {
    let (_cloud, client, admin) = both().await;
    let good = json!({"trustor_user_id": client.user, "trustee_user_id": admin.user,
        "project_id": client.project, "impersonation": true, "roles": [{"name": "member"}]});
    for (field, value, status) in [
        ("trustor_user_id", json!(admin.user), 403),
        ("trustee_user_id", json!("nobody"), 404),
        ("roles", json!([]), 403),
        ("roles", json!([{"name": "admin"}]), 404),
        ("expires_at", json!("2001-01-01T00:00:00.000000Z"), 400),
        ("expires_at", json!("tomorrow"), 400),
    ] {
        let mut trust = good.clone();
        trust[field] = value;
        let got = client
            .post("/identity/v3/OS-TRUST/trusts", json!({"trust": trust}))
            .await;
        assert_eq!(got.status, status, "{field}: {}", got.text);
    }
    let all = client.get("/identity/v3/OS-TRUST/trusts").await;
    assert_eq!(all.status, 403);
    let url = format!(
        "/identity/v3/OS-TRUST/trusts?trustor_user_id={}",
        client.user
    );
    assert_eq!(client.fetch(&url).await, json!([]));
}
