//! What the fuzz targets run. The tests of the API server, of the simulated cloud, of cloud.conf and of the node half of the
//! CSI driver run it too, over the committed seeds.

pub mod api;
pub mod cloud;
pub mod conf;
pub mod frames;
pub mod node;
pub mod requests;
pub mod targets;
