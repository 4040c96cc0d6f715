//! TokenReview and SubjectAccessReview, in v1 and v1beta1: decoded by type, and answered in the version of the
//! request.

use std::collections::HashMap;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::policy::Decision;
use crate::subject::{Attributes, ResourceAttributes, Subject};

/// Review from an API server.
#[derive(Debug)]
pub enum Review {
    /// TokenReview: identity of a token.
    Token(TokenReview),
    /// SubjectAccessReview: may the user do the action?
    Access(Box<AccessReview>),
}

/// TokenReview: identity of a token.
#[derive(Debug)]
pub struct TokenReview {
    version: Version,
    /// The token.
    pub token: SecretString,
    /// Accepted audiences of the token; empty for the API server.
    pub audiences: Vec<String>,
}

/// SubjectAccessReview: may the user do the action?
#[derive(Debug)]
pub struct AccessReview {
    version: Version,
    /// The user.
    pub subject: Subject,
    /// Action of the request.
    pub attributes: Attributes,
}

/// Error for a body that is no review.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoReview(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V1Beta1,
}

const TOKEN_REVIEW: &str = "TokenReview";
const ACCESS_REVIEW: &str = "SubjectAccessReview";
const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

/// Both kinds in one type: their fields alone do not tell them apart before the end of the body.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    api_version: Option<String>,
    kind: Option<String>,
    spec: Option<Spec>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    token: Option<SecretString>,
    audiences: Option<Vec<String>>,
    user: Option<String>,
    uid: Option<String>,
    groups: Option<Vec<String>>,
    /// `groups` of v1beta1.
    group: Option<Vec<String>>,
    extra: Option<HashMap<String, Option<Vec<String>>>>,
    resource_attributes: Option<Resource>,
    non_resource_attributes: Option<NonResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    verb: Option<String>,
    group: Option<String>,
    version: Option<String>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    /// Decoded to check the types: no policy has selectors.
    #[serde(rename = "fieldSelector")]
    _field_selector: Option<Selector>,
    #[serde(rename = "labelSelector")]
    _label_selector: Option<Selector>,
}

#[derive(Deserialize)]
struct Selector {
    #[serde(rename = "rawSelector")]
    _raw: Option<String>,
    #[serde(rename = "requirements")]
    _requirements: Option<Vec<Requirement>>,
}

#[derive(Deserialize)]
struct Requirement {
    #[serde(rename = "key")]
    _key: Option<String>,
    #[serde(rename = "operator")]
    _operator: Option<String>,
    #[serde(rename = "values")]
    _values: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct NonResource {
    verb: Option<String>,
    path: Option<String>,
}

/// Decodes a body into a [`Review`].
///
/// # Errors
/// Mistake, with the field. A token in the body is not in the error.
pub fn decode(body: &[u8]) -> Result<Review, NoReview> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let body: Body = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        NoReview(described(&path, &error.into_inner()))
    })?;
    deserializer
        .end()
        .map_err(|_| NoReview("there is more after the end of the review".to_owned()))?;
    let missing = |field: &str| NoReview(format!("{field}: is missing"));
    let api_version = body.api_version.ok_or_else(|| missing("apiVersion"))?;
    let kind = body.kind.ok_or_else(|| missing("kind"))?;
    let (group, version) = match api_version.split_once('/') {
        Some((group, "v1")) => (group, Version::V1),
        Some((group, "v1beta1")) => (group, Version::V1Beta1),
        _ => ("", Version::V1),
    };
    let spec = body.spec;
    match (kind.as_str(), group) {
        (TOKEN_REVIEW, AUTHENTICATION) => {
            let spec = spec.ok_or_else(|| missing("spec"))?;
            Ok(Review::Token(TokenReview {
                version,
                token: spec.token.ok_or_else(|| missing("spec.token"))?,
                audiences: spec.audiences.unwrap_or_default(),
            }))
        }
        (ACCESS_REVIEW, AUTHORIZATION) => {
            let spec = spec.ok_or_else(|| missing("spec"))?;
            access(version, spec).map(|review| Review::Access(Box::new(review)))
        }
        (TOKEN_REVIEW | ACCESS_REVIEW, _) => Err(NoReview(format!(
            "apiVersion: `{}` has no {kind}: there are {AUTHENTICATION} and {AUTHORIZATION}, each in v1 and v1beta1",
            printable(&api_version)
        ))),
        (other, _) => Err(NoReview(format!(
            "kind: `{}` is neither {TOKEN_REVIEW} nor {ACCESS_REVIEW}",
            printable(other)
        ))),
    }
}

fn access(version: Version, spec: Spec) -> Result<AccessReview, NoReview> {
    let groups = match version {
        Version::V1 => spec.groups,
        Version::V1Beta1 => spec.group,
    };
    let extra = spec.extra.map(|extra| {
        let values = extra.into_iter();
        values
            .map(|(key, values)| (key, values.unwrap_or_default()))
            .collect()
    });
    let attributes = match (spec.resource_attributes, spec.non_resource_attributes) {
        (Some(it), None) => Attributes::Resource(it.attributes()),
        (None, Some(it)) => Attributes::Path {
            verb: it.verb.unwrap_or_default(),
            path: it.path.unwrap_or_default(),
        },
        (None, None) => {
            return Err(NoReview(
                "spec.resourceAttributes: is missing, and so is spec.nonResourceAttributes"
                    .to_owned(),
            ));
        }
        (Some(_), Some(_)) => {
            return Err(NoReview(
                "spec.nonResourceAttributes: cannot be there beside spec.resourceAttributes"
                    .to_owned(),
            ));
        }
    };
    Ok(AccessReview {
        version,
        subject: Subject {
            name: spec.user.unwrap_or_default(),
            uid: spec.uid.unwrap_or_default(),
            groups: groups.unwrap_or_default(),
            extra,
        },
        attributes,
    })
}

impl Resource {
    fn attributes(self) -> ResourceAttributes {
        ResourceAttributes {
            verb: self.verb.unwrap_or_default(),
            group: self.group.unwrap_or_default(),
            version: self.version.unwrap_or_default(),
            resource: self.resource.unwrap_or_default(),
            subresource: self.subresource.unwrap_or_default(),
            namespace: self.namespace.unwrap_or_default(),
            name: self.name.unwrap_or_default(),
        }
    }
}

/// Field and mistake, without the value: the value may be the token.
fn described(path: &str, error: &serde_json::Error) -> String {
    let words = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let words = words.strip_suffix(&place).unwrap_or(&words);
    let expected = words
        .rsplit_once(", expected ")
        .map(|(_, expected)| expected);
    let words = match (words.starts_with("invalid type: "), expected) {
        (true, Some(expected)) => format!("is of the wrong type, expected {expected}"),
        _ if error.is_data() && words.starts_with("duplicate field ") => {
            words.replacen("duplicate field ", "", 1) + " is there twice"
        }
        _ if error.is_data() => "cannot be read".to_owned(),
        _ => format!("is no JSON: {words}{place}"),
    };
    let path = match path {
        "." | "?" => "the body",
        path => path,
    };
    format!("{}: {words}", printable(path))
}

/// Short text without control characters for terminals.
fn printable(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answered<S> {
    api_version: &'static str,
    kind: &'static str,
    status: S,
}

#[derive(Serialize)]
struct TokenStatus<'a> {
    authenticated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<UserInfo<'a>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    audiences: &'a [String],
    #[serde(skip_serializing_if = "str::is_empty")]
    error: &'a str,
}

#[derive(Serialize)]
struct UserInfo<'a> {
    username: &'a str,
    uid: &'a str,
    groups: &'a [String],
    extra: &'a Option<crate::subject::Extra>,
}

#[derive(Serialize)]
struct AccessStatus<'a> {
    allowed: bool,
    reason: &'a str,
}

impl TokenReview {
    /// Answer: the token belongs to this user.
    ///
    /// # Errors
    /// Never in practice: all content is text.
    pub fn authenticated(
        &self,
        user: &Subject,
        audiences: &[String],
    ) -> serde_json::Result<Vec<u8>> {
        self.answer(&TokenStatus {
            authenticated: true,
            user: Some(UserInfo {
                username: &user.name,
                uid: &user.uid,
                groups: &user.groups,
                extra: &user.extra,
            }),
            audiences,
            error: "",
        })
    }

    /// Answer: the token belongs to nobody.
    ///
    /// # Errors
    /// As [`Self::authenticated`].
    pub fn refused(&self, reason: &str) -> serde_json::Result<Vec<u8>> {
        self.answer(&TokenStatus {
            authenticated: false,
            user: None,
            audiences: &[],
            error: reason,
        })
    }

    fn answer(&self, status: &TokenStatus<'_>) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&Answered {
            api_version: match self.version {
                Version::V1 => "authentication.k8s.io/v1",
                Version::V1Beta1 => "authentication.k8s.io/v1beta1",
            },
            kind: TOKEN_REVIEW,
            status,
        })
    }
}

impl AccessReview {
    /// Answer by a [`Decision`]. A refusal is no denial: another authorizer may allow the request.
    ///
    /// # Errors
    /// As [`TokenReview::authenticated`].
    pub fn answer(&self, decision: &Decision) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&Answered {
            api_version: match self.version {
                Version::V1 => "authorization.k8s.io/v1",
                Version::V1Beta1 => "authorization.k8s.io/v1beta1",
            },
            kind: ACCESS_REVIEW,
            status: AccessStatus {
                allowed: decision.allowed,
                reason: &decision.reason,
            },
        })
    }
}

#[cfg(test)]
mod tests;
