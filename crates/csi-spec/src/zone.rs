//! A zone as the value of [`ZONE`](crate::context::ZONE), in the one form of controller and node.

/// The length of a label's value.
const LONGEST: usize = 63;

/// The value of [`ZONE`](crate::context::ZONE) for a zone of Nova or Cinder: other characters than letters, digits, `-`, `_` and `.` become one `-`,
/// the ends are alphanumeric, and it has at most 63 characters.
#[must_use]
pub fn label(zone: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut label = String::new();
    let mut replaced = false;
    for c in zone.chars() {
        if allowed(c) {
            label.push(c);
        } else if !replaced {
            label.push('-');
        }
        replaced = !allowed(c);
    }
    let edge = ['-', '_', '.'];
    let cut: String = label.trim_matches(edge).chars().take(LONGEST).collect();
    cut.trim_end_matches(edge).to_owned()
}
