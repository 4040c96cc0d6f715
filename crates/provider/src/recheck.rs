//! Second look before a resource is reported as missing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use openstack::{Cloud, View};

use crate::credentials;
use crate::problem::Problem;

/// Result of `resolve` on a view, and the [`View`]. Before a resource is reported as missing, the searched list is read
/// once more: the resource may be newer than the list.
///
/// # Errors
/// Errors of `resolve` in current lists, and errors of the lists.
pub(crate) async fn in_lists_of_now<S, T>(
    cloud: &Cloud,
    mut seen: S,
    of_view: impl Fn(Arc<View>) -> S,
    resolve: impl Fn(&S) -> Result<T, Problem>,
) -> Result<(T, S), Problem> {
    let mut read = BTreeSet::new();
    loop {
        let problem = match resolve(&seen) {
            Ok(found) => return Ok((found, seen)),
            Err(problem) => problem,
        };
        let Some(kind) = problem.searched.filter(|kind| read.insert(*kind)) else {
            return Err(problem);
        };
        let view = cloud.inventory.view(&[kind], Duration::ZERO).await;
        seen = of_view(view.map_err(|error| credentials::listing(&error))?);
    }
}
