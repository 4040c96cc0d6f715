//! Mappings of Keystone: from a provider's claims about a user to a name and groups.

use serde_json::{Map, Value};

use super::directory::same_name;
use super::login::named_domain;
use crate::cloud::document::Fields;
use crate::cloud::kind::Kind;
use crate::cloud::state::State;

/// User as the rules say.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Mapped {
    pub(super) name: String,
    /// Ids of groups.
    pub(super) groups: Vec<String>,
}

/// Applies all matching rules; `None` if none of them names the user, or one names an unknown group.
pub(super) fn apply(
    state: &State,
    rules: &[Value],
    name: &str,
    groups: &[String],
) -> Option<Mapped> {
    let mut mapped = Mapped::default();
    for rule in rules.iter().filter_map(Value::as_object) {
        let Some(values) = matched(rule, name, groups) else {
            continue;
        };
        for local in rule.list("local").iter().filter_map(Value::as_object) {
            let user = local.object("user");
            if mapped.name.is_empty() && user.given("name") {
                mapped.name = filled(user.text("name"), &values);
            }
            let group = local.object("group");
            if group.given("id") {
                let known = state.get(Kind::Group, group.text("id"))?;
                mapped.groups.push(known.text("id").to_owned());
            } else if group.given("name") {
                let domain = named_domain(state, &group.object("domain"))?;
                let domain = domain.text("id");
                let known = same_name(state, Kind::Group, group.text("name"), domain)?;
                mapped.groups.push(known.text("id").to_owned());
            }
            if local.given("groups") {
                let domain = named_domain(state, &local.object("domain"))?;
                // Names of groups that are not there are left out.
                let names = filled(local.text("groups"), &values);
                let known = names
                    .split(';')
                    .filter_map(|name| same_name(state, Kind::Group, name, domain.text("id")));
                mapped
                    .groups
                    .extend(known.map(|it| it.text("id").to_owned()));
            }
        }
    }
    mapped.groups.sort();
    mapped.groups.dedup();
    (!mapped.name.is_empty()).then_some(mapped)
}

/// Returns the values for `{0}`, `{1}` and so on; `None` if the rule does not match.
fn matched(rule: &Map<String, Value>, name: &str, groups: &[String]) -> Option<Vec<String>> {
    let mut values = Vec::new();
    for remote in rule.list("remote").iter().filter_map(Value::as_object) {
        let kind = remote.text("type");
        let kind = kind.strip_prefix("HTTP_").unwrap_or(kind).replace('_', "-");
        let claim = kind.strip_prefix("OIDC-")?.to_ascii_lowercase();
        let claims: Vec<String> = match claim.as_str() {
            "sub" | "preferred-username" | "name" => vec![name.to_owned()],
            "groups" => groups.to_vec(),
            _ => return None,
        };
        let is_in = |list: &str| {
            claims
                .iter()
                .any(|it| remote.texts(list).any(|text| text == it))
        };
        if remote.given("any_one_of") {
            is_in("any_one_of").then_some(())?;
        } else if remote.given("not_any_of") {
            (!is_in("not_any_of")).then_some(())?;
        } else {
            let passes = |it: &&String| {
                let listed = |list: &str| remote.texts(list).any(|text| text == *it);
                (!remote.given("whitelist") || listed("whitelist")) && !listed("blacklist")
            };
            let claims: Vec<&str> = claims.iter().filter(passes).map(String::as_str).collect();
            values.push(claims.join(";"));
        }
    }
    Some(values)
}

fn filled(text: &str, values: &[String]) -> String {
    let mut text = text.to_owned();
    for (index, value) in values.iter().enumerate() {
        text = text.replace(&format!("{{{index}}}"), value);
    }
    text
}
