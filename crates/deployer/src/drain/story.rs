//! Condition about drains.

use super::guard::Standing;

/// Maximum number of servers in a message.
const NAMED: usize = 5;

/// State of the drain of a node, as input of [`Summary::from_stories`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    pub(super) node: String,
    pub(super) standing: Standing,
    /// Number of servers on the node.
    pub(super) left: usize,
    /// Number of servers on their way.
    pub(super) moving: usize,
    /// Number of servers on the way to the node, from migrations that have not ended.
    pub(super) coming: usize,
    /// Servers without a way to another node, each with the reason.
    pub(super) stuck: Vec<String>,
    /// Reason against further migrations.
    pub(super) halted: Option<Halted>,
}

/// Reason against further migrations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Halted {
    /// Mode `Wait`.
    ByMode,
    /// Timeout.
    ByTime,
    /// Other reason, as a sentence.
    Because(String),
}

/// Status, reason and message of the condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// True if no server is on a cordoned or deleted node.
    pub is_true: bool,
    /// Reason of the condition.
    pub reason: &'static str,
    /// Message of the condition.
    pub message: String,
}

impl Summary {
    /// Condition for the [`Story`]s of all nodes out of service.
    pub fn from_stories(stories: &[Story]) -> Self {
        if stories.is_empty() {
            return Self {
                is_true: true,
                reason: "NoneCordoned",
                message: String::new(),
            };
        }
        let reason = stories.iter().map(Story::reason).max_by_key(|it| rank(it));
        let reason = reason.unwrap_or("Drained");
        let words: Vec<String> = stories.iter().map(Story::words).collect();
        Self {
            is_true: reason == "Drained",
            reason,
            message: words.join("; "),
        }
    }

    /// Condition for foreign objects with the names of guards.
    pub fn conflict(why: String) -> Self {
        Self {
            is_true: false,
            reason: "Conflict",
            message: why,
        }
    }

    /// Condition without an answer of Nova.
    pub fn unanswered(why: String) -> Self {
        Self {
            is_true: false,
            reason: "NotAnswered",
            message: why,
        }
    }
}

/// Reasons of the condition. The last one of those of several nodes is told.
pub const REASONS: [&str; 9] = [
    "NoneCordoned",
    "Drained",
    "Draining",
    "WaitingForServers",
    "NodeGone",
    "TimedOut",
    "ServersCannotMove",
    "NotAnswered",
    "Conflict",
];

fn rank(reason: &str) -> usize {
    REASONS
        .iter()
        .position(|it| *it == reason)
        .unwrap_or_default()
}

impl Story {
    /// True if the guard of the node may be evicted.
    pub(super) fn is_empty(&self) -> bool {
        self.left == 0 && self.coming == 0 && self.halted.is_none()
    }

    fn reason(&self) -> &'static str {
        match (&self.halted, self.standing) {
            _ if self.is_empty() && self.standing != Standing::Gone => "Drained",
            (_, Standing::Gone) => "NodeGone",
            _ if !self.stuck.is_empty() => "ServersCannotMove",
            (Some(Halted::ByTime), _) => "TimedOut",
            (Some(Halted::ByMode), _) => "WaitingForServers",
            (Some(Halted::Because(_)) | None, _) => "Draining",
        }
    }

    fn words(&self) -> String {
        let node = &self.node;
        let mut words = match (self.standing, self.left) {
            (Standing::Gone, 0) => format!("{node} is gone, and what is left of it is removed"),
            (Standing::Gone, left) => {
                format!("{node} is gone, and {left} servers are on it still")
            }
            (_, 0) => format!("{node} has no server"),
            (_, left) => format!("{node} has {left} servers, of which {} move", self.moving),
        };
        match self.coming {
            0 => {}
            coming => words.push_str(&format!(", and {coming} are on the way to it")),
        }
        match &self.halted {
            Some(Halted::ByMode) => words.push_str(
                ": by compute.drain.mode Wait nothing moves them. Migrate or delete them",
            ),
            Some(Halted::ByTime) => words.push_str(
                ": compute.drain.timeout is over, and no more migrations are started. Cordon the node anew to go on",
            ),
            Some(Halted::Because(why)) => {
                words.push_str(": ");
                words.push_str(why);
            }
            None => {}
        }
        if !self.stuck.is_empty() {
            let named: Vec<&str> = self.stuck.iter().take(NAMED).map(String::as_str).collect();
            words.push_str(". Cannot move: ");
            words.push_str(&named.join(", "));
            let more = self.stuck.len().saturating_sub(NAMED);
            if more > 0 {
                words.push_str(&format!(" and {more} more"));
            }
        }
        words
    }
}
