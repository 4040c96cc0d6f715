//! Validation of `clientConfig` (`k8s.io/apiserver/pkg/util/webhook/validation.go`).

use apimachinery::names::subdomain_problems;
use apimachinery::schema::FieldError;
use serde_json::Value;

/// Requires exactly one of URL and Service, and a valid one.
pub(crate) fn check_client_config(config: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let (url, service) = (&config["url"], &config["service"]);
    if url.is_null() == service.is_null() {
        let detail = "exactly one of url or service is required";
        errors.push(FieldError::required(path, detail));
    } else if url.is_null() {
        check_service(service, &format!("{path}.service"), errors);
    } else {
        check_url(url, &format!("{path}.url"), errors);
    }
}

fn check_url(url: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const FORM: &str = "; desired format: https://host[/path]";
    let text = url.as_str().unwrap_or_default();
    let mut refuse = |value: &str, detail: String| {
        errors.push(FieldError::invalid(path, &Value::from(value), detail));
    };
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (text, query) = text.split_once('?').unwrap_or((text, ""));
    let (scheme, rest) = text.split_once("://").unwrap_or(("", ""));
    if scheme != "https" {
        refuse(
            scheme,
            format!("'https' is the only allowed URL scheme{FORM}"),
        );
    }
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if host.is_empty() {
        refuse(host, format!("host must be specified{FORM}"));
    }
    for (given, detail) in [
        (user, "user information is not permitted in the URL"),
        (fragment, "fragments are not permitted in the URL"),
        (query, "query parameters are not permitted in the URL"),
    ] {
        if !given.is_empty() {
            refuse(given, detail.to_owned());
        }
    }
}

fn check_service(service: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let text = |field: &str| service[field].as_str().unwrap_or_default();
    // kube-apiserver confuses the two names.
    for (field, named) in [("namespace", "name"), ("name", "namespace")] {
        if text(field).is_empty() {
            errors.push(FieldError::required(format!("{path}.{named}"), ""));
        }
    }
    let port = &service["port"];
    if port
        .as_i64()
        .is_some_and(|port| !(1..=65535).contains(&port))
    {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(format!("{path}.port"), port, detail));
    }
    let given = text("path");
    if given.is_empty() || given == "/" {
        return;
    }
    let mut refuse = |detail: String| {
        let path = format!("{path}.path");
        errors.push(FieldError::invalid(path, &service["path"], detail));
    };
    if given == "//" {
        refuse("segment[0] may not be empty".to_owned());
        return;
    }
    if !given.starts_with('/') {
        refuse("must start with a '/'".to_owned());
    }
    let mut rest = given.chars();
    rest.next();
    let rest = rest.as_str();
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    for (index, segment) in rest.split('/').enumerate() {
        if segment.is_empty() {
            refuse(format!("segment[{index}] may not be empty"));
            continue;
        }
        for problem in subdomain_problems(segment) {
            refuse(format!("segment[{index}]: {problem}"));
        }
    }
}
