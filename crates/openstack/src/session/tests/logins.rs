//! Logins by more than one factor and at an identity provider, and the tokens of others.

use super::*;

/// A Keystone that gives a receipt for a password alone, and a token for the rest.
async fn half_or_whole(headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let identity = &body["auth"]["identity"];
    let (password, passcode) = (
        &identity["password"]["user"]["password"],
        &identity["totp"]["user"]["passcode"],
    );
    let has_receipt = headers
        .get("openstack-auth-receipt")
        .is_some_and(|it| it == "half");
    let token = json!({"token": {"user": {"id": "u1"}, "methods": ["password", "totp"]}});
    match (password == "secret" || has_receipt, passcode == "123456") {
        (true, true) => {
            let headers = [("x-subject-token", "whole")];
            (StatusCode::CREATED, headers, Json(token)).into_response()
        }
        (true, false) => {
            let body = json!({"receipt": {"methods": ["password"]}, "required_auth_methods": [["password", "totp"]]});
            let headers = [("openstack-auth-receipt", "half")];
            (StatusCode::UNAUTHORIZED, headers, Json(body)).into_response()
        }
        _ => StatusCode::UNAUTHORIZED.into_response(),
    }
}

/// Somebody who knows a passcode, and remembers where to log in.
#[derive(Default)]
struct Person(parking_lot::Mutex<Vec<crate::DeviceLogin>>);

impl crate::Prompts for Person {
    fn passcode(&self, user: &str) -> crate::Result<secrecy::SecretString> {
        assert_eq!(user, "demo");
        Ok("123456".into())
    }

    fn device(&self, login: &crate::DeviceLogin) -> crate::Result<()> {
        self.0.lock().push(login.clone());
        Ok(())
    }
}

fn session_of(auth: &str, routes: Router, person: Option<Arc<Person>>) -> Session {
    let text = format!(
        "clouds: {{test: {{auth_type: {auth}, identity_provider: idp, protocol: openid, auth_url: 'http://k/v3'}}}}}}"
    );
    let config = CloudConfig::parse(&text, "test").unwrap();
    let options = crate::SessionOptions {
        transport: Some(Arc::new(crate::InProcess::new(routes))),
        prompts: person.map(|it| it as Arc<dyn crate::Prompts>),
        ..crate::SessionOptions::default()
    };
    Session::new(config, &options).unwrap()
}

#[tokio::test]
async fn a_second_factor_is_sent_at_once_or_asked_for_when_keystone_wants_it() {
    let routes = || Router::new().route("/v3/auth/tokens", post(half_or_whole));
    let password = "v3password, auth: {username: demo, password: secret";
    let both = "v3multifactor, auth: {username: demo, password: secret, passcode: '123456'";
    for (auth, person) in [(both, None), (password, Some(Arc::default()))] {
        let token = session_of(auth, routes(), person).token().await.unwrap();
        assert_eq!(token.user_id, "u1");
    }
    let session = session_of(password, routes(), None);
    let error = session.token().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    assert!(error.message().contains("password and totp"), "{error}");
    assert!(error.message().contains("OS_PASSCODE"), "{error}");
    assert!(!error.to_string().contains("half"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_login_on_another_device_is_awaited_as_slowly_as_the_provider_wants() {
    let (polled, polls) = count();
    let token = move || {
        let polled = Arc::clone(&polled);
        async move {
            let error = |error: &str| (StatusCode::BAD_REQUEST, Json(json!({"error": error})));
            match polled.fetch_add(1, Ordering::SeqCst) {
                0 => error("authorization_pending").into_response(),
                1 => error("slow_down").into_response(),
                _ => Json(json!({"access_token": "of-provider"})).into_response(),
            }
        }
    };
    let discovery = json!({"token_endpoint": "http://i/token", "device_authorization_endpoint": "http://i/device"});
    let begun = json!({"device_code": "d", "user_code": "1234", "verification_uri": "http://i/verify",
        "expires_in": 600, "interval": 7});
    let federated = |headers: HeaderMap| async move {
        assert_eq!(headers["authorization"], "Bearer of-provider");
        let token = Json(json!({"token": {"user": {"id": "u1"}}}));
        (
            StatusCode::CREATED,
            [("x-subject-token", "unscoped")],
            token,
        )
    };
    let scoped = |Json(body): Json<Value>| async move {
        assert_eq!(body["auth"]["identity"]["token"]["id"], "unscoped");
        assert_eq!(body["auth"]["scope"], json!({"project": {"id": "p1"}}));
        let token = Json(json!({"token": {"user": {"id": "u1"}, "project": {"id": "p1"}}}));
        (StatusCode::CREATED, [("x-subject-token", "scoped")], token)
    };
    let routes = Router::new()
        .route("/d", get(|| async { Json(discovery) }))
        .route("/device", post(|| async { Json(begun) }))
        .route("/token", post(token))
        .route("/v3/auth/tokens", post(scoped))
        .route(
            "/v3/OS-FEDERATION/identity_providers/idp/protocols/openid/auth",
            post(federated),
        );
    let auth = "v3oidcdeviceauthz, auth: {client_id: kubectl, discovery_endpoint: 'http://i/d', project_id: p1";
    let nobody = session_of(auth, routes.clone(), None).token().await;
    assert!(nobody.unwrap_err().message().contains("nobody is there"));
    let person = Arc::new(Person::default());
    let started = tokio::time::Instant::now();
    let session = session_of(auth, routes, Some(Arc::clone(&person)));
    let token = session.token().await.unwrap();
    assert_eq!(token.project_id.as_deref(), Some("p1"));
    assert_eq!(started.elapsed().as_secs(), 7 + 7 + 12);
    assert_eq!(polls(), 3);
    let seen = person.0.lock()[0].clone();
    assert_eq!(
        (seen.code.as_str(), seen.url.as_str()),
        ("1234", "http://i/verify")
    );
}

#[tokio::test]
async fn a_token_of_another_is_never_the_sessions() {
    use crate::session::SubjectToken;
    let show = |headers: HeaderMap| async move {
        let text = |name: &str| headers.get(name).map(|it| it.to_str().unwrap().to_owned());
        assert_eq!(
            text("openstack-identity-access-rules").as_deref(),
            Some("1.0")
        );
        let (asker, subject) = (text("x-auth-token"), text("x-subject-token").unwrap());
        match (asker.as_deref(), subject.as_str()) {
            (Some("token-1"), "theirs") | (Some("theirs"), "theirs") => {
                let token = json!({"user": {"id": "u2", "name": "alice", "domain": {"id": "d", "name": "acme"}},
                    "roles": [{"id": "r", "name": "member"}], "expires_at": "2026-01-01T01:00:00.000000Z",
                    "application_credential": {"id": "a", "access_rules": [{"service": "kubernetes", "path": "/**", "method": "GET"}]}});
                Json(json!({"token": token})).into_response()
            }
            (Some("token-1"), _) => StatusCode::NOT_FOUND.into_response(),
            (Some("mixed-up"), _) => {
                let token = json!({"token": {"user": {"id": "u3"}}});
                ([("x-subject-token", "theirs")], Json(token)).into_response()
            }
            _ => StatusCode::UNAUTHORIZED.into_response(),
        }
    };
    let groups = |headers: HeaderMap| async move {
        assert_eq!(headers["x-auth-token"], "theirs");
        Json(json!({"groups": [{"id": "g", "name": "devs", "domain_id": "d"}]}))
    };
    let keystone = Keystone::default();
    let routes = Router::new()
        .route("/identity/v3/auth/tokens", get(show))
        .route("/identity/v3/users/{id}/groups", get(groups));
    let options = testing::options(&keystone, routes);
    let session = Session::new(testing::config("secret"), &options).unwrap();
    let theirs = SubjectToken::from("theirs".to_owned());
    assert_eq!(format!("{theirs:?}"), "SubjectToken");
    let described = session.identity().describe(&theirs).await.unwrap();
    assert_eq!(described.user.domain.name, "acme");
    let rules = described
        .application_credential
        .unwrap()
        .access_rules
        .unwrap();
    assert_eq!(rules[0].service, "kubernetes");
    let other = SubjectToken::from("other".to_owned());
    let error = session.identity().describe(&other).await.unwrap_err();
    assert_eq!(error.status(), Some(StatusCode::NOT_FOUND));
    assert_eq!(keystone.logins(), 1);

    let url = format!("{}/identity", testing::URL);
    let nobody = Session::new(CloudConfig::of_keystone("k", &url), &options).unwrap();
    let identity = nobody.identity();
    assert_eq!(
        identity.describe_by_itself(&theirs).await.unwrap().user.id,
        "u2"
    );
    let found = identity.groups_by_itself("u2", &theirs).await.unwrap();
    assert_eq!(found[0].name, "devs");
    let error = identity.describe_by_itself(&other).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    let mixed_up = SubjectToken::from("mixed-up".to_owned());
    let error = identity.describe_by_itself(&mixed_up).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(
        error.message().ends_with("is about another token"),
        "{error}"
    );
    let odd = SubjectToken::from("a\nb".to_owned());
    let error = identity.describe_by_itself(&odd).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    assert_eq!(keystone.logins(), 1, "nobody has logged in");
    assert!(nobody.token().await.is_err());
}
