//! Logins by more than a password: one-time passwords, receipts, and an identity provider.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::*;
use crate::cloud::identity_code;

const TOKENS: &str = "/identity/v3/auth/tokens";
const AUTH: &str = "/identity/v3/OS-FEDERATION/identity_providers/idp/protocols/openid/auth";
const SECRET: &str = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";

fn passcode(cloud: &Cloud, back: i64) -> String {
    let now = cloud.inner.clock.now().as_second();
    identity_code(b"12345678901234567890", now / 30 - back)
}

fn totp(user: &str, passcode: &str) -> Value {
    json!({"auth": {"identity": {"methods": ["totp"], "totp": {"user": {"id": user, "passcode": passcode}}}}})
}

#[tokio::test]
async fn a_user_with_rules_gets_a_receipt_for_half_a_login_and_a_token_for_the_rest() {
    let (cloud, demo) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    let factor = json!({"credential": {"type": "totp", "blob": SECRET, "user_id": demo.user}});
    admin.make("/identity/v3/credentials", factor).await;
    let rules = json!({"user": {"options": {"multi_factor_auth_enabled": true,
        "multi_factor_auth_rules": [["password", "totp"], ["password", "unknown", "totp"]]}}});
    let path = format!("/identity/v3/users/{}", demo.user);
    let got = admin.send(Method::PATCH, &path, &[], &rules).await;
    assert_eq!(got.status, 200, "{}", got.text);

    let got = demo.post(TOKENS, password("demo")).await;
    assert_eq!(got.status, 401, "{}", got.text);
    let receipt = got.headers["openstack-auth-receipt"].to_str().unwrap();
    let required = json!([["password", "totp"], ["password", "totp"]]);
    assert_eq!(got.body["required_auth_methods"], required);
    assert_eq!(got.body["receipt"]["methods"], json!(["password"]));
    assert_eq!(got.body["receipt"]["user"]["name"], "demo");
    let headers = [("openstack-auth-receipt", receipt)];
    let with = async |body: Value| demo.send(Method::POST, TOKENS, &headers, &body).await;
    assert_eq!(with(totp(&demo.user, "000000")).await.status, 401);
    assert_eq!(
        with(totp(&demo.user, &passcode(&cloud, 3))).await.status,
        401
    );
    for back in [0, 1] {
        let got = with(totp(&demo.user, &passcode(&cloud, back))).await;
        assert_eq!(got.status, 201, "{}", got.text);
        assert_eq!(got.body["token"]["methods"], json!(["totp", "password"]));
    }
    let both = |user: &str| {
        let mut body = password("demo");
        body["auth"]["identity"]["methods"] = json!(["password", "totp"]);
        body["auth"]["identity"]["totp"] =
            json!({"user": {"id": user, "passcode": passcode(&cloud, 0)}});
        body
    };
    let got = demo.post(TOKENS, both(&demo.user)).await;
    assert_eq!(got.status, 201, "in one request: {}", got.text);
    assert_eq!(demo.post(TOKENS, both(&admin.user)).await.status, 401);

    cloud.advance_clock(std::time::Duration::from_secs(301));
    let got = with(totp(&demo.user, &passcode(&cloud, 0))).await;
    assert_eq!(got.status, 401, "receipts are good for five minutes");
    let mine = demo.fetch("/identity/v3/credentials").await;
    assert_eq!(mine.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn options_of_a_user_that_are_not_named_stay_and_null_removes_one() {
    let (cloud, demo) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    let path = format!("/identity/v3/users/{}", demo.user);
    let rules = json!([["password", "totp"]]);
    for (options, expected) in [
        (
            json!({"multi_factor_auth_rules": rules}),
            json!({"multi_factor_auth_rules": rules}),
        ),
        (
            json!({"multi_factor_auth_enabled": false}),
            json!({"multi_factor_auth_rules": rules, "multi_factor_auth_enabled": false}),
        ),
        (
            json!({"multi_factor_auth_rules": null}),
            json!({"multi_factor_auth_enabled": false}),
        ),
    ] {
        let change = json!({"user": {"options": options}});
        let got = admin.send(Method::PATCH, &path, &[], &change).await;
        assert_eq!(got.body["user"]["options"], expected, "{}", got.text);
    }
}

/// The provider with the account alice, and Keystone's trust in it.
async fn provider(cloud: &Cloud) -> (Client, String) {
    let admin = Client::login(cloud, "admin").await;
    let known = json!({"clients": {"kubectl": "", "robot": "client-secret"}, "interval": 5,
        "accounts": {"alice": {"password": "secret", "groups": ["devs", "nothing-here"]}}});
    assert_eq!(admin.post("/_simulator/oidc", known).await.status, 204);
    let group = json!({"group": {"name": "devs"}});
    let group = id(&admin.make("/identity/v3/groups", group).await);
    let put = async |path: &str, body: Value| {
        let path = format!("/identity/v3/OS-FEDERATION/{path}");
        let got = admin.put(&path, body).await;
        assert_eq!(got.status, 201, "{}", got.text);
    };
    let rules = json!([{"local": [{"user": {"name": "{0}"}}, {"groups": "{1}", "domain": {"name": "Default"}}],
        "remote": [{"type": "OIDC-preferred_username"}, {"type": "HTTP_OIDC_GROUPS"}]}]);
    put("mappings/all", json!({"mapping": {"rules": rules}})).await;
    let body = json!({"identity_provider": {"enabled": true}});
    put("identity_providers/idp", body).await;
    let body = json!({"protocol": {"mapping_id": "all"}});
    put("identity_providers/idp/protocols/openid", body).await;
    (admin, group)
}

async fn form(client: &Client, path: &str, headers: &[(&str, &str)], body: &str) -> Got {
    let mut all = vec![("content-type", "application/x-www-form-urlencoded")];
    all.extend(headers);
    client
        .raw(Method::POST, path, &all, body.as_bytes().to_vec())
        .await
}

#[tokio::test]
async fn who_an_identity_provider_knows_gets_a_token_and_the_roles_of_its_groups() {
    let (cloud, demo) = demo().await;
    let (admin, group) = provider(&cloud).await;
    let nobody = Client {
        token: String::new(),
        ..demo.clone()
    };
    let document = nobody
        .get("/identity/oidc/.well-known/openid-configuration")
        .await;
    assert_eq!(
        document.body["token_endpoint"],
        format!("{BASE}/identity/oidc/token")
    );
    let body = "grant_type=password&client_id=kubectl&username=alice&password=";
    let at = "/identity/oidc/token";
    let got = form(&nobody, at, &[], &format!("{body}wrong")).await;
    assert_eq!(
        (got.status, &got.body["error"]),
        (400, &json!("invalid_grant"))
    );
    let got = form(
        &nobody,
        at,
        &[],
        &format!("{body}secret").replace("kubectl", "x"),
    )
    .await;
    assert_eq!(
        (got.status, &got.body["error"]),
        (401, &json!("invalid_client"))
    );
    let got = form(&nobody, at, &[], &format!("{body}secret")).await;
    let access = format!("Bearer {}", got.body["access_token"].as_str().unwrap());
    assert_eq!(nobody.post(AUTH, Value::Null).await.status, 401);
    let headers = [("authorization", access.as_str())];
    let got = nobody
        .send(Method::POST, AUTH, &headers, &Value::Null)
        .await;
    assert_eq!(got.status, 201, "{}", got.text);
    let token = &got.body["token"];
    assert_eq!(token["methods"], json!(["openid"]));
    assert_eq!(token["user"]["name"], "alice");
    assert_eq!(
        token["user"]["OS-FEDERATION"]["groups"],
        json!([{"id": group}])
    );
    assert!(token.get("roles").is_none() && token["user"].get("password_expires_at").is_none());
    let unscoped = got.headers["x-subject-token"].to_str().unwrap().to_owned();

    let scoped = json!({"auth": {"identity": {"methods": ["token"], "token": {"id": unscoped}},
        "scope": {"project": {"id": demo.project}}}});
    assert_eq!(nobody.post(TOKENS, scoped.clone()).await.status, 401);
    let member = id(&admin.fetch("/identity/v3/roles?name=member").await[0]);
    let grant = format!(
        "/identity/v3/projects/{}/groups/{group}/roles/{member}",
        demo.project
    );
    assert_eq!(admin.put(&grant, Value::Null).await.status, 204);
    let got = nobody.post(TOKENS, scoped).await;
    assert_eq!(got.status, 201, "{}", got.text);
    assert_eq!(got.body["token"]["methods"], json!(["token", "openid"]));
    assert_eq!(
        got.body["token"]["user"]["OS-FEDERATION"]["protocol"]["id"],
        "openid"
    );
    let alice = Client {
        token: got.headers["x-subject-token"].to_str().unwrap().to_owned(),
        ..demo.clone()
    };
    assert_eq!(alice.get("/network/v2.0/networks").await.status, 200);
    assert_eq!(
        alice.fetch("/identity/v3/auth/projects").await[0]["name"],
        "demo"
    );

    let basic = format!("Basic {}", STANDARD.encode("robot:client-secret"));
    let headers = [("authorization", basic.as_str())];
    let got = form(&nobody, at, &headers, "grant_type=client_credentials").await;
    assert_eq!(got.status, 200, "{}", got.text);
    let got = form(
        &nobody,
        at,
        &[],
        "grant_type=client_credentials&client_id=kubectl",
    )
    .await;
    assert_eq!(got.body["error"], "unauthorized_client");
}

#[tokio::test]
async fn a_device_waits_until_its_user_has_logged_in_elsewhere() {
    let (cloud, demo) = demo().await;
    let (admin, _) = provider(&cloud).await;
    let begun = async || {
        let got = form(&demo, "/identity/oidc/device", &[], "client_id=kubectl").await;
        assert_eq!(got.status, 200, "{}", got.text);
        (
            got.body["device_code"].clone(),
            got.body["user_code"].clone(),
        )
    };
    let poll = async |code: &Value| {
        let grant = "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code";
        let code = code.as_str().unwrap();
        let body = format!("grant_type={grant}&client_id=kubectl&device_code={code}");
        form(&demo, "/identity/oidc/token", &[], &body).await.body
    };
    let later = || cloud.advance_clock(std::time::Duration::from_secs(5));
    let (device, user_code) = begun().await;
    assert_eq!(poll(&device).await["error"], "authorization_pending");
    assert_eq!(poll(&device).await["error"], "slow_down");
    later();
    assert_eq!(poll(&device).await["error"], "authorization_pending");
    let consent = json!({"user_code": user_code, "account": "alice"});
    assert_eq!(
        admin.post("/_simulator/oidc/devices", consent).await.status,
        204
    );
    later();
    assert!(poll(&device).await["access_token"].is_string());
    assert_eq!(poll(&device).await["error"], "invalid_grant", "once only");
    let (device, user_code) = begun().await;
    let declined = json!({"user_code": user_code});
    assert_eq!(
        admin
            .post("/_simulator/oidc/devices", declined)
            .await
            .status,
        204
    );
    assert_eq!(poll(&device).await["error"], "access_denied");
    let (device, _) = begun().await;
    cloud.advance_clock(std::time::Duration::from_secs(301));
    assert_eq!(poll(&device).await["error"], "expired_token");
}
