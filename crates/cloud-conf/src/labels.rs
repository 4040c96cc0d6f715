//! Labels of nodes in settings (pure).

/// Labels that a node must have; a label without value only needs to exist.
pub type Selector = Vec<(String, Option<String>)>;

/// Maximum length of a part of a label, and of the prefix of its key.
const LONGEST: (usize, usize) = (63, 253);

/// Parses `key=value,key`.
///
/// # Errors
/// The first part that is no label.
pub fn selector(text: &str) -> Result<Selector, &str> {
    let parts = text.split(',').map(str::trim);
    let parts = parts.filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (key, value) = match part.split_once('=') {
                None => (part, None),
                Some((key, value)) => (key.trim(), Some(value.trim())),
            };
            let is_label = is_key(key) && value.is_none_or(is_value);
            let label = (key.to_owned(), value.map(str::to_owned));
            is_label.then_some(label).ok_or(part)
        })
        .collect()
}

/// True for a valid key of a Kubernetes label, with or without a prefix.
fn is_key(text: &str) -> bool {
    let (prefix, name) = match text.split_once('/') {
        None => (None, text),
        Some((prefix, name)) => (Some(prefix), name),
    };
    let is_domain = |prefix: &str| {
        let is_of_domain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_part = |part: &str| is_framed(part) && part.chars().all(is_of_domain);
        prefix.len() <= LONGEST.1 && prefix.split('.').all(is_part)
    };
    !name.is_empty() && is_value(name) && prefix.is_none_or(is_domain)
}

/// True for a valid value of a Kubernetes label, possibly empty.
fn is_value(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.is_empty() || text.len() <= LONGEST.0 && is_framed(text) && text.chars().all(is_inner)
}

/// True if a text begins and ends with a letter or digit.
fn is_framed(text: &str) -> bool {
    let ends = [text.chars().next(), text.chars().next_back()];
    ends.iter()
        .all(|end| end.is_some_and(|c| c.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::selector;

    #[test]
    fn labels_are_those_that_kubernetes_takes() {
        let of = |key: &str, value: Option<&str>| (key.to_owned(), value.map(str::to_owned));
        let all = selector(" a=b, c ,example.com/Pool_1=x.y-z,, d=").unwrap();
        let expected = [
            of("a", Some("b")),
            of("c", None),
            of("example.com/Pool_1", Some("x.y-z")),
            of("d", Some("")),
        ];
        assert_eq!(all, expected);
        assert_eq!(selector(""), Ok(Vec::new()));
        let long = "x".repeat(64);
        for wrong in [
            "=x", "a b=c", "a=b c", "a!=b", "a==b", "a in (b)", "-a", "a-=b", "a=b-", "/a",
            "A.b/c=d", "a/b/c", "a/", "a..b/c", "é=x", &long,
        ] {
            assert_eq!(selector(&format!("ok=1,{wrong}")), Err(wrong));
        }
    }
}
