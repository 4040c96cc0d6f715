//! Generated names.

use rand::Rng;
use sha2::{Digest, Sha256};

/// Characters of generated names, as in Kubernetes: no vowels, and no characters that are easily confused.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// A name must be a valid label value and host name.
const LONGEST: usize = 63;
const SUFFIX: usize = 5;
const DERIVED: usize = 8;

/// Five random characters.
pub(crate) fn suffix() -> String {
    let mut random = rand::rng();
    (0..SUFFIX)
        .map(|_| char::from(ALPHABET[random.random_range(0..ALPHABET.len())]))
        .collect()
}

/// Eight characters that are the same for the same `parts`, for an object that is not to be created twice.
pub(crate) fn derived(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    let bytes = digest.finalize();
    let characters = bytes.iter().take(DERIVED);
    characters
        .map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]))
        .collect()
}

/// `<base>-<suffix>`, with `base` truncated to the maximum length of a label value.
pub(crate) fn with_suffix(base: &str, suffix: &str) -> String {
    let room = LONGEST.saturating_sub(suffix.len() + 1);
    let end = (0..=room.min(base.len()))
        .rev()
        .find(|at| base.is_char_boundary(*at))
        .unwrap_or(0);
    format!("{}-{suffix}", base[..end].trim_end_matches(['-', '.']))
}

/// `name` truncated to the maximum length of a label value.
pub(crate) fn shortened(name: &str) -> String {
    let end = (0..=LONGEST.min(name.len()))
        .rev()
        .find(|at| name.is_char_boundary(*at));
    name[..end.unwrap_or(0)]
        .trim_end_matches(['-', '.', '_'])
        .to_owned()
}

/// Renders a naming template, such as `{{ .machineSet.name }}-{{ .random }}`, with the given values. `None` for any
/// other value, without `.random` (all machines would have the same name), or for too long a name.
pub(crate) fn render(template: &str, values: &[(&str, &str)]) -> Option<String> {
    let mut name = String::new();
    let mut random = false;
    let mut rest = template;
    while let Some((before, tail)) = rest.split_once("{{") {
        let (key, after) = tail.split_once("}}")?;
        let key = key.trim_matches(|c: char| c.is_whitespace() || c == '-');
        let (_, value) = values.iter().find(|(known, _)| *known == key)?;
        random |= key == ".random";
        name.push_str(before);
        name.push_str(value);
        rest = after;
    }
    name.push_str(rest);
    (random && name.len() <= LONGEST).then_some(name)
}

#[cfg(test)]
mod tests;
