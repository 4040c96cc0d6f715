//! What a server's console says about a failed bootstrap.

/// The longest line that goes into a condition.
const LONGEST: usize = 400;
/// Words that mark the line that tells why kubeadm or cloud-init failed, the most telling first.
const TELLING: &[&str] = &[
    "error execution phase",
    "couldn't validate the identity of the API Server",
    "[ERROR ",
    "Failed to run module scripts-user",
    "kubeadm: error",
    "level=error",
    "error:",
];

/// The line that tells why the server did not become a Node.
pub(crate) fn failure(console: &str) -> Option<String> {
    TELLING.iter().find_map(|words| {
        let line = console.lines().rev().find(|line| line.contains(words))?;
        Some(
            line.trim()
                .chars()
                .filter(|letter| !letter.is_control())
                .take(LONGEST)
                .collect(),
        )
    })
}

#[cfg(test)]
mod tests;
