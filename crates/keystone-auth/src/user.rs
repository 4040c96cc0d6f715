//! Conversion of an identity in Keystone to a user of Kubernetes: names, groups and extra keys, and refusals.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::str::FromStr;
use std::sync::Arc;

use crate::keystone::{AccessRule, Group, Identity, Named, Scope};
use crate::subject::{
    Extra, PROJECT_ID, PROJECT_NAME, ROLES, Subject, USER_DOMAIN_ID, USER_DOMAIN_NAME,
};
use crate::sync::RoleMapping;

/// Prefix of Kubernetes' own names.
const OF_KUBERNETES: &str = "system:";
/// Prefix of groups for the scope of a token.
const OF_SCOPES: &str = "keystone:";
/// Service type of access rules for this cluster.
const SERVICE: &str = "kubernetes";

/// Accepted scopes of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Accepted {
    /// A project.
    Project,
    /// A project, by a trust.
    Trust,
    /// A domain.
    Domain,
    /// The system.
    System,
    /// Nothing.
    Unscoped,
}

impl FromStr for Accepted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "project" => Self::Project,
            "trust" => Self::Trust,
            "domain" => Self::Domain,
            "system" => Self::System,
            "unscoped" => Self::Unscoped,
            other => {
                return Err(format!(
                    "`{other}` is no scope: there are project, trust, domain, system and unscoped"
                ));
            }
        })
    }
}

/// Names of users, and restrictions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Accepted scopes of tokens.
    pub scopes: BTreeSet<Accepted>,
    /// [`Format`] of the names of users.
    pub username: Format,
    /// [`Format`] of the names of groups.
    pub group: Format,
    /// Accepted ids and names of the domains of users; all domains if empty.
    pub domains: HashSet<String>,
    /// Accepted ids and names of projects; all projects if empty.
    pub projects: HashSet<String>,
}

impl Default for Options {
    /// Defaults of the Go program.
    fn default() -> Self {
        Self {
            scopes: BTreeSet::from([Accepted::Project, Accepted::Trust]),
            username: Format::default(),
            group: Format::default(),
            domains: HashSet::new(),
            projects: HashSet::new(),
        }
    }
}

/// Format of a name in Kubernetes from Keystone's: `%n` is the name, `%i` the id, `%D` the name of the domain, `%d`
/// its id, and `%%` a per cent sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Name,
    Id,
    Domain,
    DomainId,
}

impl Default for Format {
    fn default() -> Self {
        Self(vec![Part::Name])
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            let part = match letter {
                '%' => match letters.next() {
                    Some('n') => Part::Name,
                    Some('i') => Part::Id,
                    Some('D') => Part::Domain,
                    Some('d') => Part::DomainId,
                    Some('%') => Part::Text('%'.to_string()),
                    _ => {
                        return Err(format!(
                            "`{text}`: after % there is n, i, D, d or another %"
                        ));
                    }
                },
                letter => Part::Text(letter.to_string()),
            };
            match (parts.last_mut(), part) {
                (Some(Part::Text(before)), Part::Text(more)) => before.push_str(&more),
                (_, part) => parts.push(part),
            }
        }
        if !parts.contains(&Part::Name) && !parts.contains(&Part::Id) {
            return Err(format!(
                "`{text}` has neither %n nor %i: all would have one name"
            ));
        }
        if let Some(Part::Text(start)) = parts.first()
            && start.starts_with(OF_KUBERNETES)
        {
            return Err(format!(
                "`{text}`: names that begin with {OF_KUBERNETES} are Kubernetes' own"
            ));
        }
        Ok(Self(parts))
    }
}

impl Format {
    /// True if users of two domains may have one name.
    pub fn is_ambiguous(&self) -> bool {
        !self
            .0
            .iter()
            .any(|part| matches!(part, Part::Id | Part::Domain | Part::DomainId))
    }

    fn name(&self, of: &Named, domain: &Named) -> Option<String> {
        let parts = self.0.iter().map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Name => &of.name,
            Part::Id => &of.id,
            Part::Domain => &domain.name,
            Part::DomainId => &domain.id,
        });
        let is_whole = parts.clone().all(|part| !part.is_empty());
        let name: String = parts.collect();
        let is_plain = !name.chars().any(char::is_control);
        (is_whole && is_plain).then_some(name)
    }
}

/// User of an [`Identity`], before the mapping of roles.
///
/// # Errors
/// Reason for a refusal, in a sentence without anything secret.
pub fn user(identity: &Identity, options: &Options) -> Result<Subject, String> {
    accept(identity, options)?;
    let name = options.username.name(&identity.user, &identity.domain);
    let Some(name) = name else {
        return Err("Keystone's user has a name that cannot be one in Kubernetes".to_owned());
    };
    if name.starts_with(OF_KUBERNETES) {
        return Err(format!(
            "Keystone's user has a name that begins with {OF_KUBERNETES}, as those of Kubernetes' own users do"
        ));
    }
    let mut extra = Extra::from([
        (ROLES.to_owned(), texts(&identity.roles)),
        (USER_DOMAIN_ID.to_owned(), texts([&identity.domain.id])),
        (USER_DOMAIN_NAME.to_owned(), texts([&identity.domain.name])),
    ]);
    let mut groups: Vec<String> = groups(identity, options).collect();
    match &identity.scope {
        Scope::Project(project) => {
            groups.push(project.id.to_string());
            extra.insert(PROJECT_ID.to_owned(), texts([&project.id]));
            extra.insert(PROJECT_NAME.to_owned(), texts([&project.name]));
        }
        Scope::Domain(domain) => groups.push(format!("{OF_SCOPES}domain:{}", domain.id)),
        Scope::System => groups.push(format!("{OF_SCOPES}system")),
        Scope::Unscoped => {}
    }
    Ok(Subject {
        name,
        uid: identity.user.id.to_string(),
        groups,
        extra: Some(extra),
    })
}

fn texts<'a>(of: impl IntoIterator<Item = &'a Box<str>>) -> Vec<String> {
    of.into_iter().map(|it| it.to_string()).collect()
}

/// User with the groups and the name for the user's roles, by [`RoleMapping`]s. Of several names, the last one
/// counts.
pub fn mapped(user: &Subject, mappings: &[RoleMapping]) -> Subject {
    let mut mapped = user.clone();
    for mapping in mappings {
        if mapping.keystone_role.is_empty() || !user.roles().contains(&mapping.keystone_role) {
            continue;
        }
        mapped.groups.extend(mapping.groups.iter().cloned());
        if !mapping.username.is_empty() {
            mapped.name.clone_from(&mapping.username);
        }
    }
    mapped
}

fn accept(identity: &Identity, options: &Options) -> Result<(), String> {
    let (scope, what) = match (&identity.scope, identity.trust) {
        (Scope::Project(_), false) => (Accepted::Project, "for a project"),
        (Scope::Project(_), true) => (Accepted::Trust, "from a trust"),
        (Scope::Domain(_), _) => (Accepted::Domain, "for a domain"),
        (Scope::System, _) => (Accepted::System, "for the system"),
        (Scope::Unscoped, _) => (Accepted::Unscoped, "for no project"),
    };
    if !options.scopes.contains(&scope) {
        return Err(format!(
            "the token is {what}, and such tokens are not accepted here"
        ));
    }
    let is_in =
        |set: &HashSet<String>, of: &Named| set.contains(&*of.id) || set.contains(&*of.name);
    if !options.domains.is_empty() && !is_in(&options.domains, &identity.domain) {
        return Err("the user's domain is not accepted here".to_owned());
    }
    let allowed = match &identity.scope {
        _ if options.projects.is_empty() => true,
        Scope::Project(project) => is_in(&options.projects, project),
        _ => false,
    };
    if !allowed {
        return Err("the project is not accepted here".to_owned());
    }
    match &identity.access_rules {
        Some(rules) if !allow_everything(rules) => Err(format!(
            "the application credential has access rules that do not allow all of the service type {SERVICE}"
        )),
        _ => Ok(()),
    }
}

/// True if rules allow everything of an API server. A token with fewer permissions would gain some: the API server
/// knows no rules.
fn allow_everything(rules: &[AccessRule]) -> bool {
    let of_service =
        |rule: &&AccessRule| &*rule.service == SERVICE && matches!(&*rule.path, "/**" | "**");
    let methods: HashSet<&str> = rules
        .iter()
        .filter(of_service)
        .map(|it| &*it.method)
        .collect();
    let needed = ["GET", "POST", "PUT", "PATCH", "DELETE"];
    needed.iter().all(|method| methods.contains(method))
}

/// Names of the groups, without Kubernetes' own and ours.
fn groups<'a>(identity: &'a Identity, options: &'a Options) -> impl Iterator<Item = String> + 'a {
    let mut names = HashMap::from([(&*identity.domain.id, &*identity.domain.name)]);
    names.remove("");
    let of = move |it: &Arc<Group>| {
        let domain = Named {
            id: it.domain_id.clone(),
            name: names
                .get(&*it.domain_id)
                .copied()
                .unwrap_or_default()
                .into(),
        };
        options.group.name(&it.group, &domain)
    };
    let all = identity.groups.iter().flat_map(|groups| groups.iter());
    let named = all.filter_map(of);
    named.filter(|name| {
        let reserved = name.starts_with(OF_KUBERNETES) || name.starts_with(OF_SCOPES);
        if reserved {
            tracing::warn!(
                user = &*identity.user.id,
                "a group with a reserved name is left out"
            );
        }
        !reserved
    })
}

#[cfg(test)]
mod tests;
