use std::collections::BTreeMap;

use api::providers::Provider;
use serde_json::Value;

use super::*;
use crate::manifests::{self, Issuer};
use crate::subset::Subset;

const NAMESPACE: &str = "of-the-release";
const IMAGE: &str = "ferrostack:1";

/// Helm's template language as far as our templates need it: the values of expressions, which are written by hand here
/// (tests/kubernetes/helm-install has the judgement of Helm itself).
struct Values {
    providers: Vec<Provider>,
    clouds: &'static str,
    issuer: Issuer,
}

impl Values {
    fn subset(&self) -> Subset {
        Subset::new(self.providers.iter().copied(), !self.clouds.is_empty())
    }

    /// An expression's text; empty is false.
    fn text(&self, expression: &str) -> String {
        let truth = |it: bool| if it { "true" } else { "" }.to_owned();
        let suffix = self.subset().named("");
        match expression {
            ".Release.Namespace" => NAMESPACE.to_owned(),
            ".Values.openstackNamespace" => self.clouds.to_owned(),
            ".Values.replicas" => "2".to_owned(),
            ".Values.log" => "info".to_owned(),
            ".Values.priorityClassName" => "system-cluster-critical".to_owned(),
            ".Values.resources" | ".Values.crds.enabled" => truth(true),
            ".Values.podDisruptionBudget.enabled" | ".Values.networkPolicy.enabled" => truth(true),
            ".Values.certManager.enabled"
            | "and .Values.certManager.enabled (not .Values.certManager.issuerRef)" => {
                truth(self.issuer == Issuer::CertManager)
            }
            // The annotation is Helm's alone.
            ".Values.crds.keep" => truth(false),
            r#"include "ferrostack.suffix" ."# => suffix,
            r#"include "ferrostack.providers" ."# => self.subset().names(","),
            r#"include "ferrostack.image" . | quote"# => format!("\"{IMAGE}\""),
            r#""{{""# => "{{".to_owned(),
            "toYaml . | nindent 10" => {
                let values: Value = serde_saphyr::from_str(FILES[0].1).unwrap();
                let text = serde_saphyr::to_string(&values["resources"]).unwrap();
                let lines = text.lines().map(|line| format!("\n{:10}{line}", ""));
                lines.collect()
            }
            _ => self.condition(expression, &suffix),
        }
    }

    fn condition(&self, expression: &str, suffix: &str) -> String {
        let truth = |it: bool| if it { "true" } else { "" }.to_owned();
        if let Some(rest) = expression.strip_prefix("has \"") {
            let (name, rest) = rest.split_once('"').unwrap();
            assert_eq!(
                rest,
                r#" (splitList "," (include "ferrostack.providers" .))"#
            );
            let runs = |it: &Provider| it.as_str() == name;
            return truth(self.subset().providers().iter().any(runs));
        }
        if expression == r#"or .Values.openstackNamespace (not (include "ferrostack.suffix" .))"# {
            return truth(!self.clouds.is_empty() || suffix.is_empty());
        }
        if let Some(rest) = expression.strip_prefix("and .Values.crds.enabled (") {
            return self.text(rest.strip_suffix(')').unwrap());
        }
        if let Some(rest) = expression.strip_prefix("or (") {
            let mut all = rest.strip_suffix(')').unwrap().split(") (");
            // The last parenthesis of an expression within is not the end of one of ours.
            return truth(all.any(|it| !self.text(it).is_empty()));
        }
        assert!(expression.starts_with(".Values."), "{expression}");
        String::new()
    }

    fn render(&self, template: &str) -> String {
        let mut text = String::new();
        // Of each block: the value of its dot, and whether its lines are there.
        let mut blocks: Vec<(String, bool)> = Vec::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once("{{") {
            let is_there = blocks.iter().all(|(_, is_there)| *is_there);
            let (is_trimmed, after) = match after.strip_prefix('-') {
                Some(after) => (true, after),
                None => (false, after),
            };
            if is_there {
                text.push_str(match is_trimmed {
                    true => before.trim_end(),
                    false => before,
                });
            }
            let (expression, after) = match after.strip_prefix(r#" "{{" }}"#) {
                Some(after) => (r#""{{""#, after),
                None => after.split_once("}}").unwrap(),
            };
            rest = after;
            let (word, argument) = expression
                .trim()
                .split_once(' ')
                .unwrap_or((expression.trim(), ""));
            match word {
                "if" | "with" => {
                    let value = self.text(argument);
                    let is_there = !value.is_empty();
                    blocks.push((value, is_there));
                }
                "else" => {
                    let block = blocks.last_mut().unwrap();
                    block.1 = !block.1;
                }
                "end" => {
                    blocks.pop().unwrap();
                }
                _ if !blocks.iter().all(|(_, is_there)| *is_there) => {}
                "." => text.push_str(&blocks.last().unwrap().0),
                _ => text.push_str(&self.text(expression.trim())),
            }
        }
        assert!(blocks.is_empty());
        text + rest
    }
}

fn by_name(documents: Vec<Value>) -> BTreeMap<String, Value> {
    let named = documents.into_iter().filter(|it| !it.is_null()).map(|it| {
        let metadata = &it["metadata"];
        let name = format!(
            "{} {} {}",
            it["kind"], metadata["namespace"], metadata["name"]
        );
        (name, it)
    });
    named.collect()
}

#[test]
fn the_templates_are_what_generate_manager_prints_for_every_choice_of_providers() {
    let templates = templates::all(Older::default()).unwrap();
    for bits in 1_u8..16 {
        let (clouds, issuer) = match bits.count_ones() % 2 {
            0 => ("", Issuer::Manager),
            _ => ("clouds", Issuer::CertManager),
        };
        let chosen = Provider::ALL.into_iter().enumerate();
        let chosen = chosen.filter(|(at, _)| bits & (1 << at) != 0);
        let values = Values {
            providers: chosen.map(|(_, provider)| provider).collect(),
            clouds,
            issuer,
        };
        let mut rendered = Vec::new();
        for template in &templates {
            let text = values.render(&template.text);
            let documents = serde_saphyr::from_multiple::<Value>(&text);
            rendered.extend(documents.unwrap_or_else(|error| panic!("{error}: {text}")));
        }
        let clouds = Some(clouds).filter(|it| !it.is_empty());
        let subset = values.subset();
        let text = manifests::render_by(&subset, NAMESPACE, Some(IMAGE), clouds, issuer).unwrap();
        let mut expected = by_name(serde_saphyr::from_multiple(&text).unwrap());
        // Helm creates it.
        expected
            .remove(&format!("\"Namespace\" null \"{NAMESPACE}\""))
            .unwrap();
        let rendered = by_name(rendered);
        assert!(
            rendered.keys().eq(expected.keys()),
            "{:?} {:?}",
            rendered.keys(),
            expected.keys()
        );
        for (name, document) in rendered {
            assert_eq!(document, expected[&name], "{name}");
        }
    }
}

/// The keys of maps with further keys, with points between their parts.
fn keys(path: &str, value: &Value, below: impl Fn(&Value) -> Option<&Value> + Copy) -> Vec<String> {
    let map = below(value).and_then(Value::as_object);
    let entries = map.into_iter().flatten().flat_map(|(name, value)| {
        let path = format!("{path}.{name}");
        let inner = keys(&path, value, below);
        match inner.is_empty() {
            true => vec![path],
            false => inner,
        }
    });
    entries.collect()
}

#[test]
fn every_value_is_in_the_schema_and_on_the_page_and_has_a_comment() {
    let [(_, values), (_, schema), ..] = FILES;
    let schema: Value = serde_json::from_str(schema).unwrap();
    let mut known = keys("", &schema, |it| {
        let closed = it["additionalProperties"] == false;
        it.get("properties")
            .filter(|_| closed && it["properties"]["limits"].is_null())
    });
    known.retain(|it| it != ".global");
    known.sort();
    let parsed: Value = serde_saphyr::from_str(values).unwrap();
    let mut given = keys("", &parsed, |it| {
        Some(it).filter(|it| it["limits"].is_null())
    });
    given.sort();
    assert_eq!(known, given);
    let page = include_str!("../../../../docs/guides/helm.md");
    for key in &given {
        let key = key.trim_start_matches('.');
        assert!(page.contains(&format!("| `{key}` |")), "{key}");
        let last = key.rsplit('.').next().unwrap();
        let lines: Vec<&str> = values.lines().collect();
        let documented = lines.windows(2).any(|pair| {
            pair[0].trim_start().starts_with("# ")
                && pair[1].trim_start().starts_with(&format!("{last}:"))
        });
        assert!(documented, "{key}");
    }
}

fn written(directory: &Path) -> anyhow::Result<()> {
    write(directory, Older::default(), |_| {})
}

#[test]
fn a_chart_is_written_over_one_of_its_own_alone() {
    let directory = tempfile::tempdir().unwrap();
    let chart = directory.path().join("chart");
    written(&chart).unwrap();
    written(&chart).unwrap();
    let about = fs::read_to_string(chart.join(CHART)).unwrap();
    assert!(
        about.contains(concat!("\nversion: ", env!("CARGO_PKG_VERSION"), "\n")),
        "{about}"
    );
    let stale = chart.join("templates/crds/gone.yaml");
    fs::write(&stale, "").unwrap();
    let error = written(&chart).unwrap_err().to_string();
    assert!(
        error.contains("gone.yaml is not a template of this version"),
        "{error}"
    );
    let other = directory.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join(CHART), "name: other\n").unwrap();
    let error = written(&other).unwrap_err().to_string();
    assert!(error.contains("is no chart of ferrostack"), "{error}");
    assert_eq!(fs::read_dir(&other).unwrap().count(), 1);
}
