//! Validation of label keys and values (`k8s.io/apimachinery/pkg/api/validate/content`).

const KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start \
                        and end with an alphanumeric character";
const KEY_REGEX: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

/// Returns the violations of a label key, or of any other qualified name.
pub fn label_key_problems(key: &str) -> Vec<String> {
    let example = |what: &str| {
        format!(
            "{what} {KEY_RULE} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
             validation is '{KEY_REGEX}')"
        )
    };
    let mut problems = Vec::new();
    let mut parts = key.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            }
            if !prefix.is_empty() {
                let found = subdomain_problems(prefix);
                problems.extend(found.into_iter().map(|p| format!("prefix part {p}")));
            }
            name
        }
        _ => {
            let example = example("a valid label key");
            return vec![format!(
                "{example} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_name(name) {
        problems.push(example("name part"));
    }
    problems
}

/// Returns the violations of a label value.
pub fn label_value_problems(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > 63 {
        problems.push("must be no more than 63 bytes".to_owned());
    }
    if !value.is_empty() && !is_name(value) {
        problems.push(format!(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', \
             '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  \
             or 'my_value',  or '12345', regex used for validation is '({KEY_REGEX})?')"
        ));
    }
    problems
}

/// Returns the violations of a lowercase RFC 1123 subdomain, the form of most object names.
pub fn subdomain_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > 253 {
        problems.push("must be no more than 253 bytes".to_owned());
    }
    let label = |label: &str| {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !label.is_empty()
            && label.chars().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if !name.split('.').all(label) {
        problems.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character (e.g. \
             'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    problems
}

fn is_name(name: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    edge(name.chars().next()) && edge(name.chars().next_back()) && name.chars().all(inner)
}
