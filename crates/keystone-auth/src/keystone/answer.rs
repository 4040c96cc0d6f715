//! The answers of Keystone, lenient in what they have besides.

use jiff::Timestamp;
use serde::Deserialize;

use super::{AccessRule, Group, Identity, Named, Scope};

/// The answer to `GET /v3/auth/tokens`.
#[derive(Debug, Deserialize)]
pub(super) struct Validated {
    token: Token,
}

#[derive(Debug, Deserialize)]
struct Token {
    user: User,
    project: Option<Object>,
    domain: Option<Object>,
    system: Option<System>,
    #[serde(default)]
    is_domain: Option<bool>,
    #[serde(default)]
    roles: Option<Vec<Object>>,
    expires_at: Timestamp,
    application_credential: Option<Credential>,
    #[serde(rename = "OS-TRUST:trust")]
    trust: Option<serde::de::IgnoredAny>,
}

#[derive(Debug, Deserialize)]
struct User {
    id: String,
    name: String,
    domain: Option<Object>,
    #[serde(rename = "OS-FEDERATION")]
    federation: Option<Federation>,
}

#[derive(Debug, Deserialize)]
struct Federation {
    #[serde(default)]
    groups: Option<Vec<Object>>,
}

#[derive(Debug, Deserialize)]
struct System {
    all: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct Credential {
    access_rules: Option<Vec<Rule>>,
}

#[derive(Debug, Deserialize)]
struct Rule {
    service: String,
    method: String,
    path: String,
}

#[derive(Debug, Deserialize)]
struct Object {
    id: Option<String>,
    name: Option<String>,
    domain_id: Option<String>,
}

/// The answer to `GET /v3/users/{id}/groups`.
#[derive(Debug, Deserialize)]
pub(super) struct Groups {
    groups: Vec<Object>,
}

impl Validated {
    /// The identity, and whether its groups are those of the token, as a federated user's are.
    pub(super) fn identity(self) -> Result<(Identity, bool), &'static str> {
        let token = self.token;
        if token.user.id.is_empty() {
            return Err("the id of the user is empty");
        }
        let federation = token.user.federation;
        let is_federated = federation.is_some();
        let groups = federation.and_then(|it| it.groups).unwrap_or_default();
        let is_system = token.system.is_some_and(|it| it.all.unwrap_or_default());
        let scope = match (token.project, token.domain) {
            (Some(project), None) if !token.is_domain.unwrap_or_default() => {
                Scope::Project(project.named()?)
            }
            // A domain that acts as a project is no project of a user's.
            (Some(domain), None) | (None, Some(domain)) => Scope::Domain(domain.named()?),
            (None, None) if is_system => Scope::System,
            (None, None) => Scope::Unscoped,
            (Some(_), Some(_)) => return Err("it has a project and a domain"),
        };
        let rules = token.application_credential.and_then(|it| it.access_rules);
        let domain = token.user.domain;
        let identity = Identity {
            user: Named {
                id: token.user.id,
                name: token.user.name,
            },
            domain: domain.map_or_else(|| Ok(Named::default()), Object::named)?,
            scope,
            trust: token.trust.is_some(),
            roles: names(token.roles.unwrap_or_default()),
            groups: groups.into_iter().map(Object::group).collect(),
            expires_at: token.expires_at,
            access_rules: rules.map(|rules| rules.into_iter().map(Rule::parts).collect()),
        };
        Ok((identity, is_federated))
    }
}

impl Groups {
    pub(super) fn groups(self) -> Vec<Group> {
        self.groups.into_iter().map(Object::group).collect()
    }
}

impl Rule {
    fn parts(self) -> AccessRule {
        AccessRule {
            service: self.service,
            method: self.method,
            path: self.path,
        }
    }
}

impl Object {
    fn named(self) -> Result<Named, &'static str> {
        match self.id.filter(|id| !id.is_empty()) {
            Some(id) => Ok(Named {
                id,
                name: self.name.unwrap_or_default(),
            }),
            None => Err("an id is missing"),
        }
    }

    /// A federated user's groups may have no name.
    fn group(self) -> Group {
        let id = self.id.unwrap_or_default();
        let name = self.name.unwrap_or_else(|| id.clone());
        Group {
            group: Named { id, name },
            domain_id: self.domain_id.unwrap_or_default(),
        }
    }
}

fn names(objects: Vec<Object>) -> Vec<String> {
    objects.into_iter().filter_map(|it| it.name).collect()
}
