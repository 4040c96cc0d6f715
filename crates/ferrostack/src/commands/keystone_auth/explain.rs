//! `keystone-auth explain`: effect of each rule of a policy on a request.

use std::collections::HashMap;
use std::fmt::Write as _;

use anyhow::anyhow;
use keystone_auth::policy::{Compiled, Finding, Policy, decide, explain};
use keystone_auth::subject::{Attributes, PROJECT_NAME, ROLES, ResourceAttributes, Subject};
use serde_json::{Value, json};

use crate::cli::{KeystoneExplain, Output};
use crate::source;

/// Rules, doubts and the decision, in the format of the output.
pub(crate) fn report(args: &KeystoneExplain) -> anyhow::Result<String> {
    let policy = source::read_text(&args.policy)
        .map_err(|why| anyhow!("--policy: cannot read {}: {why}", args.policy.display()))?;
    render(args, &policy)
}

fn render(args: &KeystoneExplain, policy: &str) -> anyhow::Result<String> {
    let compiled = Policy::compile(policy, args.policy_mode.into())
        .map_err(|why| anyhow!("{}: {why}", args.policy.display()))?;
    Ok(match args.output.output {
        Output::Text => text(args, &compiled),
        Output::Json => terminal::json_document(&document(args, &compiled)),
    })
}

/// One line for each rule, and the decision.
fn text(args: &KeystoneExplain, compiled: &Compiled) -> String {
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
    text
}

/// The same for programs. A rule that permits the request has no `why`.
fn document(args: &KeystoneExplain, compiled: &Compiled) -> Value {
    let (subject, attributes) = (subject(args), attributes(args));
    let rules = explain(&compiled.policy, &subject, &attributes).map(|rule| {
        let mut document = json!({
            "entry": rule.entry,
            "line": rule.place.line,
            "column": rule.place.column,
            "rule": rule.rule,
            "permits": rule.miss.is_none(),
        });
        if let Some(why) = rule.miss {
            document["why"] = json!(why);
        }
        document
    });
    let rules: Vec<Value> = rules.collect();
    let doubt = |doubt: &Finding| json!({"line": doubt.place.line, "column": doubt.place.column, "message": doubt.message});
    let doubts: Vec<Value> = compiled.doubts.iter().map(doubt).collect();
    let decision = decide(&compiled.policy, &subject, &attributes);
    json!({
        "allowed": decision.allowed,
        "reason": decision.reason,
        "rules": rules,
        "doubts": doubts,
    })
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
    fn programs_read_the_decision_and_each_rule() {
        let request = "--role dev --project demo --verb get --resource pods -n default -o json";
        let read =
            |words: &str| -> Value { serde_json::from_str(&explained(words).unwrap()).unwrap() };
        let document = read(request);
        assert_eq!(document["allowed"], true);
        assert_eq!(
            document["reason"],
            "entry 1 of the policy: default/pods: get"
        );
        let rule = &document["rules"][0];
        assert_eq!(
            *rule,
            json!({"entry": 1, "line": 2, "column": rule["column"],
            "rule": "default/pods: get", "permits": true})
        );
        let rule = &document["rules"][1];
        assert_eq!(
            (&rule["permits"], &rule["why"]),
            (&json!(false), &json!("it is not NAMESPACE/RESOURCE"))
        );
        assert_eq!(document["doubts"][0]["line"], 2);
        let refused = read(&request.replace("--project demo", "--project other"));
        assert_eq!(refused["allowed"], false);
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
