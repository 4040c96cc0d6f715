//! Warning headers of an answer: each text once, truncated beyond the limits of kube-apiserver.
//!
//! Source of the limits: `pkg/endpoints/filters/warning.go` of `k8s.io/apiserver`.

use std::collections::HashSet;

/// Total length in characters above which warnings are truncated.
const ALL: usize = 4 * 1024;
/// Length in characters of a truncated warning.
const ONE: usize = 256;

/// Warnings collected for an answer.
#[derive(Debug, Default)]
pub(crate) struct Warnings(pub(crate) Vec<String>);

impl Warnings {
    /// Texts of the headers.
    pub(crate) fn into_headers(self) -> Vec<String> {
        let mut seen = HashSet::new();
        let mut all = self.0;
        all.retain(|text| !text.is_empty() && seen.insert(text.clone()));
        let mut length = 0;
        let exceeding = all.iter().position(|text| {
            length += text.chars().count();
            length > ALL
        });
        let Some(exceeding) = exceeding else {
            return all;
        };
        let mut written = 0;
        let cut = all.iter().enumerate().map_while(|(index, text)| {
            let fits = index <= exceeding || written < ALL;
            fits.then(|| {
                let text: String = text.chars().take(ONE).collect();
                written += text.chars().count();
                text
            })
        });
        cut.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(texts: impl IntoIterator<Item = String>) -> Vec<String> {
        Warnings(texts.into_iter().collect()).into_headers()
    }

    #[test]
    fn warnings_are_sent_once_and_whole_while_they_are_few() {
        let texts = ["a", "b", "", "a"].map(str::to_owned);
        assert_eq!(sent(texts), ["a", "b"]);
        let long = "x".repeat(ALL);
        assert_eq!(sent([long.clone()]), [long]);
    }

    #[test]
    fn many_or_long_warnings_are_truncated() {
        let long = |n: usize| format!("{n} {}", "ä".repeat(1_000_000));
        let texts = sent((0..100).map(long));
        assert_eq!(texts.len(), ALL / ONE);
        assert!(texts.iter().all(|text| text.chars().count() == ONE));
        let short = sent((0..5000).map(|n| format!("field {n}")));
        assert!(short.iter().map(String::len).sum::<usize>() < ALL + ONE);
    }
}
