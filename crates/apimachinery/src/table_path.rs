//! The JSONPath of printer columns (`k8s.io/client-go/util/jsonpath`): `.a.b`, `['c']`, `[0]`, `[*]`,
//! `[?(@.type=="Ready")]`.
//!
//! It is older than RFC 9535, and no subset: crates for the RFC refuse a key with a hyphen or an escaped dot, as in
//! `.spec.f-g` and `.metadata.annotations.example\.com/x`.

use serde_json::Value;

/// Returns all values that `path` selects in `value`. A malformed path selects none.
pub(crate) fn find<'a>(value: &'a Value, path: &str) -> Vec<&'a Value> {
    let path = path
        .trim()
        .trim_start_matches('{')
        .trim_end_matches('}')
        .trim_start_matches('$');
    let mut found = vec![value];
    let mut rest = path;
    while !rest.is_empty() && !found.is_empty() {
        let Some((step, tail)) = step(rest) else {
            return Vec::new();
        };
        found = found
            .into_iter()
            .flat_map(|value| apply(&step, value))
            .collect();
        rest = tail;
    }
    found
}

enum Step<'p> {
    Field(String),
    /// Quoted text in brackets. client-go parses the text as a path again, so dots in a key are escaped here, too:
    /// `.metadata.labels['cluster\.x-k8s\.io/cluster-name']`.
    Quoted(&'p str),
    Index(i64),
    All,
    /// Items with a field that equals, or does not equal, a text.
    Where {
        path: &'p str,
        equal: bool,
        text: &'p str,
    },
}

fn step(path: &str) -> Option<(Step<'_>, &str)> {
    if let Some(rest) = path.strip_prefix('.') {
        if rest.starts_with('[') {
            return step(rest);
        }
        let mut name = String::new();
        let mut characters = rest.char_indices();
        let mut end = rest.len();
        while let Some((at, c)) = characters.next() {
            match c {
                // A dot in a key is escaped: `.metadata.annotations.example\.com/x`.
                '\\' => name.extend(characters.next().map(|(_, c)| c)),
                '.' | '[' => {
                    end = at;
                    break;
                }
                c => name.push(c),
            }
        }
        let step = if name == "*" {
            Step::All
        } else {
            Step::Field(name)
        };
        return Some((step, &rest[end..]));
    }
    if path.starts_with("[?(") {
        let end = path.find(")]")?;
        return Some((filter(&path[3..end])?, &path[end + 2..]));
    }
    if let Some(rest) = path.strip_prefix('[') {
        let end = rest.find(']')?;
        let inside = rest[..end].trim();
        let tail = &rest[end + 1..];
        if inside == "*" {
            return Some((Step::All, tail));
        }
        if let Some(name) = unquoted(inside) {
            return Some((Step::Quoted(name), tail));
        }
        return Some((Step::Index(inside.parse().ok()?), tail));
    }
    let end = path.find(['.', '[']).unwrap_or(path.len());
    Some((Step::Field(path[..end].to_owned()), &path[end..]))
}

fn filter(text: &str) -> Option<Step<'_>> {
    let (path, equal, text) = match text.split_once("==") {
        Some((path, text)) => (path, true, text),
        None => {
            let (path, text) = text.split_once("!=")?;
            (path, false, text)
        }
    };
    let text = text.trim();
    Some(Step::Where {
        path: path.trim().strip_prefix('@')?,
        equal,
        text: unquoted(text).unwrap_or(text),
    })
}

fn unquoted(text: &str) -> Option<&str> {
    ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
}

fn apply<'a>(step: &Step<'_>, value: &'a Value) -> Vec<&'a Value> {
    match step {
        Step::Field(name) => value.get(name).into_iter().collect(),
        Step::Quoted(path) => find(value, &format!(".{path}")),
        Step::Index(index) => {
            let items = value.as_array().map_or(&[][..], Vec::as_slice);
            let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
            let at = if *index < 0 { length + index } else { *index };
            usize::try_from(at)
                .ok()
                .and_then(|at| items.get(at))
                .into_iter()
                .collect()
        }
        Step::All => match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(fields) => fields.values().collect(),
            _ => Vec::new(),
        },
        Step::Where { path, equal, text } => {
            let items = value.as_array().into_iter().flatten();
            let matches = |item: &&Value| {
                let is = find(item, path).first().is_some_and(|found| match found {
                    Value::String(found) => found == text,
                    other => &other.to_string() == text,
                });
                is == *equal
            };
            items.filter(matches).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_selects_the_same_values_as_in_client_go() {
        let object = json!({
            "metadata": {"labels": {"cluster.x-k8s.io/cluster-name": "demo", "plain": "p"}},
            "owners": [{"kind": "A", "name": "a"}, {"kind": "Cluster", "name": "b"}],
        });
        for (path, expected) in [
            (".metadata.labels.plain", vec!["p"]),
            (
                r".metadata.labels.cluster\.x-k8s\.io/cluster-name",
                vec!["demo"],
            ),
            (
                r".metadata.labels['cluster\.x-k8s\.io/cluster-name']",
                vec!["demo"],
            ),
            ("{.metadata.labels['plain']}", vec!["p"]),
            (r#".owners[?(@.kind=="Cluster")].name"#, vec!["b"]),
            (".owners[*].name", vec!["a", "b"]),
            (".owners[-1].name", vec!["b"]),
            (".owners[7].name", vec![]),
            (".owners[", vec![]),
            (".nothing.here", vec![]),
        ] {
            assert_eq!(find(&object, path), expected, "{path}");
        }
    }
}
