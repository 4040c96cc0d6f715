//! Subset of a shell for scripts around kubeadm: variables, `envsubst` and `mv`. Any other line does nothing.

use std::collections::BTreeMap;

/// How a script ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Line with kubeadm, which decides about the rest.
    Kubeadm(String),
    /// End of the script.
    Through,
}

/// Runs `script` under `set -e` on `files`. `environment` is exported.
pub(crate) fn run(
    script: &str,
    files: &mut BTreeMap<String, Vec<u8>>,
    environment: BTreeMap<String, String>,
) -> Result<Ended, String> {
    let mut state = State {
        exported: environment,
        local: BTreeMap::new(),
    };
    for line in script.lines().map(str::trim) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["export", assignment] => {
                if let Some((name, value)) = assignment.split_once('=') {
                    let value = state.expanded(value);
                    state.exported.insert(name.to_owned(), value);
                } else if let Some(value) = state.local.remove(*assignment) {
                    state.exported.insert((*assignment).to_owned(), value);
                }
            }
            ["envsubst", "<", from, ">", to] => {
                let text = String::from_utf8_lossy(read(files, from)?).into_owned();
                let text = substituted(&text, &state.exported);
                files.insert((*to).to_owned(), text.into_bytes());
            }
            ["mv", from, to] => {
                let content = read(files, from)?.to_vec();
                files.remove(*from);
                let name = from.rsplit('/').next().unwrap_or(from);
                let to = match to.ends_with('/') {
                    true => format!("{to}{name}"),
                    false => (*to).to_owned(),
                };
                files.insert(to, content);
            }
            [program, "init" | "join", ..] if program.rsplit('/').next() == Some("kubeadm") => {
                return Ok(Ended::Kubeadm(line.to_owned()));
            }
            [assignment] => {
                let assigned = assignment.split_once('=');
                if let Some((name, value)) = assigned.filter(|(name, _)| is_name(name)) {
                    let value = state.expanded(value);
                    let known = match state.exported.contains_key(name) {
                        true => &mut state.exported,
                        false => &mut state.local,
                    };
                    known.insert(name.to_owned(), value);
                }
            }
            _ => {}
        }
    }
    Ok(Ended::Through)
}

struct State {
    exported: BTreeMap<String, String>,
    local: BTreeMap<String, String>,
}

impl State {
    fn value(&self, name: &str) -> String {
        let value = self.local.get(name).or_else(|| self.exported.get(name));
        value.cloned().unwrap_or_default()
    }

    /// Expands the variables of a word: `$NAME`, `${NAME}`, `${NAME%.*}` and `${NAME%%.*}`.
    fn expanded(&self, word: &str) -> String {
        let word = word.trim_matches(['"', '\'']);
        expand(word, &|inner| {
            let name = inner.split('%').next().unwrap_or(inner);
            if !is_name(name) {
                return None;
            }
            let value = self.value(name);
            Some(match inner.strip_prefix(name) {
                Some("%.*") => value
                    .rsplit_once('.')
                    .map_or(value.clone(), |it| it.0.to_owned()),
                Some("%%.*") => value
                    .split_once('.')
                    .map_or(value.clone(), |it| it.0.to_owned()),
                _ => value,
            })
        })
    }
}

fn read<'a>(files: &'a BTreeMap<String, Vec<u8>>, path: &str) -> Result<&'a [u8], String> {
    let file = files.get(path).map(Vec::as_slice);
    file.ok_or_else(|| format!("{path}: No such file or directory"))
}

fn is_name(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !text.is_empty()
        && text.bytes().all(is_word)
        && !text.starts_with(|it: char| it.is_ascii_digit())
}

/// Implements `envsubst`: exported variables are replaced, others become empty.
fn substituted(text: &str, exported: &BTreeMap<String, String>) -> String {
    expand(text, &|inner| {
        is_name(inner).then(|| exported.get(inner).cloned().unwrap_or_default())
    })
}

/// Replaces `${…}` and `$NAME` by their values from `value`; without a value, the text stays.
fn expand(text: &str, value: &dyn Fn(&str) -> Option<String>) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, after) = rest.split_at(at);
        expanded.push_str(before);
        let after = after.strip_prefix('$').unwrap_or(after);
        let found = match after.strip_prefix('{') {
            Some(braced) => braced.split_once('}'),
            None => {
                let is_end = |it: char| !it.is_ascii_alphanumeric() && it != '_';
                let end = after.find(is_end).unwrap_or(after.len());
                after.split_at_checked(end)
            }
        };
        match found.and_then(|(inner, left)| Some((value(inner)?, left))) {
            Some((value, left)) => {
                expanded.push_str(&value);
                rest = left;
            }
            None => {
                expanded.push('$');
                rest = after;
            }
        }
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
mod tests;
