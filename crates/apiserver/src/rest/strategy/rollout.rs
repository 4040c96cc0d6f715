//! Rules of update strategies (`pkg/apis/apps/validation` of Kubernetes).

use apimachinery::schema::{FieldError, Reason, go_json};
use serde_json::{Value, json};

/// Violations in the update strategy of a workload.
pub(super) fn rules(kind: &str, spec: &Value, errors: &mut Vec<FieldError>) {
    match kind {
        "Deployment" => deployment(&spec["strategy"], errors),
        "DaemonSet" => daemon_set(&spec["updateStrategy"], errors),
        "StatefulSet" => stateful_set(&spec["updateStrategy"], errors),
        _ => {}
    }
}

fn deployment(strategy: &Value, errors: &mut Vec<FieldError>) {
    const PATH: &str = "spec.strategy";
    const DETAILS: &str = "spec.strategy.rollingUpdate";
    let details = &strategy["rollingUpdate"];
    match strategy["type"].as_str() {
        Some("Recreate") if details.is_null() => {}
        Some("Recreate") => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            errors.push(FieldError::forbidden(DETAILS, why));
        }
        Some("RollingUpdate") => {
            for field in ["maxUnavailable", "maxSurge"] {
                errors.extend(amount(DETAILS, field, &details[field]));
            }
            let unavailable = &details["maxUnavailable"];
            let path = format!("{DETAILS}.maxUnavailable");
            if number(unavailable) == 0 && number(&details["maxSurge"]) == 0 {
                let why = "may not be 0 when `maxSurge` is 0";
                errors.push(FieldError::invalid(path.as_str(), unavailable, why));
            }
            errors.extend(over_all(DETAILS, "maxUnavailable", unavailable));
        }
        _ => {
            let printed = printed(strategy, &rolling(details));
            let known = "\"Recreate\", \"RollingUpdate\"";
            errors.push(unsupported(PATH, &printed, known));
        }
    }
}

fn daemon_set(strategy: &Value, errors: &mut Vec<FieldError>) {
    const PATH: &str = "spec.updateStrategy";
    const DETAILS: &str = "spec.updateStrategy.rollingUpdate";
    let details = &strategy["rollingUpdate"];
    match strategy["type"].as_str() {
        Some("OnDelete") => {}
        Some("RollingUpdate") => {
            let fields = ["maxUnavailable", "maxSurge"];
            for check in [amount, over_all] {
                errors.extend(
                    fields
                        .iter()
                        .filter_map(|field| check(DETAILS, field, &details[*field])),
                );
            }
            match fields.map(|field| number(&details[field]) != 0) {
                [true, true] => {
                    let why = "may not be set when maxUnavailable is non-zero";
                    let path = format!("{DETAILS}.maxSurge");
                    errors.push(FieldError::invalid(path, &details["maxSurge"], why));
                }
                [false, false] => {
                    let path = format!("{DETAILS}.maxUnavailable");
                    let why = "cannot be 0 when maxSurge is 0";
                    errors.push(FieldError::required(path, why));
                }
                _ => {}
            }
        }
        _ => {
            let printed = printed(strategy, &rolling(details));
            errors.push(unsupported(
                PATH,
                &printed,
                "\"RollingUpdate\", \"OnDelete\"",
            ));
        }
    }
}

fn stateful_set(strategy: &Value, errors: &mut Vec<FieldError>) {
    const PATH: &str = "spec.updateStrategy";
    const DETAILS: &str = "spec.updateStrategy.rollingUpdate";
    let details = &strategy["rollingUpdate"];
    let details_printed = match details.is_null() {
        true => "null".to_owned(),
        false => format!(
            "{{\"Partition\":{},\"MaxUnavailable\":{}}}",
            details["partition"].as_i64().unwrap_or(0),
            go_json(&details["maxUnavailable"])
        ),
    };
    match strategy["type"].as_str() {
        Some("OnDelete") if details.is_null() => {}
        Some("OnDelete") => {
            let why = "only allowed for updateStrategy 'RollingUpdate'";
            errors.push(invalid(DETAILS, &details_printed, why));
        }
        Some("RollingUpdate") => {
            if details["partition"].as_i64().is_some_and(|count| count < 0) {
                let path = format!("{DETAILS}.partition");
                let why = "must be greater than or equal to 0";
                errors.push(FieldError::invalid(path, &details["partition"], why));
            }
        }
        _ => {
            let why = "must be 'RollingUpdate' or 'OnDelete'";
            errors.push(invalid(PATH, &printed(strategy, &details_printed), why));
        }
    }
}

/// Violation of an amount: must be a number or a percentage.
fn amount(at: &str, field: &str, value: &Value) -> Option<FieldError> {
    let why = match value {
        Value::Number(_) if number(value) < 0 => "must be greater than or equal to 0",
        Value::String(_) if percentage(value).is_none() => {
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
        }
        _ => return None,
    };
    Some(FieldError::invalid(format!("{at}.{field}"), value, why))
}

fn over_all(at: &str, field: &str, value: &Value) -> Option<FieldError> {
    let why = "must not be greater than 100%";
    let over = percentage(value).is_some_and(|percent| percent > 100);
    over.then(|| FieldError::invalid(format!("{at}.{field}"), value, why))
}

fn percentage(value: &Value) -> Option<i64> {
    let digits = value.as_str()?.strip_suffix('%')?;
    let numeric = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    numeric.then(|| digits.parse().unwrap_or(i64::MAX))
}

/// Number of an amount or a percentage; any other text counts as 0.
fn number(value: &Value) -> i64 {
    let text = || value.as_str().and_then(|text| text.parse().ok());
    let number = value.as_i64().or_else(|| percentage(value));
    number.or_else(text).unwrap_or(0)
}

/// Strategy in the print format of kube-apiserver's internal type.
fn printed(strategy: &Value, details: &str) -> String {
    format!(
        "{{\"Type\":{},\"RollingUpdate\":{details}}}",
        go_json(&strategy["type"])
    )
}

fn rolling(details: &Value) -> String {
    if details.is_null() {
        return "null".to_owned();
    }
    let zero = json!(0);
    let printed = |field: &str| go_json(details.get(field).unwrap_or(&zero));
    format!(
        "{{\"MaxUnavailable\":{},\"MaxSurge\":{}}}",
        printed("maxUnavailable"),
        printed("maxSurge")
    )
}

fn unsupported(path: &str, printed: &str, known: &str) -> FieldError {
    FieldError {
        path: path.to_owned(),
        message: format!("Unsupported value: {printed}: supported values: {known}"),
        reason: Reason::NotSupported,
    }
}

fn invalid(path: &str, printed: &str, why: &str) -> FieldError {
    FieldError {
        path: path.to_owned(),
        message: format!("Invalid value: {printed}: {why}"),
        reason: Reason::Invalid,
    }
}
