//! Zone as the value of [`ZONE`](crate::context::ZONE), in the one form of controller and node.

/// Maximum length of a label value.
const LONGEST: usize = 63;

/// Value of [`ZONE`](crate::context::ZONE) for a zone of Nova or Cinder. Each run of characters other than letters,
/// digits, `-`, `_` and `.` becomes one `-`; the ends are alphanumeric; at most 63 characters.
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
