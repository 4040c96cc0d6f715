//! Changes of Neutron's resources at the revision of a read.

use openstack::Result;

/// Maximum number of attempts of a change, if others change the resource each time.
const ATTEMPTS: usize = 3;

/// True if Neutron refused a change because of another revision: the resource has changed since the read.
pub(crate) fn is_stale(error: &openstack::Error) -> bool {
    error.status().is_some_and(|status| status.as_u16() == 412)
}

/// Attempts a change that reads the resource first, and again if the resource changed in between.
pub(crate) async fn change<T, F>(attempt: impl Fn() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let mut left = ATTEMPTS;
    loop {
        left -= 1;
        match attempt().await {
            Err(error) if is_stale(&error) && left > 0 => {}
            result => return result,
        }
    }
}
