//! `keystone-auth explain`: effect of each rule of a policy on a request.

use std::collections::HashMap;
use std::fmt::Write as _;

use anyhow::anyhow;
use keystone_auth::policy::{Policy, decide, explain};
use keystone_auth::subject::{Attributes, PROJECT_NAME, ROLES, ResourceAttributes, Subject};

use crate::cli::KeystoneExplain;
use crate::source;

/// The rules, one line each, and the decision.
pub(crate) fn text(args: &KeystoneExplain) -> anyhow::Result<String> {
    let policy = source::read_text(&args.policy)
        .map_err(|why| anyhow!("--policy: cannot read {}: {why}", args.policy.display()))?;
    render(args, &policy)
}

fn render(args: &KeystoneExplain, policy: &str) -> anyhow::Result<String> {
    let compiled = Policy::compile(policy, args.policy_mode.into())
        .map_err(|why| anyhow!("{}: {why}", args.policy.display()))?;
    let (subject, attributes) = (subject(args), attributes(args));
    let mut text = String::new();
    for doubt in &compiled.doubts {
        let _ = writeln!(text, "doubtful: {doubt}");
    }
    for rule in explain(&compiled.policy, &subject, &attributes) {
        let verdict = rule.miss.unwrap_or("permitted");
        let _ = writeln!(
            text,
            "entry {} ({}) {}: {verdict}",
            rule.entry, rule.place, rule.rule
        );
    }
    let decision = decide(&compiled.policy, &subject, &attributes);
    let verdict = match decision.allowed {
        true => "allowed",
        false => "no opinion",
    };
    let _ = writeln!(text, "{verdict}: {}", decision.reason);
    Ok(text)
}

fn subject(args: &KeystoneExplain) -> Subject {
    // What is given as a project may be the id or the name: policies have either.
    let extra = HashMap::from([
        (ROLES.to_owned(), args.role.clone()),
        (PROJECT_NAME.to_owned(), args.project.clone()),
    ]);
    Subject {
        name: args.user.clone(),
        uid: String::new(),
        groups: args.group.clone(),
        extra: Some(extra),
    }
}

fn attributes(args: &KeystoneExplain) -> Attributes {
    if let Some(path) = &args.url {
        let (verb, path) = (args.verb.clone(), path.clone());
        return Attributes::Path { verb, path };
    }
    let resource = args.resource.as_deref().unwrap_or_default();
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    Attributes::Resource(ResourceAttributes {
        verb: args.verb.clone(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        subresource: subresource.to_owned(),
        namespace: args.namespace.clone(),
        ..ResourceAttributes::default()
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command, KeystoneAuth};

    const POLICY: &str = r#"[
      {"users": {"roles": ["dev"], "projects": ["demo"]}, "resource_permissions": {"default/pods": ["get"], "!x": ["get"]}},
      {"users": {"projects": ["demo"]}, "nonresource_permissions": {"/healthz": ["get"]}}
    ]"#;

    fn explained(words: &str) -> anyhow::Result<String> {
        let words = format!("ferrostack keystone-auth explain --policy p.json {words}");
        match Cli::try_parse_from(words.split(' ')).unwrap().command {
            Command::KeystoneAuth(KeystoneAuth::Explain(args)) => render(&args, POLICY),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_rule_says_why_it_does_not_permit_a_request() {
        let text =
            explained("--role dev --project demo --verb get --resource pods/exec -n default")
                .unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("doubtful: line 2, column "), "{text}");
        let rest = &lines[lines.len() - 4..];
        assert!(
            rest[0].starts_with("entry 1 (line 2, column ")
                && rest[0].ends_with("default/pods: get: permitted"),
            "{text}"
        );
        assert!(
            rest[1].ends_with("!x: get: it is not NAMESPACE/RESOURCE"),
            "{text}"
        );
        assert!(
            rest[2].ends_with("/healthz: get: it is about paths, and this is a resource"),
            "{text}"
        );
        assert_eq!(rest[3], "allowed: entry 1 of the policy: default/pods: get");
        let text = explained(
            "--role dev --project other --verb get --resource deployments.apps -n default",
        )
        .unwrap();
        assert!(
            text.contains("default/pods: get: another resource") && text.ends_with("permits it\n"),
            "{text}"
        );
        let text = explained("--project demo --verb get --url /healthz").unwrap();
        assert!(text.contains("/healthz: get: permitted"), "{text}");
    }

    #[test]
    fn strict_mode_refuses_the_policy_with_the_place() {
        let error = explained("--policy-mode strict --verb get --resource pods").unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("p.json: line 2, column ") && error.contains("`!x` has no namespace"),
            "{error}"
        );
    }
}
