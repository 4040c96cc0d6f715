//! Keys and values of the publish and volume contexts, shared by controller and node.

pub use csi_spec::context::{DRIVER, FIRST_ATTACH, FORMAT, RESIZE, SIZE, ZONE};
