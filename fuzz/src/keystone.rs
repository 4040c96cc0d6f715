//! Targets for the Keystone webhook and the exec plugin: reviews, policies, the configuration of the synchronisation
//! after a login, and `KUBERNETES_EXEC_INFO` of kubectl.

use keystone_auth::exec_info::ExecInfo;
use keystone_auth::policy::{self, Mode, Policy};
use keystone_auth::review::{self, Review};
use keystone_auth::subject::{
    Attributes, PROJECT_ID, PROJECT_NAME, ROLES, ResourceAttributes, Subject, USER_DOMAIN_ID,
};
use keystone_auth::sync::{self, Config};
use secrecy::ExposeSecret as _;
use serde_json::Value;

/// Minimum length of a token that is searched in answers: a shorter one may be an ordinary word.
const SHORTEST: usize = 24;
/// [`Policy`] for the answers to reviews.
const POLICY: &str = r#"[
    {"users": {"roles": ["member"], "projects": ["demo"]}, "resource_permissions": {"!kube-system/['pods', 'services']": ["get", "*"]},
     "nonresource_permissions": {"/healthz": ["get"]}},
    {"resource": {"verbs": ["*"], "resources": ["pods/*"], "version": "*", "namespace": "default"}, "match": [{"type": "user", "values": ["*"]}]},
    {"nonresource": {"verbs": ["get"], "path": "/api*"}, "match": [{"type": "role", "values": ["reader"]}]}
]"#;

/// Sends a body to the webhook: an error of one line, or an answer in JSON without the token.
pub fn review(data: &[u8]) {
    let review = match review::decode(data) {
        Ok(review) => review,
        Err(wrong) => return is_a_line(&wrong.to_string()),
    };
    match review {
        Review::Token(review) => {
            let answer = review.refused("it is unknown").unwrap_or_default();
            let answer = read(&answer);
            assert_eq!(answer["status"]["authenticated"], false);
            let user = Subject::default();
            let granted = review.authenticated(&user, &review.audiences);
            assert_eq!(
                read(&granted.unwrap_or_default())["status"]["authenticated"],
                true
            );
            let token = secret(&review);
            assert!(token.len() < SHORTEST || !answer.to_string().contains(&token));
        }
        Review::Access(review) => {
            for mode in [Mode::Compatible, Mode::Strict] {
                let Ok(compiled) = Policy::compile(POLICY, mode) else {
                    continue;
                };
                let (subject, attributes) = (&review.subject, &review.attributes);
                agree(&compiled.policy, subject, attributes);
                let decision = policy::decide(&compiled.policy, subject, attributes);
                let answer = read(&review.answer(&decision).unwrap_or_default());
                assert_eq!(answer["status"]["allowed"], decision.allowed);
            }
        }
    }
}

/// Compiles a [`Policy`] in both [`Mode`]s: findings have places in the text, and the index finds every rule.
pub fn policy(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let lines = text.split('\n').count();
    for mode in [Mode::Compatible, Mode::Strict] {
        match Policy::compile(text, mode) {
            Ok(compiled) => {
                assert!(mode == Mode::Compatible || compiled.doubts.is_empty());
                for attributes in requests() {
                    for subject in subjects() {
                        agree(&compiled.policy, &subject, &attributes);
                    }
                }
            }
            Err(invalid) => {
                assert!(!invalid.0.is_empty());
                for finding in &invalid.0 {
                    let place = finding.place;
                    assert!(
                        (1..=lines).contains(&place.line) && place.column > 0,
                        "{place}"
                    );
                }
            }
        }
    }
}

/// Parses the [`Config`] of the synchronisation: an error of one line, or a distinct namespace for each project.
pub fn sync(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let config = match Config::parse(text) {
        Ok(config) => config,
        Err(invalid) => return is_a_line(&invalid.to_string()),
    };
    let mut names = Vec::new();
    for user in subjects().into_iter().filter(|it| it.extra.is_some()) {
        for id in [
            "0123456789abcdef0123456789abcdef",
            "123456789abcdef0123456789abcdef0",
        ] {
            let mut of_project = user.clone();
            let extra = of_project.extra.iter_mut();
            extra.for_each(|extra| {
                extra.insert(PROJECT_ID.to_owned(), vec![id.to_owned()]);
            });
            if let Ok(Some(wanted)) = sync::wanted(&config, &of_project) {
                let name = &wanted.namespace;
                let is_plain = |letter: char| {
                    letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-'
                };
                assert!(
                    name.contains(id) && name.len() <= 63 && name.chars().all(is_plain),
                    "{name}"
                );
                names.push((name.clone(), id));
            }
        }
    }
    for (name, id) in &names {
        assert!(
            names.iter().all(|(other, of)| other != name || of == id),
            "{name} is of two projects"
        );
    }
}

/// Parses `KUBERNETES_EXEC_INFO` as [`ExecInfo`]: an error of one line, or a version.
pub fn exec_info(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match ExecInfo::parse(Some(text)) {
        Ok(info) => {
            assert!(text.contains("ExecCredential") || text.contains("\\u"));
            assert!(info.server.is_none_or(|server| !server.is_empty()));
            assert!(info.auth_url.is_none_or(|url| !url.is_empty()));
        }
        Err(problem) => is_a_line(&problem),
    }
}

/// Compares [`policy::decide`] with [`policy::explain`].
fn agree(policy: &Policy, subject: &Subject, attributes: &Attributes) {
    let decision = policy::decide(policy, subject, attributes);
    let mut explained = policy::explain(policy, subject, attributes);
    let permits = subject.extra.is_some() && explained.any(|it| it.miss.is_none());
    assert_eq!(decision.allowed, permits, "{}", decision.reason);
}

fn requests() -> Vec<Attributes> {
    let resource = |verb: &str, group: &str, resource: &str, subresource: &str, namespace: &str| {
        Attributes::Resource(ResourceAttributes {
            verb: verb.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: namespace.to_owned(),
            ..ResourceAttributes::default()
        })
    };
    let path = |verb: &str, path: &str| Attributes::Path {
        verb: verb.to_owned(),
        path: path.to_owned(),
    };
    vec![
        resource("get", "", "pods", "", "default"),
        resource("create", "", "pods", "exec", "default"),
        resource("list", "apps", "deployments", "", "kube-system"),
        resource("", "", "", "", ""),
        path("get", "/healthz"),
        path("post", "/api/v1"),
        path("", ""),
    ]
}

fn subjects() -> Vec<Subject> {
    let of = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter();
        let extra = pairs.map(|(key, value)| ((*key).to_owned(), vec![(*value).to_owned()]));
        Subject {
            name: "alice".to_owned(),
            uid: "u1".to_owned(),
            groups: vec!["ops".to_owned(), String::new()],
            extra: Some(extra.collect()),
        }
    };
    vec![
        Subject::default(),
        of(&[]),
        of(&[
            (ROLES, "member"),
            (PROJECT_ID, "p1"),
            (PROJECT_NAME, "demo"),
        ]),
        of(&[
            (ROLES, "Reader %/"),
            (PROJECT_NAME, "%i Demo/"),
            (USER_DOMAIN_ID, "default"),
        ]),
    ]
}

fn secret(review: &review::TokenReview) -> String {
    review.token.expose_secret().to_owned()
}

fn read(answer: &[u8]) -> Value {
    serde_json::from_slice(answer).unwrap_or_else(|error| panic!("an answer is no JSON: {error}"))
}

fn is_a_line(text: &str) {
    let is_plain = !text.chars().any(|letter| letter == '\n' || letter == '\r');
    assert!(
        is_plain && !text.is_empty() && text.len() < 2000,
        "{text:?}"
    );
}
