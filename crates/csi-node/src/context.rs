//! Keys and words that the controller and the node agree on.

pub use csi_spec::context::{DRIVER, FIRST_ATTACH, FORMAT, RESIZE, SIZE, ZONE};
