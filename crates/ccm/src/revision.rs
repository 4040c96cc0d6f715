//! Changes of Neutron's resources at the revision that was read.

use openstack::Result;

/// How often a change is tried that others keep coming before.
const ATTEMPTS: usize = 3;

/// True if Neutron refused a change since the resource has another revision by now: others changed it after it was read.
pub(crate) fn is_stale(error: &openstack::Error) -> bool {
    error.status().is_some_and(|status| status.as_u16() == 412)
}

/// Takes a change that reads the resource first, again if others changed it in between.
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
