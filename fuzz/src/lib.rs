//! What the fuzz targets run. The tests of `apimachinery`, of the API server, of the simulated cloud, of cloud.conf, of the node half of the CSI
//! driver and of the Keystone webhook run it too, over the committed seeds.

pub mod api;
pub mod cloud;
pub mod conf;
pub mod frames;
pub mod keystone;
pub mod node;
pub mod requests;
pub mod targets;
