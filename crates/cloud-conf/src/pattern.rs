//! Selection of subnets by names and tags.

use std::fmt;

use regex::Regex;

/// Pattern of names: a glob with `*` and `?`, or a regular expression after `~`; a leading `!` negates.
#[derive(Clone, Debug)]
pub struct NamePattern {
    regex: Regex,
    is_negated: bool,
}

/// Error of an invalid pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidPattern;

impl fmt::Display for InvalidPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this is neither a name with * and ? nor a regular expression after ~")
    }
}

impl std::error::Error for InvalidPattern {}

impl NamePattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// The regular expression is invalid, or too large to compile.
    pub fn parse(text: &str) -> Result<Self, InvalidPattern> {
        let (is_negated, pattern) = negated(text);
        let pattern = match pattern.strip_prefix('~') {
            Some(regex) => regex.to_owned(),
            None => glob(pattern),
        };
        let regex = Regex::new(&pattern).map_err(|_| InvalidPattern)?;
        Ok(Self { regex, is_negated })
    }

    /// True if a name fits.
    pub fn fits(&self, name: &str) -> bool {
        self.regex.is_match(name) != self.is_negated
    }
}

/// Regular expression of a glob.
fn glob(pattern: &str) -> String {
    let mut regex = String::from("^");
    for letter in pattern.chars() {
        match letter {
            '*' => regex.push_str(".*"),
            '?' => regex.push('.'),
            other => regex.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    regex.push('$');
    regex
}

/// List of tags: one is enough, or all are needed after `&`; a leading `!` negates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagFilter {
    tags: Vec<String>,
    needs_all: bool,
    is_negated: bool,
}

impl TagFilter {
    /// Parses a comma-separated list; `None` without tags.
    pub fn parse(text: &str) -> Option<Self> {
        let (is_negated, list) = negated(text);
        let (needs_all, list) = match list.strip_prefix('&') {
            Some(rest) => (true, rest),
            None => (false, list),
        };
        let tags = list.split(',').map(str::trim).filter(|tag| !tag.is_empty());
        let tags: Vec<_> = tags.map(str::to_owned).collect();
        (!tags.is_empty()).then_some(Self {
            tags,
            needs_all,
            is_negated,
        })
    }

    /// True if the tags of a resource fit.
    pub fn fits(&self, tags: &[String]) -> bool {
        let mut wanted = self.tags.iter();
        let fits = match self.needs_all {
            true => wanted.all(|tag| tags.contains(tag)),
            false => wanted.any(|tag| tags.contains(tag)),
        };
        fits != self.is_negated
    }
}

fn negated(text: &str) -> (bool, &str) {
    let text = text.trim();
    match text.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_globs_and_regular_expressions_and_their_opposites() {
        for (pattern, name, fits) in [
            ("public", "public", true),
            ("public", "public-2", false),
            ("public*", "public-2", true),
            ("public-?", "public-2", true),
            ("public-?", "public-22", false),
            ("pub.ic", "public", false),
            ("!public*", "public-2", false),
            ("!public*", "private", true),
            ("~^pub.*[12]$", "public-2", true),
            ("~lic", "public-2", true),
            ("!~lic", "public-2", false),
        ] {
            let parsed = NamePattern::parse(pattern).unwrap();
            assert_eq!(parsed.fits(name), fits, "{pattern} {name}");
        }
        assert!(NamePattern::parse("~(").is_err());
    }

    #[test]
    fn tags_fit_any_or_all_of_a_list_and_its_opposite() {
        let has: Vec<_> = ["a", "b"].map(str::to_owned).into();
        for (filter, fits) in [
            ("a", true),
            ("c", false),
            ("c, a", true),
            ("&a,b", true),
            ("&a,c", false),
            ("!a,c", false),
            ("!c", true),
            ("!&a,c", true),
        ] {
            let parsed = TagFilter::parse(filter).unwrap();
            assert_eq!(parsed.fits(&has), fits, "{filter}");
        }
        for empty in ["", " ", "!", "&", ",", "!&,"] {
            assert_eq!(TagFilter::parse(empty), None, "{empty}");
        }
    }
}
