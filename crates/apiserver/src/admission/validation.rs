//! Validation of webhook configurations (`pkg/apis/admissionregistration/validation` of Kubernetes).

use apimachinery::kinds::Resource;
use apimachinery::names::{label_key_problems, label_value_problems, subdomain_problems};
use apimachinery::schema::{Condition, FieldError};
use apimachinery::value::{slice, text};
use serde_json::{Value, json};

use crate::webhook::check_client_config;

/// Validates a configuration; other kinds have no errors. `old` is the stored object on an update.
pub(crate) fn validate(resource: &Resource, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mutating = match resource.kind.as_str() {
        "MutatingWebhookConfiguration" => true,
        "ValidatingWebhookConfiguration" => false,
        _ => return errors,
    };
    if resource.is_custom() {
        return errors;
    }
    let mut names = Vec::new();
    for (index, hook) in slice(&new["webhooks"]).iter().enumerate() {
        let path = format!("webhooks[{index}]");
        let before = old.map(|old| &old["webhooks"]);
        self::hook(hook, mutating, before, &path, &mut errors);
        let name = text(&hook["name"]);
        if !name.is_empty() {
            if names.contains(&name) {
                errors.push(FieldError::duplicate(format!("{path}.name"), &hook["name"]));
            } else {
                names.push(name);
            }
        }
    }
    errors
}

fn hook(
    hook: &Value,
    mutating: bool,
    before: Option<&Value>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let at = |field: &str| format!("{path}.{field}");
    qualified(&at("name"), &hook["name"], errors);
    for (index, given) in slice(&hook["rules"]).iter().enumerate() {
        rule(given, &format!("{path}.rules[{index}]"), errors);
    }
    let mut one_of = |field: &str, known: &[&str]| {
        if !hook[field].is_null() && !known.contains(&text(&hook[field])) {
            let known: Vec<String> = known.iter().map(|one| (*one).to_owned()).collect();
            errors.push(FieldError::not_supported(at(field), &hook[field], &known));
        }
    };
    one_of("failurePolicy", &["Fail", "Ignore"]);
    one_of("matchPolicy", &["Equivalent", "Exact"]);
    one_of("sideEffects", &["None", "NoneOnDryRun"]);
    if hook["sideEffects"].is_null() {
        let detail = "must specify one of None, NoneOnDryRun";
        errors.push(FieldError::required(at("sideEffects"), detail));
    }
    if let Some(seconds) = hook["timeoutSeconds"].as_i64()
        && !(1..=30).contains(&seconds)
    {
        let detail = "the timeout value must be between 1 and 30 seconds";
        let value = &hook["timeoutSeconds"];
        errors.push(FieldError::invalid(at("timeoutSeconds"), value, detail));
    }
    for field in ["namespaceSelector", "objectSelector"] {
        selector(&hook[field], &at(field), errors);
    }
    let reinvocation = &hook["reinvocationPolicy"];
    if mutating && !reinvocation.is_null() && !matches!(text(reinvocation), "Never" | "IfNeeded") {
        let known = ["IfNeeded", "Never"].map(str::to_owned);
        let path = at("reinvocationPolicy");
        errors.push(FieldError::not_supported(path, reinvocation, &known));
    }
    check_client_config(&hook["clientConfig"], &at("clientConfig"), errors);
    conditions(hook, before, &at("matchConditions"), errors);
    review_versions(
        &hook["admissionReviewVersions"],
        &at("admissionReviewVersions"),
        errors,
    );
}

fn qualified(path: &str, name: &Value, errors: &mut Vec<FieldError>) {
    let given = text(name);
    if given.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let problems = subdomain_problems(given);
    if !problems.is_empty() {
        errors.push(FieldError::invalid(path, name, problems.join(",")));
    } else if given.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.push(FieldError::invalid(path, name, detail));
    }
}

fn rule(rule: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
    let at = |field: &str| format!("{path}.{field}");
    list(rule, "operations", "operations", path, errors);
    for (index, operation) in slice(&rule["operations"]).iter().enumerate() {
        if !OPERATIONS.contains(&text(operation)) {
            let path = format!("{path}.operations[{index}]");
            let known = OPERATIONS.map(str::to_owned);
            errors.push(FieldError::not_supported(path, operation, &known));
        }
    }
    list(rule, "apiGroups", "API groups", path, errors);
    list(rule, "apiVersions", "API versions", path, errors);
    for (index, version) in slice(&rule["apiVersions"]).iter().enumerate() {
        if text(version).is_empty() {
            let path = format!("{path}.apiVersions[{index}]");
            errors.push(FieldError::required(path, ""));
        }
    }
    resources(&rule["resources"], &at("resources"), errors);
    let scope = &rule["scope"];
    if !scope.is_null() && !matches!(text(scope), "*" | "Cluster" | "Namespaced") {
        let known = ["*", "Cluster", "Namespaced"].map(str::to_owned);
        errors.push(FieldError::not_supported(at("scope"), scope, &known));
    }
}

/// Checks that a list is not empty, and that `*` is the only item where it occurs.
fn list(rule: &Value, field: &str, what: &str, path: &str, errors: &mut Vec<FieldError>) {
    let path = format!("{path}.{field}");
    let given = slice(&rule[field]);
    if given.is_empty() {
        errors.push(FieldError::required(path.as_str(), ""));
    }
    if given.len() > 1 && given.iter().any(|one| one == "*") {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.push(FieldError::invalid(path, &rule[field], detail));
    }
}

fn resources(given: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let list = slice(given);
    if list.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    let (mut all_of, mut of_all) = (Vec::new(), Vec::new());
    for (index, one) in list.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let name = text(one);
        if name.is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        let Some((resource, subresource)) = name.split_once('/') else {
            continue;
        };
        if all_of.contains(&resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {name}");
            errors.push(FieldError::invalid(path.as_str(), one, detail));
        }
        if of_all.contains(&subresource) {
            let detail = format!("if '*/{subresource}' is present, must not specify {name}");
            errors.push(FieldError::invalid(path, one, detail));
        }
        if subresource == "*" {
            all_of.push(resource);
        }
        if resource == "*" {
            of_all.push(subresource);
        }
    }
    if list.len() > 1 && list.iter().any(|one| one == "*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.push(FieldError::invalid(path, given, detail));
    }
    let whole = |one: &Value| !text(one).is_empty() && one != "*" && !text(one).contains('/');
    // As in kube-apiserver, the last item without a subresource decides.
    let last = list
        .iter()
        .rfind(|one| !text(one).contains('/') && !text(one).is_empty());
    if list.iter().any(|one| one == "*") && last.is_some_and(whole) {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(path, given, detail));
    }
}

fn selector(selector: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        let path = format!("{path}.matchLabels");
        for problem in label_key_problems(key) {
            errors.push(FieldError::invalid(path.as_str(), &json!(key), problem));
        }
        for problem in label_value_problems(text(value)) {
            errors.push(FieldError::invalid(path.as_str(), value, problem));
        }
    }
    for (index, expression) in slice(&selector["matchExpressions"]).iter().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        let operator = &expression["operator"];
        let empty = slice(&expression["values"]).is_empty();
        match text(operator) {
            "In" | "NotIn" if empty => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(format!("{path}.values"), detail));
            }
            "Exists" | "DoesNotExist" if !empty => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(format!("{path}.values"), detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => {
                let detail = "not a valid selector operator";
                let path = format!("{path}.operator");
                errors.push(FieldError::invalid(path, operator, detail));
            }
        }
        for problem in label_key_problems(text(&expression["key"])) {
            let path = format!("{path}.key");
            errors.push(FieldError::invalid(path, &expression["key"], problem));
        }
    }
}

fn conditions(hook: &Value, before: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    let given = &hook["matchConditions"];
    // Unchanged conditions are not compiled again.
    let same = |old: &Value| old["name"] == hook["name"] && old["matchConditions"] == *given;
    if before.is_some_and(|before| slice(before).iter().any(same)) {
        return;
    }
    let list = slice(given);
    if list.len() > 64 {
        errors.push(FieldError::too_many(
            path,
            i64::try_from(list.len()).unwrap_or(i64::MAX),
            64,
        ));
    }
    let mut names = Vec::new();
    for (index, condition) in list.iter().enumerate() {
        let at = |field: &str| format!("{path}[{index}].{field}");
        let expression = text(&condition["expression"]).trim();
        if expression.is_empty() {
            errors.push(FieldError::required(at("expression"), ""));
        } else if let Some(why) = Condition::new(expression).problem() {
            let detail = format!("compilation failed: {why}");
            let value = Value::from(expression);
            errors.push(FieldError::invalid(at("expression"), &value, detail));
        }
        let name = text(&condition["name"]);
        if name.is_empty() {
            errors.push(FieldError::required(at("name"), ""));
            continue;
        }
        for problem in label_key_problems(name) {
            errors.push(FieldError::invalid(at("name"), &condition["name"], problem));
        }
        if names.contains(&name) {
            errors.push(FieldError::duplicate(at("name"), &condition["name"]));
        } else {
            names.push(name);
        }
    }
}

fn review_versions(given: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let list = slice(given);
    if list.is_empty() {
        errors.push(FieldError::required(
            path,
            "must specify one of v1, v1beta1",
        ));
        return;
    }
    let mut seen = Vec::new();
    for (index, version) in list.iter().enumerate() {
        let path = format!("{path}[{index}]");
        if seen.contains(&version) {
            errors.push(FieldError::invalid(path, version, "duplicate version"));
            continue;
        }
        seen.push(version);
        let name = text(version);
        let fits = name.starts_with(|c: char| c.is_ascii_lowercase())
            && !name.ends_with('-')
            && name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !fits {
            let detail = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
            errors.push(FieldError::invalid(path, version, detail));
        }
    }
    if !list.iter().any(|one| one == "v1" || one == "v1beta1") {
        let detail = "must include at least one of v1, v1beta1";
        errors.push(FieldError::invalid(path, given, detail));
    }
}
