//! Conversion of Keystone's answer about a token to an identity.

use std::sync::Arc;

use openstack::identity::{self, TokenDescription};

use super::{AccessRule, Group, Identity, Named, Scope, Validated};

/// Identity of a token as [`Validated`], with the groups of a federated user, which are in the answer.
///
/// # Errors
/// Missing or contradictory part of the answer.
pub(super) fn validated(token: TokenDescription) -> Result<Validated, &'static str> {
    if token.user.id.is_empty() {
        return Err("the id of the user is empty");
    }
    let expires_at = token.expires_at.ok_or("it has no end")?;
    let is_system = token.system.is_some_and(|it| it.all);
    let project = token.project.map(|it| (it.id, it.name));
    let domain = token.domain.map(|it| (it.id, it.name));
    let scope = match (project, domain) {
        (Some(project), None) if !token.is_domain => Scope::Project(named(project)?),
        // A domain that acts as a project is no project of a user.
        (Some(domain), None) | (None, Some(domain)) => Scope::Domain(named(domain)?),
        (None, None) if is_system => Scope::System,
        (None, None) => Scope::Unscoped,
        (Some(_), Some(_)) => return Err("it has a project and a domain"),
    };
    let groups = token.user.federation.map(|it| it.groups);
    let rules = token.application_credential.and_then(|it| it.access_rules);
    let identity = Identity {
        user: Named {
            id: token.user.id.into(),
            name: token.user.name.into(),
        },
        domain: Named {
            id: token.user.domain.id.into(),
            name: token.user.domain.name.into(),
        },
        scope,
        trust: token.trust.is_some(),
        roles: names(token.roles),
        groups: groups.map(|groups| groups.into_iter().map(group).map(Arc::new).collect()),
        access_rules: rules.map(|rules| rules.into_iter().map(rule).collect()),
    };
    Ok(Validated {
        identity,
        expires_at,
    })
}

fn named((id, name): (String, String)) -> Result<Named, &'static str> {
    match id.is_empty() {
        true => Err("an id is missing"),
        false => Ok(Named {
            id: id.into(),
            name: name.into(),
        }),
    }
}

fn names(roles: Vec<identity::Named>) -> Box<[Box<str>]> {
    let names = roles.into_iter().map(|it| it.name);
    let names = names.filter(|name| !name.is_empty());
    names.map(String::into_boxed_str).collect()
}

/// Group of a federated user, possibly without a name.
fn group(it: identity::Named) -> Group {
    let name = match it.name.is_empty() {
        true => it.id.clone(),
        false => it.name,
    };
    Group {
        group: Named {
            id: it.id.into(),
            name: name.into(),
        },
        domain_id: Box::default(),
    }
}

fn rule(it: identity::AccessRule) -> AccessRule {
    AccessRule {
        service: it.service.into(),
        method: it.method.into(),
        path: it.path.into(),
    }
}
