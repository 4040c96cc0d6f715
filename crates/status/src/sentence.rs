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
    /// `nova-api has been failing for 40 s: exit status 1: no such option`, with `joint` before the problem.
    pub fn text(&self, joint: &str, now: Timestamp) -> String {
        let since = self.since.and_then(|it| it.parse::<Timestamp>().ok());
        let problem = match since {
            Some(since) => lasting(self.problem, &span(now.duration_since(since).as_secs())),
            None => self.problem.to_owned(),
        };
        let detail = self.detail.filter(|it| !it.is_empty());
        let detail = detail.map(|it| format!(": {it}"));
        let advice = self.advice.map(|it| format!(" ({it})"));
        let sentence = format!(
            "{}{joint}{problem}{}{}",
            self.of,
            detail.unwrap_or_default(),
            advice.unwrap_or_default()
        );
        printable::line(&sentence).into_owned()
    }
}

/// The problem with the time since it began: `has been failing for 40 s`.
fn lasting(problem: &str, span: &str) -> String {
    let (verb, rest) = match problem.split_once(' ') {
        Some((verb, rest)) => (verb, format!(" {rest}")),
        None => (problem, String::new()),
    };
    let continuous = match (verb, rest.as_str()) {
        ("is", " being deleted") => "has been in deletion".to_owned(),
        ("is", rest) if rest.starts_with(" not ") => format!("has not been{}", &rest[4..]),
        ("is", rest) => format!("has been{rest}"),
        ("has", rest) => format!("has had{rest}"),
        ("fails" | "waits", rest) => format!("has been {}ing{rest}", verb.trim_end_matches('s')),
        // The time of the last crash: a container that is started again has run since.
        ("crashes", rest) => return format!("keeps crashing{rest}, last {span} ago"),
        // Such as `does not answer` and `cannot be read`.
        _ => return format!("{problem} (for {span})"),
    };
    format!("{continuous} for {span}")
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
            "nova-api, which keeps crashing, last 40 s ago: no such option (correct it)"
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

    #[test]
    fn the_time_of_a_problem_is_said_in_its_tense() {
        for (problem, expected) in [
            ("fails", "has been failing for 2 s"),
            ("crashes", "keeps crashing, last 2 s ago"),
            ("is being deleted", "has been in deletion for 2 s"),
            ("is not ready", "has not been ready for 2 s"),
            ("has no status", "has had no status for 2 s"),
            ("waits in vain", "has been waiting in vain for 2 s"),
            ("does not answer", "does not answer (for 2 s)"),
        ] {
            assert_eq!(lasting(problem, "2 s"), expected);
        }
    }
}
