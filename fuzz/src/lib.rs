//! Bodies of the fuzz targets. Tests of `apimachinery`, the API server, the client of OpenStack, the simulated cloud,
//! cloud.conf, the node half of the CSI driver and the Keystone webhook run the same functions over the committed seeds.

pub mod api;
pub mod cloud;
pub mod clouds;
pub mod conf;
pub mod frames;
pub mod keystone;
pub mod machines;
pub mod node;
pub mod requests;
pub mod targets;
