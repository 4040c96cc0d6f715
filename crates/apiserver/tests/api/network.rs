//! Authentication and authorization over TLS.

use std::sync::Arc;

use apiserver::{Access, ApiServer, Options, Reviewer, UserInfo, server_config};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::support::*;

struct Site {
    server: ApiServer,
    url: String,
    ca: String,
    issuer: Issuer<'static, KeyPair>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

/// Reviewer of one token, whose user may read pods in one namespace.
#[derive(Debug)]
struct Known;

impl Reviewer for Known {
    fn user<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, String>> {
        async move {
            match token {
                "cloud-token" => Ok(Some(UserInfo::new("jane", ["project"]))),
                "trouble" => Err("the cloud does not answer".to_owned()),
                _ => Ok(None),
            }
        }
        .boxed()
    }

    fn allows<'a>(
        &'a self,
        user: &'a UserInfo,
        wanted: &'a Access,
    ) -> BoxFuture<'a, Result<bool, String>> {
        async move {
            let is_jane = user.name == "jane" && user.is_in("project");
            match wanted.resource.as_str() {
                "secrets" if is_jane => Err("nobody reads secrets".to_owned()),
                resource => Ok(is_jane
                    && resource == "pods"
                    && wanted.namespace == "default"
                    && matches!(wanted.verb.as_str(), "get" | "list")),
            }
        }
        .boxed()
    }
}

impl Site {
    async fn start() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "ca");
        let key = KeyPair::generate().unwrap();
        let ca = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        let serving_key = KeyPair::generate().unwrap();
        let names = vec!["127.0.0.1".to_owned()];
        let certificate = CertificateParams::new(names)
            .unwrap()
            .signed_by(&serving_key, &issuer)
            .unwrap();
        let options = Options {
            client_ca: Some(ca.clone()),
            tokens: vec![(
                "robot-token".into(),
                UserInfo::new("robot", ["system:masters"]),
            )],
            reviewer: Some(Arc::new(Known)),
            ..Options::default()
        };
        let server = ApiServer::open(options).await.unwrap();
        let tls =
            server_config(&certificate.pem(), &serving_key.serialize_pem(), Some(&ca)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let (serving, until) = (server.clone(), stop.clone());
        let task = tokio::spawn(async move { serving.serve(listener, tls, until).await });
        Self {
            server,
            url,
            ca,
            issuer,
            stop,
            task,
        }
    }

    fn client(&self, identity: Option<(&str, &str)>) -> reqwest::Client {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        // Another test may have been faster; either way it is there.
        let _ = (*provider).clone().install_default();
        let mut builder = reqwest::Client::builder()
            .tls_certs_only([reqwest::Certificate::from_pem(self.ca.as_bytes()).unwrap()]);
        if let Some((name, group)) = identity {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::default();
            params.distinguished_name.push(DnType::CommonName, name);
            params
                .distinguished_name
                .push(DnType::OrganizationName, group);
            let pem = params.signed_by(&key, &self.issuer).unwrap().pem() + &key.serialize_pem();
            builder = builder.identity(reqwest::Identity::from_pem(pem.as_bytes()).unwrap());
        }
        builder.build().unwrap()
    }

    async fn get(&self, client: &reqwest::Client, path: &str, token: Option<&str>) -> (u16, Value) {
        let mut request = client.get(format!("{}{path}", self.url));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.unwrap();
        let code = response.status().as_u16();
        let text = response.text().await.unwrap();
        (
            code,
            serde_json::from_str(&text).unwrap_or(Value::from(text)),
        )
    }
}

#[tokio::test]
async fn a_reviewer_knows_users_and_what_they_may_do() {
    let site = Site::start().await;
    let client = site.client(None);
    for (path, token, code, words) in [
        ("/api/v1/namespaces/default/pods", "cloud-token", 200, ""),
        (
            "/api/v1/namespaces/kube-system/pods",
            "cloud-token",
            403,
            "User \"jane\" cannot list",
        ),
        (
            "/api/v1/namespaces/default/secrets",
            "cloud-token",
            403,
            "nobody reads secrets",
        ),
        ("/apis", "cloud-token", 200, ""),
        (
            "/api/v1/namespaces/default/pods",
            "unknown",
            401,
            "Unauthorized",
        ),
        (
            "/api/v1/namespaces/default/pods",
            "trouble",
            401,
            "Unauthorized",
        ),
        ("/api/v1/namespaces/default/secrets", "robot-token", 200, ""),
    ] {
        let (got, body) = site.get(&client, path, Some(token)).await;
        assert_eq!(got, code, "{path} {token}: {body}");
        assert!(
            body.to_string().replace("\\\"", "\"").contains(words),
            "{body}"
        );
    }
    let review = |kind: &str, spec: Value| {
        let group = match kind {
            "TokenReview" => "authentication",
            _ => "authorization",
        };
        let version = format!("{group}.k8s.io/v1");
        let path = format!("/apis/{version}/{}s", kind.to_lowercase());
        let body = json!({"apiVersion": version, "kind": kind, "spec": spec});
        let request = client.post(format!("{}{path}", site.url));
        let request = request.bearer_auth("robot-token").json(&body);
        async move {
            let answer: Value = request.send().await.unwrap().json().await.unwrap();
            answer["status"].clone()
        }
    };
    let status = review("TokenReview", json!({"token": "cloud-token"})).await;
    assert_eq!(status["user"]["username"], "jane", "{status}");
    let status = review(
        "TokenReview",
        json!({"token": "cloud-token", "audiences": ["vault"]}),
    )
    .await;
    assert_eq!(status["authenticated"], Value::Null, "{status}");
    let status = review("TokenReview", json!({"token": "trouble"})).await;
    assert_eq!(
        status["error"],
        "[invalid bearer token, the cloud does not answer]"
    );
    let pods = json!({"verb": "get", "resource": "pods", "namespace": "default"});
    for (groups, allowed) in [(json!(["project"]), true), (json!([]), false)] {
        let spec = json!({"user": "jane", "groups": groups, "resourceAttributes": pods});
        let status = review("SubjectAccessReview", spec).await;
        assert_eq!(status["allowed"], allowed, "{status}");
    }
    site.stop.cancel();
    site.task.await.unwrap();
}

#[tokio::test]
async fn certificates_tokens_and_strangers_get_what_is_theirs() {
    let site = Site::start().await;
    let admin = site.client(Some(("admin", "system:masters")));
    assert_eq!(site.get(&admin, "/api/v1/nodes", None).await.0, 200);

    let nobody = site.client(None);
    assert_eq!(site.get(&nobody, "/version", None).await.0, 200);
    let (code, status) = site.get(&nobody, "/api/v1/nodes", None).await;
    assert_eq!((code, status["reason"].as_str()), (403, Some("Forbidden")));
    assert_eq!(
        status["message"],
        "nodes is forbidden: User \"system:anonymous\" cannot list resource \"nodes\" in API group \"\" at the cluster scope"
    );
    assert_eq!(
        site.get(&nobody, "/api/v1/nodes", Some("wrong")).await.0,
        401
    );
    assert_eq!(
        site.get(&nobody, "/api/v1/nodes", Some("robot-token"))
            .await
            .0,
        200
    );
    let info = "/api/v1/namespaces/kube-public/configmaps/cluster-info";
    assert_eq!(site.get(&nobody, info, None).await.0, 404);

    let other = site.client(Some(("jane", "dev")));
    let (code, status) = site
        .get(&other, "/api/v1/namespaces/default/secrets", None)
        .await;
    assert_eq!(code, 403);
    assert_eq!(
        status["message"],
        "secrets is forbidden: User \"jane\" cannot list resource \"secrets\" in API group \"\" in the namespace \"default\""
    );
    let node = site.client(Some(("system:node:n1", "system:nodes")));
    assert_eq!(site.get(&node, "/api/v1/pods", None).await.0, 403);
    let of_node = "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1";
    assert_eq!(site.get(&node, of_node, None).await.0, 200);
    assert_eq!(site.get(&node, CRDS, None).await.0, 403);
    site.stop.cancel();
    site.task.await.unwrap();
}

#[tokio::test]
async fn a_bootstrap_token_joins_and_nothing_else() {
    let site = Site::start().await;
    let secrets = "/api/v1/namespaces/kube-system/secrets";
    let secret = |id: &str, expiration: &str| {
        json!({
            "metadata": {"name": format!("bootstrap-token-{id}")}, "type": "bootstrap.kubernetes.io/token",
            "stringData": {
                "token-id": id, "token-secret": "0123456789abcdef", "expiration": expiration,
                "usage-bootstrap-authentication": "true",
                "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
            },
        })
    };
    assert_eq!(
        post(
            &site.server,
            secrets,
            &secret("abcdef", "2999-01-01T00:00:00Z")
        )
        .await
        .0,
        201
    );
    post(
        &site.server,
        secrets,
        &secret("expire", "2001-01-01T00:00:00Z"),
    )
    .await;
    let client = site.client(None);
    let token = Some("abcdef.0123456789abcdef");
    let config = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config";
    assert_eq!(site.get(&client, config, token).await.0, 404);
    assert_eq!(site.get(&client, "/api/v1/nodes/n1", token).await.0, 404);
    assert_eq!(site.get(&client, secrets, token).await.0, 403);
    assert_eq!(site.get(&client, "/api/v1/nodes", token).await.0, 403);
    let sent = async |path: &str, body: &Value| {
        let request = client
            .post(format!("{}{path}", site.url))
            .bearer_auth("abcdef.0123456789abcdef")
            .json(body);
        request.send().await.unwrap().status().as_u16()
    };
    // A kubelet registers its Node with its own certificate, under the rules of NodeRestriction.
    let node = json!({"metadata": {"name": "n1", "labels": {"node-role.kubernetes.io/control-plane": ""}}});
    assert_eq!(sent("/api/v1/nodes", &node).await, 403);
    let request = json!({"metadata": {"name": "r"}, "spec": {"request": "", "usages": ["client auth"], "signerName": "kubernetes.io/kube-apiserver-client-kubelet"}});
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    assert_ne!(sent(requests, &request).await, 403);
    // Without the group of kubeadm's tokens, a token may do nothing.
    let mut other = secret("fedcba", "2999-01-01T00:00:00Z");
    other["stringData"]["auth-extra-groups"] = json!("system:bootstrappers:others");
    post(&site.server, secrets, &other).await;
    let other = Some("fedcba.0123456789abcdef");
    assert_eq!(site.get(&client, config, other).await.0, 403);
    assert_eq!(site.get(&client, "/api/v1/nodes/n1", other).await.0, 403);
    assert_eq!(
        site.get(&client, config, Some("expire.0123456789abcdef"))
            .await
            .0,
        401
    );
    assert_eq!(
        site.get(&client, config, Some("abcdef.0123456789abcdee"))
            .await
            .0,
        401
    );
}

#[tokio::test]
async fn service_account_tokens_are_known_again_until_the_account_goes() {
    let site = Site::start().await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    post(&site.server, accounts, &json!({"metadata": {"name": "sa"}})).await;
    let (code, answer) = post(
        &site.server,
        &format!("{accounts}/sa/token"),
        &json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {},
        }),
    )
    .await;
    assert_eq!(code, 201, "{answer}");
    let token = answer["status"]["token"].as_str().unwrap();
    let review = json!({"spec": {"token": token}});
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let (_, review) = post(&site.server, reviews, &review).await;
    assert_eq!(
        review["status"]["user"]["username"],
        "system:serviceaccount:default:sa"
    );
    let client = site.client(None);
    assert_eq!(site.get(&client, "/apis", Some(token)).await.0, 200);
    assert_eq!(site.get(&client, accounts, Some(token)).await.0, 403);
    delete(&site.server, &format!("{accounts}/sa")).await;
    assert_eq!(site.get(&client, "/apis", Some(token)).await.0, 401);
}

#[tokio::test]
async fn administrators_act_as_others_and_nobody_else_does() {
    let site = Site::start().await;
    let reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let ask = async |client: &reqwest::Client, headers: &[(&str, &str)]| {
        let mut request = client.post(format!("{}{reviews}", site.url)).json(&review);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.unwrap();
        (
            response.status().as_u16(),
            response.json::<Value>().await.unwrap(),
        )
    };
    let admin = site.client(Some(("admin", "system:masters")));
    let headers = [
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Extra-Acme.com%2Fproject", "moon"),
    ];
    let (code, answer) = ask(&admin, &headers).await;
    assert_eq!(code, 201, "{answer}");
    assert_eq!(
        answer["status"]["userInfo"],
        json!({
            "username": "jane", "uid": "7", "groups": ["dev", "ops", "system:authenticated"],
            "extra": {"acme.com/project": ["moon"]},
        })
    );
    let account = "system:serviceaccount:default:sa";
    let (_, answer) = ask(&admin, &[("Impersonate-User", account)]).await;
    assert_eq!(
        answer["status"]["userInfo"]["groups"],
        json!([
            "system:serviceaccounts",
            "system:serviceaccounts:default",
            "system:authenticated"
        ])
    );
    let of_nobody = admin.post(format!("{}{reviews}", site.url)).json(&review);
    let of_nobody = of_nobody.header("Impersonate-Group", "dev").send().await;
    let of_nobody = of_nobody.unwrap();
    assert_eq!(of_nobody.status().as_u16(), 500);
    assert_eq!(
        of_nobody.text().await.unwrap(),
        format!(
            "Internal Server Error: \"{reviews}\": requested [{{Group  dev    }}] without impersonating a user\n"
        )
    );
    let unreadable = http::HeaderValue::from_bytes(b"jane\xff").unwrap();
    let unreadable = admin
        .get(format!("{}/api/v1/nodes", site.url))
        .header("Impersonate-User", unreadable);
    assert_eq!(unreadable.send().await.unwrap().status().as_u16(), 400);

    let jane = site.client(Some(("jane", "dev")));
    for (header, name, message) in [
        (
            "Impersonate-User",
            "bob",
            "users \"bob\" is forbidden: User \"jane\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope",
        ),
        (
            "Impersonate-User",
            account,
            "serviceaccounts \"sa\" is forbidden: User \"jane\" cannot impersonate resource \"serviceaccounts\" in API group \"\" in the namespace \"default\"",
        ),
    ] {
        let (code, status) = ask(&jane, &[(header, name)]).await;
        assert_eq!((code, &status["message"]), (403, &json!(message)));
    }
    let nodes = admin
        .get(format!("{}/api/v1/nodes", site.url))
        .header("Impersonate-User", "jane");
    assert_eq!(nodes.send().await.unwrap().status().as_u16(), 403);
}
