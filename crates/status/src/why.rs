//! `why`: obstacles between an object and its readiness, down to the last cause.

mod advice;
mod chain;

use api::printable;
use jiff::Timestamp;
use serde::Serialize;
use terminal::Layout;

pub use self::advice::Commands;
use self::chain::Chain;
use crate::sentence::Sentence;
use crate::snapshot::{Item, Snapshot};

/// The answer of `why`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// `Kind/name` of the object in the question.
    object: String,
    namespace: String,
    ready: bool,
    /// [`Link`]s from the object to the last cause, each waiting for the next.
    chain: Vec<Link>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<Cause>,
    /// Number of other Machines of the cluster that are unready for the same reason.
    others: usize,
    /// Next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Object of the chain, with its most informative condition.
#[derive(Debug, Serialize)]
struct Link {
    object: String,
    /// The type of the condition.
    condition: String,
    status: String,
    reason: String,
    /// Time of the last change of the status, RFC 3339.
    since: String,
    message: String,
}

/// Last cause, with the fields of `openstack why`.
#[derive(Debug, Serialize)]
struct Cause {
    of: String,
    problem: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// True if the user has to act.
    failing: bool,
}

/// [`Chain`] from an object to the cause of its state, with the next step.
pub fn answer(snapshot: &Snapshot, item: &Item, commands: &Commands<'_>) -> Answer {
    let mut answer = Answer {
        object: item.label(),
        namespace: item.namespace().to_owned(),
        ready: true,
        chain: Vec::new(),
        cause: None,
        others: 0,
        next: None,
    };
    let Some(chain) = Chain::new(snapshot, item) else {
        return answer;
    };
    let finding = chain.finding();
    answer.ready = false;
    answer.chain = chain.links.iter().map(|item| link(item)).collect();
    answer.others = chain.others(snapshot);
    answer.next = Some(advice::next(snapshot, &chain, &finding, commands));
    answer.cause = Some(Cause {
        of: finding.of,
        problem: finding.problem.to_owned(),
        since: finding.since,
        detail: finding.detail,
        failing: finding.failing,
    });
    answer
}

fn link(item: &Item) -> Link {
    let found = chain::condition(item);
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    Link {
        object: item.label(),
        condition: text(found.map(|it| it.type_)),
        status: text(found.map(|it| it.status)),
        reason: text(found.map(|it| it.reason)),
        since: text(found.map(|it| it.since)),
        message: text(found.map(|it| it.message)),
    }
}

/// [`Answer`] for people: the cause in a sentence, the chain, and the next step.
pub fn text(answer: &Answer, now: Timestamp, layout: Layout) -> String {
    let object = printable::line(&answer.object);
    let Some(cause) = &answer.cause else {
        return format!("{object} is ready\n");
    };
    let sentence = Sentence {
        of: &cause.of,
        problem: &cause.problem,
        since: cause.since.as_deref(),
        detail: cause.detail.as_deref(),
        advice: None,
    };
    let mut text = match cause.of == answer.object {
        true => format!("{}\n", sentence.text(" ", now)),
        false => format!("{object} waits for {}\n", sentence.text(", which ", now)),
    };
    if answer.chain.len() > 1 {
        text.push_str(&fitted(rows(&answer.chain, now), layout));
    }
    match answer.others {
        0 => {}
        1 => text.push_str("    1 other Machine is not ready for the same reason\n"),
        count => text.push_str(&format!(
            "    {count} other Machines are not ready for the same reason\n"
        )),
    }
    if let Some(next) = &answer.next {
        text.push_str(&format!("next: {}\n", printable::line(next)));
    }
    text
}

/// The rows in the width of a terminal: without ages and reasons if need be, and then with each condition below its object.
fn fitted(mut rows: Vec<[String; 4]>, layout: Layout) -> String {
    let Layout::Terminal(width) = layout else {
        return terminal::align(&rows);
    };
    for column in [3, 2] {
        let text = terminal::align(&rows);
        if text.lines().all(|line| terminal::width(line) <= width) {
            return text;
        }
        for row in &mut rows {
            row[column].clear();
        }
    }
    let heading = [String::new(), String::new()];
    let rows = rows.into_iter().map(|[object, state, ..]| [object, state]);
    let rows: Vec<[String; 2]> = std::iter::once(heading).chain(rows).collect();
    let text = terminal::fit(&rows, width, &[]);
    text.split_once('\n')
        .map_or(String::new(), |(_, rest)| rest.to_owned())
}

/// Chain as a branch of the tree of `describe cluster`.
fn rows(chain: &[Link], now: Timestamp) -> Vec<[String; 4]> {
    let row = |(depth, link): (usize, &Link)| {
        let branch = match depth {
            0 => String::new(),
            depth => format!("{}└─", "  ".repeat(depth - 1)),
        };
        let state = match link.condition.as_str() {
            "" => "no condition".to_owned(),
            type_ => format!("{type_}: {}", link.status),
        };
        terminal::cells([
            format!("    {branch}{}", link.object),
            state,
            link.reason.clone(),
            terminal::age(&link.since, now),
        ])
    };
    chain.iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests;
