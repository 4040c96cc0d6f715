//! Label selectors: matching, and as text.

use std::collections::BTreeMap;

use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// Whether `labels` satisfy `selector`. A selector that asks for nothing matches nothing here: a
/// set of machines that forgot its selector must not take over a namespace.
pub(crate) fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let exact = selector.match_labels.iter().flatten();
    let expressions = selector.match_expressions.iter().flatten();
    let asks = exact.clone().next().is_some() || expressions.clone().next().is_some();
    asks && exact
        .into_iter()
        .all(|(name, value)| labels.get(name) == Some(value))
        && expressions.into_iter().all(|expression| {
            let value = labels.get(&expression.key);
            let listed = |value: &String| expression.values.iter().flatten().any(|v| v == value);
            match expression.operator.as_str() {
                "In" => value.is_some_and(listed),
                "NotIn" => !value.is_some_and(listed),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

/// The selector as text, as the scale subresource wants it.
pub(crate) fn text(selector: &LabelSelector) -> String {
    let exact = selector.match_labels.iter().flatten();
    let mut parts: Vec<_> = exact
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    for expression in selector.match_expressions.iter().flatten() {
        let (key, values) = (
            &expression.key,
            expression.values.clone().unwrap_or_default(),
        );
        parts.push(match expression.operator.as_str() {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "DoesNotExist" => format!("!{key}"),
            _ => key.clone(),
        });
    }
    parts.join(",")
}
