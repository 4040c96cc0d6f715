//! Parameters of an [`OpenStack`] object.

use api::openstack::v1alpha1::OpenStack;
use deployer::Cloud;
use serde_json::Value;

use crate::problem::Problem;

/// The [`Cloud`] that an object describes, or the reasons for its rejection, which name the fields.
///
/// # Errors
/// [`Problem::Malformed`] if the object has no form in JSON.
pub(crate) fn cloud(object: &OpenStack) -> Result<Result<Cloud, String>, Problem> {
    let document = serde_json::to_value(object);
    let document: Value = document.map_err(|error| Problem::Malformed(error.to_string()))?;
    let parameters = match deployer::checked(&document) {
        Ok(parameters) => parameters,
        Err(errors) => return Ok(Err(errors.join("; "))),
    };
    Ok(Cloud::new(&document, parameters).map_err(|error| error.to_string()))
}
