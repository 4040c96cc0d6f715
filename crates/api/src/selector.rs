//! Matching of [`LabelSelector`]s, with the semantics of apimachinery's `LabelSelectorAsSelector` and
//! `FormatLabelSelector`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// True if `selector` matches the labels. An empty selector matches everything; the meaning of an absent one is up to
/// the caller. An unknown operator matches nothing.
pub fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let mut exact = selector.match_labels.iter().flatten();
    let mut expressions = selector.match_expressions.iter().flatten();
    exact.all(|(name, value)| labels.get(name) == Some(value))
        && expressions.all(|expression| holds(expression, labels))
}

/// True if the [`LabelSelector`] has no requirements.
pub fn is_empty(selector: &LabelSelector) -> bool {
    let exact = selector.match_labels.iter().flatten().next();
    let expression = selector.match_expressions.iter().flatten().next();
    exact.is_none() && expression.is_none()
}

/// [`LabelSelector`] as a query, as in the scale subresource.
pub fn to_query(selector: &LabelSelector) -> String {
    let exact = selector.match_labels.iter().flatten();
    let exact = exact.map(|(name, value)| format!("{name}={value}"));
    let expressions = selector.match_expressions.iter().flatten();
    let expressions = expressions.map(|expression| {
        let key = &expression.key;
        let values = expression.values.as_deref().unwrap_or_default().join(",");
        match expression.operator.as_str() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.clone(),
        }
    });
    exact.chain(expressions).collect::<Vec<_>>().join(",")
}

fn holds(expression: &LabelSelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let value = labels.get(&expression.key);
    let is_listed = |value: &String| {
        let values = expression.values.as_deref().unwrap_or_default();
        values.contains(value)
    };
    match expression.operator.as_str() {
        "In" => value.is_some_and(is_listed),
        "NotIn" => !value.is_some_and(is_listed),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
