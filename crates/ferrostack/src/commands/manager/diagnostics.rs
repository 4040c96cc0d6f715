//! `/metrics`, over TLS for users with permission from the API server, or over plain HTTP.

use std::sync::Arc;

use anyhow::Context;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::PostParams;
use operator::client::Api;
use operator::health;
use operator::metrics::Metrics;
use secrecy::{ExposeSecret, SecretString};
use tokio_util::sync::CancellationToken;

use crate::cli::{Listen, Manager};
use crate::pki;
use crate::serve;

/// Path, also of the permission.
const PATH: &str = "/metrics";

/// Serves the metrics by the flags of the [`Manager`], until `stop`.
pub(super) async fn serve(
    args: &Manager,
    client: &Client,
    metrics: Metrics,
    stop: &CancellationToken,
    say: &impl Fn(&str),
) -> anyhow::Result<()> {
    let router = health::metrics(metrics);
    let Listen::On(address) = args.diagnostics_address else {
        return Ok(());
    };
    if args.insecure_diagnostics {
        return serve::plain("metrics", args.diagnostics_address, router, stop, say).await;
    }
    let router = router.layer(middleware::from_fn_with_state(client.clone(), guard));
    let names = vec!["localhost".to_owned(), address.ip().to_string()];
    let (_, identity) = pki::self_issued("ferrostack-metrics", names)?;
    let key = identity.key.expose_secret();
    let tls = apiserver::server_config(&identity.certificate, key, None);
    let tls = tls.context("the certificate of the metrics")?;
    serve::tls("metrics", address, Arc::clone(&tls), router, stop, say).await
}

/// Forwards a request if its token belongs to a user with permission to read the metrics.
async fn guard(State(client): State<Client>, request: Request, next: Next) -> Response {
    let Some(token) = bearer(&request) else {
        return refused(StatusCode::UNAUTHORIZED, "a bearer token is needed");
    };
    match judge(&client, &token).await {
        Ok(Ok(())) => next.run(request).await,
        Ok(Err((status, why))) => refused(status, &why),
        Err(problem) => {
            tracing::warn!("the API server does not say who may read the metrics: {problem:#}");
            let why = "the API server cannot be asked who may read the metrics";
            refused(StatusCode::INTERNAL_SERVER_ERROR, why)
        }
    }
}

fn bearer(request: &Request) -> Option<SecretString> {
    let value = request
        .headers()
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    let is_bearer = scheme.eq_ignore_ascii_case("bearer") && !token.is_empty();
    is_bearer.then(|| token.into())
}

fn refused(status: StatusCode, why: &str) -> Response {
    (status, format!("{why}\n")).into_response()
}

/// Asks the API server for the user of a token, and for the user's permission to read the metrics.
async fn judge(
    client: &Client,
    token: &SecretString,
) -> anyhow::Result<Result<(), (StatusCode, String)>> {
    let Some(user) = authenticated(client, token).await? else {
        let why = "the API server does not know the token".to_owned();
        return Ok(Err((StatusCode::UNAUTHORIZED, why)));
    };
    let name = user.username.clone().unwrap_or_default();
    if is_allowed(client, user).await? {
        return Ok(Ok(()));
    }
    let why =
        format!("{name} may not get {PATH}: bind a ClusterRole with nonResourceURLs [{PATH}]");
    Ok(Err((StatusCode::FORBIDDEN, why)))
}

async fn authenticated(client: &Client, token: &SecretString) -> anyhow::Result<Option<UserInfo>> {
    let review = TokenReview {
        spec: TokenReviewSpec {
            token: token.expose_secret().to_owned(),
            ..TokenReviewSpec::default()
        },
        ..TokenReview::default()
    };
    let reviews: Api<TokenReview> = Api::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await;
    let status = answer.context("TokenReview")?.status.unwrap_or_default();
    let is_known = status.authenticated == Some(true);
    Ok(status.user.filter(|_| is_known))
}

async fn is_allowed(client: &Client, user: UserInfo) -> anyhow::Result<bool> {
    let review = SubjectAccessReview {
        metadata: ObjectMeta::default(),
        spec: SubjectAccessReviewSpec {
            user: user.username,
            groups: user.groups,
            uid: user.uid,
            extra: user.extra,
            non_resource_attributes: Some(NonResourceAttributes {
                path: Some(PATH.to_owned()),
                verb: Some("get".to_owned()),
            }),
            ..SubjectAccessReviewSpec::default()
        },
        status: None,
    };
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await;
    Ok(answer
        .context("SubjectAccessReview")?
        .status
        .is_some_and(|it| it.allowed && it.denied != Some(true)))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::Method;
    use kube::client::Body as KubeBody;
    use parking_lot::Mutex;
    use serde_json::{Value, json};
    use tower::ServiceExt as _;

    use super::*;

    /// An API server that knows `good`, who may read the metrics, and `curious`, who may not. Returns what it was asked.
    fn server() -> (Client, Arc<Mutex<Vec<Value>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&asked);
        let answer = tower::service_fn(move |request: http::Request<KubeBody>| {
            let record = Arc::clone(&record);
            async move {
                assert_eq!(request.method(), Method::POST);
                let path = request.uri().path().to_owned();
                let body = request.into_body().collect_bytes().await?;
                let mut review: Value = serde_json::from_slice(&body)?;
                let spec = review["spec"].clone();
                let status = match path.rsplit('/').next() {
                    Some("tokenreviews") if spec["token"] == "broken" => {
                        let answer = http::Response::builder().status(500);
                        return answer.body(Body::from("{}")).map_err(tower::BoxError::from);
                    }
                    Some("tokenreviews") => {
                        let is_known = spec["token"] == "good" || spec["token"] == "curious";
                        json!({"authenticated": is_known, "user": {"username": spec["token"], "groups": ["g"], "extra": {"k": ["v"]}}})
                    }
                    Some("subjectaccessreviews") => json!({"allowed": spec["user"] == "good"}),
                    _ => panic!("{path}"),
                };
                review["status"] = status;
                record.lock().push(spec);
                let answer = http::Response::builder().status(201);
                Ok(answer.body(Body::from(review.to_string()))?)
            }
        });
        (Client::new(answer, "default"), asked)
    }

    async fn get(client: &Client, authorization: Option<&str>) -> (u16, String) {
        let router = health::metrics(Metrics::default());
        let router = router.layer(middleware::from_fn_with_state(client.clone(), guard));
        let mut request = Request::builder().uri(PATH);
        if let Some(value) = authorization {
            request = request.header(header::AUTHORIZATION, value);
        }
        let request = request.body(Body::empty()).unwrap();
        let answer = router.oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await;
        (status, String::from_utf8(body.unwrap().to_vec()).unwrap())
    }

    #[tokio::test]
    async fn the_metrics_are_for_those_whom_the_api_server_lets_read_them() {
        let (client, asked) = server();
        let (status, text) = get(&client, Some("Bearer good")).await;
        assert_eq!(status, 200);
        assert!(text.contains("# EOF"), "{text}");
        let expected = [
            json!({"token": "good"}),
            json!({"user": "good", "groups": ["g"], "extra": {"k": ["v"]},
                "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}),
        ];
        assert_eq!(asked.lock()[..], expected);
        let (status, text) = get(&client, Some("Bearer curious")).await;
        assert_eq!(status, 403);
        assert!(text.starts_with("curious may not get /metrics"), "{text}");
        let (status, text) = get(&client, Some("bearer  stranger")).await;
        assert_eq!((status, text.contains("stranger")), (401, false));
        let count = asked.lock().len();
        for nobody in [None, Some("Bearer "), Some("Basic Z29vZA=="), Some("good")] {
            assert_eq!(get(&client, nobody).await.0, 401, "{nobody:?}");
        }
        assert_eq!(asked.lock().len(), count);
        let (status, text) = get(&client, Some("Bearer broken")).await;
        assert_eq!((status, text.contains("cannot be asked")), (500, true));
    }
}
