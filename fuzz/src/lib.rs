//! What the fuzz targets run. The API server's own tests run it too, over the committed seeds.

pub mod targets;
