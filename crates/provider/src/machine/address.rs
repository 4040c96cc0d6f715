//! Floating IP of a machine from a pool.

use api::conditions::{Reason, Status, Type};
use api::infra::v1beta2::OpenStackMachine;

use super::pooled::Claimant;
use super::status;
use super::surroundings::Surroundings;
use super::work::Work;
use crate::context::Error;
use crate::context::kept;

/// [`Claimant`] of a machine's address.
pub(super) fn claimant<'a>(
    object: &'a OpenStackMachine,
    around: &'a Surroundings,
) -> Claimant<'a, OpenStackMachine> {
    let cluster = around.cluster.as_ref();
    Claimant {
        object,
        server: object.metadata.name.as_deref().unwrap_or_default(),
        cluster: cluster.and_then(|cluster| cluster.metadata.name.as_deref()),
    }
}

/// Finds the address given by the pool. Returns true while the machine has to wait for an address.
///
/// # Errors
/// Errors of the claim.
pub(super) async fn claim(
    work: &mut Work<'_>,
    next: &mut OpenStackMachine,
    around: &Surroundings,
) -> Result<bool, Error> {
    let Some(reference) = &work.object.spec.floating_ip_pool_ref else {
        return Ok(false);
    };
    let claimant = claimant(work.object, around);
    match claimant.claimed(work.ctx, reference).await? {
        Ok(given) => work.address = Some(given),
        Err(wait) => {
            let (now, reason) = (work.ctx.now(), Reason::WaitingForIPAMProvider);
            if work.before.server().is_none() {
                status::not_ready(next, now, Type::InstanceReady, reason, &wait);
            }
            status::not_ready(next, now, Type::FloatingAddressFromPoolReady, reason, &wait);
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reports the floating IP at a port of the machine.
pub(super) fn associated(work: &Work<'_>, next: &mut OpenStackMachine) {
    if work.address.is_some() {
        let verdict = (Status::True, Reason::Ready, "");
        kept::condition(
            next,
            work.ctx.now(),
            Type::FloatingAddressFromPoolReady,
            verdict,
        );
    }
}
