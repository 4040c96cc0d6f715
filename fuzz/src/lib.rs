//! What the fuzz targets run. The tests of the API server and of the simulated cloud run it too, over the committed seeds.

pub mod api;
pub mod cloud;
pub mod requests;
pub mod targets;
