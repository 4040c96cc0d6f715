//! v1beta1 <-> v1beta2.
