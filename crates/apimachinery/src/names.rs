//! Forms of names (`k8s.io/apimachinery/pkg/util/validation`). Each function returns the reasons why a text does not
//! have a form.

mod labels;

pub use labels::{label_key_problems, label_value_problems, subdomain_problems};

/// Returns the problem of a text that is no RFC 1123 subdomain.
pub fn subdomain(name: &str) -> Option<&'static str> {
    if name.len() > 253 {
        return Some("must be no more than 253 characters");
    }
    let fits = name.split('.').all(is_label);
    (!fits).then_some("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")
}

/// Returns the problem of a text that is no RFC 1123 label.
pub fn label(name: &str) -> Option<&'static str> {
    if name.len() > 63 {
        return Some("must be no more than 63 characters");
    }
    (!is_label(name)).then_some("a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")
}

/// Returns the problem of a text that is no RFC 1035 label.
pub(crate) fn label_1035(name: &str) -> Option<String> {
    const LONGEST: usize = 63;
    let mut problems = Vec::new();
    if name.len() > LONGEST {
        problems.push(format!("must be no more than {LONGEST} bytes"));
    }
    if !is_label(name) || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        problems.push("a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')".to_owned());
    }
    (!problems.is_empty()).then(|| problems.join(","))
}

fn is_label(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    let edge = |c: Option<&u8>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let bytes = text.as_bytes();
    bytes.iter().all(|&c| inner(c)) && edge(bytes.first()) && edge(bytes.last())
}

/// Returns the reasons why a text is not a qualified name: `example.com/MyName`, or `MyName` (`IsQualifiedName`).
pub fn unqualified(key: &str) -> Vec<String> {
    const RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    const LONGEST: usize = 63;
    let mut problems = Vec::new();
    let name = match key.split('/').collect::<Vec<_>>().as_slice() {
        [name] => *name,
        ["", name] => {
            problems.push("prefix part must be non-empty".to_owned());
            name
        }
        [prefix, name] => {
            problems
                .extend(subdomain(&prefix.to_lowercase()).map(|why| format!("prefix part {why}")));
            name
        }
        _ => {
            return vec![format!(
                "a qualified name {RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > LONGEST {
        problems.push(format!("name part must be no more than {LONGEST} bytes"));
    }
    if name.is_empty() || !is_label_value(&name[..name.floor_char_boundary(LONGEST)]) {
        problems.push(format!("name part {RULE}"));
    }
    problems
}

/// True for a valid label value, and for a valid name within a qualified name.
pub fn is_label_value(text: &str) -> bool {
    let edge = |c: Option<&u8>| c.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    let inner = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    bytes.len() <= 63 && bytes.iter().all(inner) && edge(bytes.first()) && edge(bytes.last())
}
