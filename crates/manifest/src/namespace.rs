//! Names of namespaces.

/// A name that no namespace can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a namespace: use at most 63 lower-case letters, digits and `-`, beginning and ending with a letter or digit"
)]
pub struct NamespaceError(String);

/// A namespace is a DNS-1123 label.
///
/// # Errors
/// If the name is no such label.
pub fn check_namespace(name: &str) -> Result<(), NamespaceError> {
    let is_right = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty()
        || name.len() > 63
        || name.starts_with('-')
        || name.ends_with('-')
        || !name.chars().all(is_right)
    {
        return Err(NamespaceError(name.to_owned()));
    }
    Ok(())
}
