//! Vague names: hard to search, because each has several meanings.

/// Vague words, alone or beside one other word. Names of tests are sentences.
const VAGUE: [&str; 6] = ["told", "said", "made", "shown", "own", "hold"];
/// Keywords of declarations.
const KEYWORDS: [&str; 7] = ["let", "fn", "struct", "enum", "mod", "trait", "const"];

/// First vague name declared in a line of a source.
pub(super) fn vague(line: &str) -> Option<&str> {
    let code = line.split("//").next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: Vec<&str> = code
        .split(|c| !is_name(c))
        .filter(|word| !word.is_empty() && *word != "mut")
        .collect();
    let mut pairs = words.windows(2);
    pairs.find_map(|pair| match pair {
        [keyword, name] if KEYWORDS.contains(keyword) && is_vague(name) => Some(*name),
        _ => None,
    })
}

fn is_vague(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let mut parts = lower.split('_');
    lower.matches('_').count() < 2 && parts.any(|part| VAGUE.contains(&part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vague_name_is_found_where_it_is_declared() {
        for (line, name) in [
            ("    let said = world.answer();", Some("said")),
            ("    let mut made = Vec::new();", Some("made")),
            (
                "fn own_labels(deployment: &D) -> Labels {",
                Some("own_labels"),
            ),
            ("enum Told {", Some("Told")),
            ("async fn shown<T>(value: T) -> String {", Some("shown")),
            ("    let owner = object.owner(); // said before", None),
            ("fn volumes_are_made_listed_and_deleted() {", None),
            ("    let holder = lease.holder;", None),
            ("// let said = 1;", None),
        ] {
            assert_eq!(vague(line), name, "{line}");
        }
    }
}
