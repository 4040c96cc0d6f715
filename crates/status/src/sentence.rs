//! A cause in one sentence, as `why` and `openstack why` print it.

use api::printable;
use jiff::Timestamp;

/// Problem of an object.
#[derive(Clone, Copy, Debug)]
pub struct Sentence<'a> {
    /// Object of the problem, such as `nova-api` or `Machine/demo-md-0-x`.
    pub of: &'a str,
    /// Such as `crashes`.
    pub problem: &'a str,
    /// Start of the problem, RFC 3339.
    pub since: Option<&'a str>,
    /// Detail, such as the message of a condition.
    pub detail: Option<&'a str>,
    /// Remedy.
    pub advice: Option<&'a str>,
}

impl Sentence<'_> {
    /// `nova-api crashes since 40 s: exit status 1: no such option`, with `joint` before the problem.
    pub fn text(&self, joint: &str, now: Timestamp) -> String {
        let since = self.since.and_then(|it| it.parse::<Timestamp>().ok());
        let since = since.map(|it| format!(" since {}", span(now.duration_since(it).as_secs())));
        let detail = self.detail.filter(|it| !it.is_empty());
        let detail = detail.map(|it| format!(": {it}"));
        let advice = self.advice.map(|it| format!(" ({it})"));
        let sentence = format!(
            "{}{joint}{}{}{}{}",
            self.of,
            self.problem,
            since.unwrap_or_default(),
            detail.unwrap_or_default(),
            advice.unwrap_or_default()
        );
        printable::line(&sentence).into_owned()
    }
}

fn span(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7199 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_one_sentence() {
        let sentence = Sentence {
            of: "nova-api",
            problem: "crashes",
            since: Some("2026-01-01T00:00:00Z"),
            detail: Some("no such option"),
            advice: Some("correct it"),
        };
        let now = "2026-01-01T00:00:40Z".parse().unwrap();
        assert_eq!(
            sentence.text(", which ", now),
            "nova-api, which crashes since 40 s: no such option (correct it)"
        );
        let short = Sentence {
            since: None,
            detail: Some(""),
            advice: None,
            ..sentence
        };
        assert_eq!(short.text(" ", now), "nova-api crashes");
    }

    #[test]
    fn spans_have_the_unit_that_says_most() {
        assert_eq!(
            (span(-1), span(119), span(120), span(7200)),
            ("0 s".into(), "119 s".into(), "2 min".into(), "2 h".into())
        );
    }
}
