//! Availability zones of Cinder.

use super::Volumes;
use crate::call::Call;
use crate::compute::AvailabilityZone;
use crate::error::Result;
use crate::service::Service;

impl Volumes {
    /// The zones in which volumes can be.
    ///
    /// # Errors
    /// Those of the request.
    pub async fn zones(&self) -> Result<Vec<AvailabilityZone>> {
        let call = Call::get(Service::Volume, "/os-availability-zone", &[]);
        self.session.one(call, "availabilityZoneInfo").await
    }
}
